/** Computes products and sums of vectors in double precision. Rows of a matrix are addressed by an offset, so that nothing is copied. */

import { missing } from '../core/missing.ts';

type Numbers = Float32Array | Float64Array;

/** The product of `b` with as many numbers of `a`, from the offset on. */
export function dot(a: Numbers, b: Numbers, offset = 0): number {
  let sum = 0;
  for (let i = 0; i < b.length; i++) {
    sum += (a[offset + i] ?? missing('number', offset + i)) * (b[i] ?? missing('number', i));
  }
  return sum;
}

export function norm(values: Numbers): number {
  return Math.sqrt(dot(values, values));
}

/** Adds `factor` times a row of the matrix to the target. */
export function addScaled(target: Float64Array, matrix: Numbers, offset: number, factor: number): void {
  for (let i = 0; i < target.length; i++) {
    const value = matrix[offset + i] ?? missing('number of the matrix', offset + i);
    target[i] = (target[i] ?? missing('sum', i)) + factor * value;
  }
}

export function scaled(vector: Numbers, factor: number): Float32Array {
  const result = new Float32Array(vector.length);
  for (let i = 0; i < result.length; i++) result[i] = (vector[i] ?? missing('number', i)) * factor;
  return result;
}

/** Rows taken from their mean. */
export function centreRows(rows: Numbers, width: number): { centre: Float64Array; centred: Float64Array } {
  const count = rows.length / width;
  const centre = new Float64Array(width);
  for (let row = 0; row < count; row++) addScaled(centre, rows, row * width, 1 / count);
  const meanOf = (column: number) => centre[column] ?? missing('mean of column', column);
  return { centre, centred: Float64Array.from(rows, (value, i) => value - meanOf(i % width)) };
}
