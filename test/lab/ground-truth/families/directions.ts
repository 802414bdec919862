/** Families that vary what the direction is to the one that is read: at an angle, opposed to it, or beside another path. */

import { type Family, gather, readsConcept, toyFamily } from '../family.ts';
import { line, lookFor } from '../models/circuit.ts';
import { NO, YES } from '../models/lexicon.ts';
import { AGAINST, PARTLY, part, USED, WHOLE } from './truths.ts';

/** Beside the flag, which the answer is read from straight: shares of the concept and the flag. */
const besideFlag = (concept: number, flag: number) => (gain: number) => ({
  heads: [gather(0), lookFor(1, 'flagMark', [{ from: 'flag', to: 'out', gain: flag * gain }])],
  units: line(1, 'concept', 'out', concept * gain),
});

/** What interchange along a direction at this cosine to the concept moves of it, where the rest is a correlate of the same swing. */
function shareAt(cosine: number): number {
  return cosine ** 2 + cosine * Math.sqrt(1 - cosine ** 2);
}

export const DIRECTIONS: readonly Family[] = [
  toyFamily({
    name: 'cosine 0.2',
    truth: PARTLY,
    why: 'The direction is a correlate that nobody reads, but at a cosine of 0.2 to what is read: it takes a quarter of the concept along.',
    shares: part(shareAt(0.2), 0.08),
    circuit: readsConcept,
    direction: { concept: 0.2, correlate: Math.sqrt(1 - 0.2 ** 2) },
  }),
  toyFamily({
    name: 'cosine 0.9',
    truth: USED,
    why: 'The direction is at a cosine of 0.9 to what is read, and the rest of it is a correlate: it moves all of the answer, and somewhat more.',
    shares: part(shareAt(0.9), 0.15),
    circuit: readsConcept,
    direction: { concept: 0.9, correlate: Math.sqrt(1 - 0.9 ** 2) },
  }),
  toyFamily({
    name: 'cosine 0.9, idle',
    truth: USED,
    why: 'The direction is at a cosine of 0.9 to what is read, and the rest of it is an axis that tells nothing of the label: it moves 0.81 of the answer.',
    shares: part(0.81, 0.08),
    circuit: readsConcept,
    direction: { concept: 0.9, 'noise 3': Math.sqrt(1 - 0.9 ** 2) },
  }),
  toyFamily({
    name: 'opposed',
    truth: AGAINST,
    why: 'The answer reads the copy one and a half times, and half of the concept against it: alone, the concept works against its label.',
    shares: part(-0.5, 0.12),
    circuit: (gain) => ({
      units: [...line(1, 'concept', 'out', -0.5 * gain), ...line(1, 'copy', 'out', 1.5 * gain)],
    }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'opposed to the flag',
    truth: AGAINST,
    why: 'All that passes through the site works against the label; the flag, read twice as loud elsewhere, works for it.',
    // Of 2 − c, −c; words carry 0.7 to 1.3 of the concept in the mean.
    shares: { interchange: [-1.9, -0.5], ablation: [-1.9, -0.5], through: [-1.9, -0.5] },
    prompts: { flag: 'label' },
    circuit: besideFlag(-1, 2),
  }),
  toyFamily({
    name: 'beside the flag',
    truth: PARTLY,
    why: 'Three tenths of the answer are read from the concept at the site, the rest straight from the flag.',
    shares: { ...part(0.3), through: [0.24, 0.36] },
    prompts: { flag: 'label' },
    circuit: besideFlag(0.3, 0.7),
  }),
  toyFamily({
    name: 'reversed answer',
    truth: USED,
    why: 'The target words are exchanged: the model says no where the label is 1, and the concept is what it says it by.',
    shares: WHOLE,
    circuit: readsConcept,
    target: { positive: [NO], negative: [YES] },
  }),
];
