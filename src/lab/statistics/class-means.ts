/** Computes the mean row of each class. */

import { missing } from '../core/missing.ts';
import { addScaled } from './vectors.ts';

/** Rows are `labels.length` × width. NaN for a class without rows. */
export function classMeans(
  rows: Float32Array | Float64Array,
  labels: ArrayLike<number>,
  classes: number,
): Float64Array[] {
  const width = rows.length / labels.length;
  const labelAt = (row: number) => labels[row] ?? missing('label of row', row);
  const counts = new Float64Array(classes);
  for (let row = 0; row < labels.length; row++) counts[labelAt(row)] = (counts[labelAt(row)] ?? missing('class')) + 1;
  const means = Array.from(counts, (count) => new Float64Array(width).fill(count === 0 ? Number.NaN : 0));
  for (let row = 0; row < labels.length; row++) {
    const label = labelAt(row);
    addScaled(
      means[label] ?? missing('class', label),
      rows,
      row * width,
      1 / (counts[label] ?? missing('class', label)),
    );
  }
  return means;
}

/** From one mean to another. */
export function between(to: Float64Array, from: Float64Array): Float64Array {
  return to.map((value, i) => value - (from[i] ?? missing('number of the mean', i)));
}
