/** Computes the direction from the mean of the rows labelled 0 to the mean of those labelled 1. */

import { addScaled } from './vectors.ts';

/** Rows are `labels.length` × width. */
export function differenceOfMeans(rows: Float32Array | Float64Array, labels: ArrayLike<number>): Float64Array {
  const width = rows.length / labels.length;
  let positives = 0;
  for (let row = 0; row < labels.length; row++) positives += labels[row] === 1 ? 1 : 0;
  const result = new Float64Array(width);
  for (let row = 0; row < labels.length; row++) {
    addScaled(result, rows, row * width, labels[row] === 1 ? 1 / positives : -1 / (labels.length - positives));
  }
  return result;
}
