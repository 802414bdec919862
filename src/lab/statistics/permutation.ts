/** Permutes labels, and computes p values of permutation tests. */

import { missing } from '../core/missing.ts';
import type { Random } from './random.ts';

/** Permutes labels within each group of rows. */
export function permuteWithin(
  labels: ArrayLike<number>,
  groups: readonly (readonly number[])[],
  random: Random,
): Uint8Array {
  const result = Uint8Array.from(labels);
  for (const group of groups) {
    const shuffled = random.shuffle(group);
    group.forEach((row, i) => {
      const from = shuffled[i] ?? missing('row of the shuffled group at', i);
      result[row] = labels[from] ?? missing('label of row', from);
    });
  }
  return result;
}

/** The share of values, the observed one counted among them, that are at least as large as the observed one. */
export function permutationP(observed: number, nulls: ArrayLike<number>): number {
  let reached = 1;
  for (let i = 0; i < nulls.length; i++) reached += (nulls[i] ?? missing('null value', i)) >= observed ? 1 : 0;
  return reached / (nulls.length + 1);
}
