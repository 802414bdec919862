/** Reads the values that numpy, scipy and scikit-learn gave; scripts/lab/make-statistics.py makes them. */

import reference from '../fixtures/statistics/reference.json' with { type: 'json' };

export default reference;

/** The largest distance between two lists of numbers. */
export function distance(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Number.POSITIVE_INFINITY;
  return Math.max(...Array.from(a, (value, i) => Math.abs(value - (b[i] ?? Number.NaN))));
}
