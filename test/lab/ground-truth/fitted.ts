/** Asks about the same models and data, with a subspace that is fitted on interchange. */

import type { Family } from './family.ts';

export function fittedOnInterchange(family: Family, rank: number): Family {
  return {
    ...family,
    name: `${family.name}, fitted on interchange`,
    make(seed) {
      const { files, question } = family.make(seed);
      return { files, question: { ...question, direction: { kind: 'fit', method: 'interchange', rank } } };
    },
  };
}
