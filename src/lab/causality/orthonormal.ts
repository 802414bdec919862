/** Makes vectors orthonormal, by Gram and Schmidt's method, twice over, as one pass leaves rounding errors. */

import { addScaled, dot, norm } from '../statistics/vectors.ts';

/**
 * What is left of a vector beside those before it, at length 1; nothing where that is less than `least` of it.
 */
export function besideOthers(
  vector: ArrayLike<number>,
  others: readonly Float32Array[],
  least: number,
): Float32Array | undefined {
  const rest = Float64Array.from(vector);
  const whole = norm(rest);
  for (const other of [...others, ...others]) addScaled(rest, other, 0, -dot(other, rest));
  const length = norm(rest);
  if (!(length > least * whole)) return undefined;
  return Float32Array.from(rest, (value) => value / length);
}
