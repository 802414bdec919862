/** Makes the families of the suite's curves: how small an effect is found with how many pairs, and one mechanism at many volumes. */

import { PARTLY, USED } from './families/truths.ts';
import { type Family, readsConcept, readsShare, toyFamily } from './family.ts';

export const PAIR_COUNTS = [12, 24, 48, 96] as const;
/** Shares of the answer that are read from the tested direction. */
export const EFFECT_SIZES = [0.05, 0.1, 0.15, 0.2, 0.3, 0.45] as const;
export const VOLUMES = [0.2, 0.35, 0.6, 1, 1.7, 3, 5] as const;

/** A share of the answer is read from the concept, the rest from a copy. */
export function powerFamily(pairs: number, share: number): Family {
  return toyFamily({
    name: `${share} of the answer, ${pairs} pairs`,
    truth: PARTLY,
    why: 'This share of the answer is read from the concept, the rest from a copy.',
    prompts: { pairs },
    circuit: readsShare(share),
    direction: { concept: 1 },
  });
}

/** The same weights but for the loudness of the answer. */
export function volumeFamilies(volume: number): Family[] {
  const why = 'The answer is louder or softer, and read from the same direction.';
  return [
    toyFamily({
      name: 'concept',
      truth: USED,
      why,
      volume,
      circuit: readsConcept,
    }),
    toyFamily({
      name: 'three tenths',
      truth: PARTLY,
      why,
      volume,
      circuit: readsShare(0.3),
      direction: { concept: 1 },
    }),
    toyFamily({
      name: 'unread',
      truth: { verdict: 'epiphenomenal-softmax', reasons: ['uniform-rescale'] },
      why,
      volume,
      circuit: readsConcept,
      direction: { correlate: 1 },
    }),
  ];
}
