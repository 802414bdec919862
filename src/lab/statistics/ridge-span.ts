/** Projects vectors onto the span of rows, with a ridge, so that what hardly varies in the rows hardly counts. */

import { missing } from '../core/missing.ts';
import { choleskySolver } from './cholesky.ts';
import { addScaled, dot, norm } from './vectors.ts';

/** The ridge is this share of the mean square of a coordinate. */
const RIDGE = 0.01;

/** Gives the part of a vector that lies in the span. Rows are taken as they are, not from their mean. */
export function spanOf(rows: readonly Float32Array[], width: number): (vector: Float32Array) => Float32Array {
  const count = rows.length;
  const row = (i: number) => rows[i] ?? missing('row', i);
  const square = rows.reduce((total, one) => total + norm(one) ** 2, 0);
  if (square === 0) return () => new Float32Array(width);
  // As a sum over rows, as the products are.
  const ridge = (RIDGE * square) / width;
  const products = new Float64Array(count * count);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j <= i; j++) {
      const product = dot(row(i), row(j)) + (i === j ? ridge : 0);
      products[i * count + j] = product;
      products[j * count + i] = product;
    }
  }
  const solve = choleskySolver(products, count);
  return (vector) => {
    const weights = solve(Float64Array.from(rows, (one) => dot(one, vector)));
    const part = new Float64Array(width);
    weights.forEach((weight, i) => {
      addScaled(part, row(i), 0, weight);
    });
    return Float32Array.from(part);
  };
}
