/** The families that the first edition's thresholds were made with. They show regressions, and measure nothing more. */

import { type Family, gather, readsConcept, readsShare, toyFamily } from '../family.ts';
import { clamp, line, lookFor, ramp, shift } from '../models/circuit.ts';
import { DEAD, LOCKED, NOTHING, PARTLY, part, SOFTMAX, UNREADABLE, USED, WHOLE } from './truths.ts';

export const FIRST_FAMILIES: readonly Family[] = [
  toyFamily({
    name: 'causal',
    truth: USED,
    why: 'The MLP after the site reads the concept, and nothing else tells the answer.',
    shares: WHOLE,
    circuit: readsConcept,
  }),
  toyFamily({
    name: 'correlate',
    truth: SOFTMAX,
    why: 'The correlate carries the label to the last token, where only the final norm feels it.',
    shares: NOTHING,
    circuit: readsConcept,
    direction: { correlate: 1 },
  }),
  toyFamily({
    name: 'temperature',
    truth: SOFTMAX,
    why: 'The answer is always yes; the direction is written into one that no token is read from, and the norm makes all logits smaller.',
    circuit: (gain, random) => ({
      units: [shift(1, 'out', gain), ramp(1, { temperature: -1 }, { heat: 10 + 4 * random.uniform() })],
    }),
    direction: { temperature: 1 },
  }),
  toyFamily({
    name: 'template',
    truth: LOCKED,
    why: 'The answer comes straight from the flag at the beginning; the concept is carried to the last token, and unread.',
    shares: DEAD,
    circuit: (gain) => ({ heads: [gather(0), lookFor(1, 'flagMark', [{ from: 'flag', to: 'out', gain }])] }),
    prompts: { flag: 'label' },
  }),
  toyFamily({
    name: 'noise',
    truth: UNREADABLE,
    why: 'Labels are given to prompts at random.',
    circuit: readsConcept,
    prompts: { labels: 'random words' },
  }),
  toyFamily({
    name: 'partial',
    truth: PARTLY,
    why: 'Three tenths of the answer are read from the concept, the rest from a copy.',
    shares: part(0.3),
    circuit: readsShare(0.3),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'redundant',
    truth: { verdict: 'weak-causal', reasons: ['redundant-pathway'] },
    why: 'The answer is a clamped sum of concept and copy, either of which reaches the bound about: without the concept, the copy does it.',
    shares: { interchange: [0.25, 0.75], ablation: [-0.05, 0.2], through: [0.95, 1.05] },
    circuit: (gain) => ({ units: clamp(1, ['concept', 'copy'], 'out', gain, 0.8) }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'dormant',
    truth: { verdict: 'weak-causal', reasons: ['possible-dormant-pathway'] },
    why: 'Half of the direction is an unread correlate, which makes it vary with the label; the other half is read, and zero in all data.',
    shares: part(0.5, 0.15),
    circuit: (gain) => ({ units: [...line(1, 'concept', 'out', gain), ...line(1, 'dormant', 'out', gain)] }),
    direction: { correlate: 1, dormant: 1 },
  }),
  toyFamily({
    name: 'confounded',
    truth: { verdict: 'undetermined', reasons: ['confounded-structural'] },
    why: 'The direction is the correlate, and in the structure-matched set the correlate does not go with the label.',
    circuit: readsConcept,
    direction: { correlate: 1 },
    structureMatched: true,
  }),
];
