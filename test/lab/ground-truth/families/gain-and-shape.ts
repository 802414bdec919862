/** Families that vary how loud the answer is, and the width, depth and architecture of the model. */

import { type Family, gather, readsConcept, toyFamily } from '../family.ts';
import { clamp, line } from '../models/circuit.ts';
import { NOTHING, part, SOFTMAX, USED, WHOLE } from './truths.ts';

export const GAIN_AND_SHAPE: readonly Family[] = [
  toyFamily({
    name: 'faint',
    truth: USED,
    why: 'The mechanism of `causal` at a tenth of its gain: how loud an answer is does not change what it is read from.',
    shares: WHOLE,
    circuit: readsConcept,
    volume: 0.1,
  }),
  toyFamily({
    name: 'loud',
    truth: USED,
    why: 'The mechanism of `causal` at ten times its gain.',
    shares: WHOLE,
    circuit: readsConcept,
    volume: 10,
  }),
  toyFamily({
    name: 'loud correlate',
    truth: SOFTMAX,
    why: 'Nobody reads the correlate, however loud the answer is that others give.',
    shares: NOTHING,
    circuit: readsConcept,
    volume: 5,
    direction: { correlate: 1 },
  }),
  toyFamily({
    name: 'gpt2',
    truth: USED,
    why: 'As `causal`, in the shape of GPT-2 with a width of 64: layer norms, GELU, learned positions.',
    shares: WHOLE,
    model: { shape: 'gpt2', width: 64, layers: 3 },
    circuit: readsConcept,
  }),
  toyFamily({
    name: 'gpt2 correlate',
    truth: SOFTMAX,
    why: 'Nobody reads the correlate.',
    shares: NOTHING,
    model: { shape: 'gpt2' },
    circuit: readsConcept,
    direction: { correlate: 1 },
  }),
  toyFamily({
    name: 'gpt2 dormant',
    truth: { verdict: 'weak-causal', reasons: ['possible-dormant-pathway'] },
    why: 'Half of the direction is an unread correlate; the other half is read, and zero in all data.',
    shares: part(0.5, 0.15),
    model: { shape: 'gpt2' },
    circuit: (gain) => ({ units: [...line(1, 'concept', 'out', gain), ...line(1, 'dormant', 'out', gain)] }),
    direction: { correlate: 1, dormant: 1 },
  }),
  toyFamily({
    name: 'gpt-neox',
    truth: USED,
    why: 'As `causal`, in the shape of GPT-NeoX with a width of 256: attention and MLP beside each other.',
    shares: WHOLE,
    model: { shape: 'gpt-neox', width: 256, layers: 4, perLabel: 24 },
    circuit: readsConcept,
  }),
  toyFamily({
    name: 'gpt-neox redundant',
    truth: { verdict: 'weak-causal', reasons: ['redundant-pathway'] },
    why: 'The answer is a clamped sum of concept and copy: without the concept, the copy does it.',
    shares: { interchange: [0.25, 0.75], ablation: [-0.05, 0.2], through: [0.95, 1.05] },
    model: { shape: 'gpt-neox' },
    circuit: (gain) => ({ units: clamp(1, ['concept', 'copy'], 'out', gain, 0.8) }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'deep',
    truth: USED,
    why: 'The concept is gathered in block 1, asked about after block 3, and read in block 5, the last.',
    shares: WHOLE,
    model: { layers: 6, width: 256 },
    circuit: (gain) => ({ heads: [gather(1)], units: line(5, 'concept', 'out', gain) }),
    site: { layer: 3 },
  }),
];
