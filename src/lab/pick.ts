/** The values at the given indices, each of which must be there. */

import { missing } from './missing.ts';

export function pick<T>(values: ArrayLike<T>, indices: readonly number[], what: string): T[] {
  return indices.map((index) => values[index] ?? missing(what, index));
}
