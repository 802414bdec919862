/** Tests against chance: labels that change places, and p values by counting. */

import type { Random } from './random.ts';

/** Labels that have changed places within each group of rows. */
export function permuteWithin(
  labels: ArrayLike<number>,
  groups: readonly (readonly number[])[],
  random: Random,
): Uint8Array {
  const result = Uint8Array.from(labels);
  for (const group of groups) {
    const shuffled = random.shuffle(group);
    group.forEach((row, i) => {
      result[row] = labels[shuffled[i] ?? row] ?? 0;
    });
  }
  return result;
}

/** The share of values, the observed one counted among them, that are at least as large. */
export function chanceOf(observed: number, nulls: ArrayLike<number>): number {
  let reached = 1;
  for (let i = 0; i < nulls.length; i++) reached += (nulls[i] ?? 0) >= observed ? 1 : 0;
  return reached / (nulls.length + 1);
}
