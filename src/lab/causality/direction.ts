/** Gives the direction of a question as a unit vector, as it was given or fitted to activations. */

import { CuvetteError } from '../../errors.ts';
import { differenceOfMeans } from '../statistics/difference-of-means.ts';
import { fitLogistic } from '../statistics/logistic.ts';
import { centreRows, norm, scaled } from '../statistics/vectors.ts';
import type { CausalQuestion } from './question.ts';

export interface Fit {
  method: CausalFit['method'];
  c?: number | undefined;
}

type CausalFit = Extract<CausalQuestion['direction'], { kind: 'fit' }>;

/** Points from label 0 to label 1. Rows are `labels.length` × width. A fit on interchange takes runs of the model, and is made elsewhere. */
export function fitDirection(rows: Float32Array, labels: ArrayLike<number>, width: number, fit: Fit): Float32Array {
  const found = fit.method === 'logistic' ? logisticDirection(rows, labels, fit.c) : differenceOfMeans(rows, labels);
  const length = norm(found);
  // Classes with equal means have no direction between them: any will do, as none separates them.
  if (!(length > 0)) return Float32Array.from({ length: width }, (_, i) => (i === 0 ? 1 : 0));
  return scaled(found, 1 / length);
}

export function givenDirection(vector: readonly number[], width: number): Float32Array {
  if (vector.length !== width) {
    throw new CuvetteError(
      'invalid_input',
      `The direction has ${vector.length} numbers, and activations of this model have ${width}. It belongs to another model.`,
    );
  }
  if (!vector.every(Number.isFinite)) {
    throw new CuvetteError(
      'invalid_input',
      'The direction has a number that is not finite. Give the vector of a trained probe.',
    );
  }
  const values = Float64Array.from(vector);
  const length = norm(values);
  if (length === 0) {
    throw new CuvetteError('invalid_input', 'All numbers of the direction are 0. Give the vector of a trained probe.');
  }
  return scaled(values, 1 / length);
}

/** The chosen rows of a matrix. */
export function rowsOf(matrix: Float32Array, rows: readonly number[], width: number): Float32Array {
  const result = new Float32Array(rows.length * width);
  rows.forEach((row, i) => {
    result.set(matrix.subarray(row * width, (row + 1) * width), i * width);
  });
  return result;
}

/** Rows are scaled by one factor, so that the penalty means the same in models of any size. */
function logisticDirection(rows: Float32Array, labels: ArrayLike<number>, c = 1): Float64Array {
  const { centred } = centreRows(rows, rows.length / labels.length);
  const spread = norm(centred) / Math.sqrt(centred.length);
  if (spread === 0) return new Float64Array(rows.length / labels.length);
  return fitLogistic(scaled(centred, 1 / spread), labels, { c }).weights;
}
