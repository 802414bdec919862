/**
 * Scores of activations along directions. The last bits of an activation differ from one engine or machine to the next; scores
 * that differ by no more are made equal, so that no rank rests on them.
 */

import { mean } from './summary.ts';
import { dot, norm } from './vectors.ts';

/** The part of what an activation can score that rounding in float32 may account for. */
const ROUNDING = 1e-6;

export type Scorer = (direction: Float32Array) => Float64Array;

/** Scores of the rows of a matrix: their products with a direction. */
export function createScorer(rows: Float32Array, width: number): Scorer {
  const length = meanLength(rows, width);
  return (direction) => levelled(project(rows, direction), length * norm(direction));
}

/** Of one direction, with a bias. */
export function scoreRows(rows: Float32Array, direction: Float32Array, bias: number): Float64Array {
  return createScorer(rows, direction.length)(direction).map((score) => score + bias);
}

/** Plain products with a direction. */
export function project(rows: Float32Array, direction: Float32Array): Float64Array {
  const width = direction.length;
  return Float64Array.from({ length: rows.length / width }, (_, row) => dot(rows, direction, row * width));
}

/** Of scores whose difference may be rounding, all get the lowest. `reach`: what a row of the usual length can score. */
export function levelled(scores: Float64Array, reach: number): Float64Array {
  const order = Uint32Array.from(scores.keys()).sort((a, b) => (scores[a] ?? 0) - (scores[b] ?? 0));
  const result = new Float64Array(scores.length);
  let lowest = Number.NEGATIVE_INFINITY;
  for (const place of order) {
    const score = scores[place] ?? 0;
    if (score - lowest > ROUNDING * reach) lowest = score;
    result[place] = lowest;
  }
  return result;
}

export function meanLength(rows: Float32Array, width: number): number {
  const count = rows.length / width;
  return mean(Array.from({ length: count }, (_, row) => norm(rows.subarray(row * width, (row + 1) * width))));
}
