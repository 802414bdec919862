/** Describes the part of the residual stream that is tested: the span of orthonormal vectors. A direction is a span of one. */

import { missing } from '../core/missing.ts';
import type { Random } from '../statistics/random.ts';
import { addScaled, dot, norm } from '../statistics/vectors.ts';

export interface Subspace {
  /** Of length 1, at right angles to each other. */
  vectors: readonly Float32Array[];
  width: number;
}

export function lineAlong(direction: Float32Array): Subspace {
  return { vectors: [direction], width: direction.length };
}

/** As many random vectors, made orthonormal. */
export function randomSubspace(width: number, rank: number, random: Random): Subspace {
  const vectors: Float32Array[] = [];
  while (vectors.length < rank) {
    const next = Float64Array.from(random.direction(width));
    for (const vector of vectors) addScaled(next, vector, 0, -dot(vector, next));
    const length = norm(next);
    vectors.push(Float32Array.from(next, (value) => value / length));
  }
  return { vectors, width };
}

/** The coordinates of an activation in the subspace. */
export function coordinatesIn({ vectors }: Subspace, activation: Float32Array): Float64Array {
  return Float64Array.from(vectors, (vector) => dot(vector, activation));
}

/** The vector with these coordinates. */
export function vectorIn({ vectors, width }: Subspace, coordinates: Float64Array): Float32Array {
  const result = new Float32Array(width);
  for (const [i, vector] of vectors.entries()) {
    const factor = coordinates[i] ?? missing('coordinate', i);
    for (let axis = 0; axis < width; axis++) {
      result[axis] = (result[axis] ?? missing('number', axis)) + factor * (vector[axis] ?? missing('number', axis));
    }
  }
  return result;
}

/** The same coordinates along other vectors. */
export function withVectors({ width }: Subspace, vectors: readonly Float32Array[]): Subspace {
  return { vectors, width };
}
