/** Families that vary the data: how many prompts, whether paired and balanced, how noisy the concept and the labels are. */

import { type Family, jitter, readsConcept, readsShare, toyFamily } from '../family.ts';
import { line } from '../models/circuit.ts';
import { NOTHING, PARTLY, part, SOFTMAX, UNREADABLE, USED, WHOLE } from './truths.ts';

export const DATA: readonly Family[] = [
  toyFamily({
    name: 'weak signal',
    truth: USED,
    why: 'Words carry four tenths of the usual concept in almost three times the usual noise; the reader makes up for that, and reads nothing else.',
    shares: { interchange: [0.8, 1.2], ablation: [0.8, 1.2], through: [0.95, 1.05] },
    model: {
      noise: 0.4,
      perLabel: 24,
      carries: ({ sign, correlate }, random) => ({
        concept: 0.4 * sign * jitter(random),
        correlate: 0.4 * correlate * jitter(random),
      }),
    },
    prompts: { pairs: 64 },
    circuit: (gain) => ({ units: line(1, 'concept', 'out', gain / 0.4) }),
  }),
  toyFamily({
    name: 'wrong labels',
    truth: USED,
    why: 'One label in ten is wrong. The model does what the concept says, whatever the label says.',
    shares: { interchange: [0.85, 1.15], ablation: [0.85, 1.15], through: [0.95, 1.05] },
    prompts: { pairs: 64, wrong: 0.1 },
    circuit: readsConcept,
  }),
  toyFamily({
    name: 'unpaired, unbalanced',
    truth: USED,
    why: 'As `causal`, with three prompts of one label for each of the other, and no pairs.',
    shares: { interchange: [0.85, 1.15], ablation: [0.85, 1.15], through: [0.95, 1.05] },
    prompts: { unpaired: { ones: 72, zeros: 24 } },
    circuit: readsConcept,
  }),
  toyFamily({
    name: 'unpaired correlate',
    truth: SOFTMAX,
    why: 'Nobody reads the correlate; prompts have no partners.',
    shares: NOTHING,
    prompts: { unpaired: { ones: 48, zeros: 48 } },
    circuit: readsConcept,
    direction: { correlate: 1 },
  }),
  toyFamily({
    name: 'twelve pairs',
    truth: USED,
    why: 'As `causal`, with as few prompts as may be asked with.',
    shares: WHOLE,
    prompts: { pairs: 12 },
    circuit: readsConcept,
  }),
  toyFamily({
    name: 'twelve pairs, correlate',
    truth: SOFTMAX,
    why: 'Nobody reads the correlate.',
    shares: NOTHING,
    prompts: { pairs: 12 },
    circuit: readsConcept,
    direction: { correlate: 1 },
  }),
  toyFamily({
    name: 'two hundred pairs',
    truth: PARTLY,
    why: 'A fifth of the answer is read from the concept, the rest from a copy, and there are very many prompts.',
    shares: part(0.2),
    prompts: { pairs: 200 },
    model: { perLabel: 24 },
    circuit: readsShare(0.2),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'shuffled labels',
    truth: UNREADABLE,
    why: 'Within each pair, chance says which prompt gets which label.',
    prompts: { labels: 'shuffled' },
    circuit: readsConcept,
  }),
];
