/**
 * Scores activations along directions, and says how far apart two scores must be for one to be above the other. The last bits of
 * an activation differ from one engine or machine to the next; no rank may rest on them.
 */

import { CuvetteError } from '../../errors.ts';
import { mean } from './summary.ts';
import { dot, norm } from './vectors.ts';

/** Of what an activation can score: a hundred times what rounding in float32 accounts for. */
const RESOLUTION = 1e-4;

export interface Scores {
  values: Float64Array;
  resolution: number;
}

export type Scorer = (direction: Float32Array) => Scores;

/** Scores of the rows of a matrix: their products with a direction. */
export function createScorer(rows: Float32Array, width: number): Scorer {
  const resolve = resolutionAmong(rows, width);
  return (direction) => ({ values: project(rows, direction), resolution: resolve(norm(direction)) });
}

/** Of scores along a direction, by its length. */
export function resolutionAmong(rows: Float32Array, width: number): (length: number) => number {
  const count = rows.length / width;
  const usual = mean(Array.from({ length: count }, (_, row) => norm(rows.subarray(row * width, (row + 1) * width))));
  if (count > 0 && !Number.isFinite(usual))
    throw new CuvetteError(
      'bad_model',
      'An activation has a number that is not finite: it was too large for the precision of the model. Capture again in float32 or bfloat16.',
    );
  return (length) => RESOLUTION * usual * length;
}

/** Plain products with a direction. */
export function project(rows: Float32Array, direction: Float32Array): Float64Array {
  const width = direction.length;
  return Float64Array.from({ length: rows.length / width }, (_, row) => dot(rows, direction, row * width));
}
