/** Computes eigenvalues and eigenvectors of a symmetric matrix, by Jacobi's rotations. */

import { missing } from '../core/missing.ts';

const MOST_SWEEPS = 50;
/** Off-diagonal squares below this share of all are none. */
const TINY = 1e-24;

export interface Eigenpair {
  value: number;
  /** Of length 1. */
  vector: Float64Array;
}

/** The largest eigenvalue first. The matrix is row-major, size × size. */
export function symmetricEigen(matrix: Float64Array, size: number): Eigenpair[] {
  const a = Float64Array.from(matrix);
  const vectors = Float64Array.from({ length: size * size }, (_, i) => (i % (size + 1) === 0 ? 1 : 0));
  const at = (row: number, column: number) => a[row * size + column] ?? missing('element in row', row);
  const total = a.reduce((sum, value) => sum + value * value, 0);
  for (let sweep = 0; sweep < MOST_SWEEPS; sweep++) {
    let rest = 0;
    for (let p = 0; p < size; p++) for (let q = 0; q < p; q++) rest += at(p, q) ** 2;
    if (rest <= TINY * total) break;
    for (let p = 1; p < size; p++) {
      for (let q = 0; q < p; q++) if (at(p, q) !== 0) rotate(p, q);
    }
  }
  return Array.from({ length: size }, (_, column) => ({
    value: at(column, column),
    vector: Float64Array.from({ length: size }, (__, row) => vectors[row * size + column] ?? missing('row', row)),
  })).sort((x, y) => y.value - x.value);

  /** Makes the element at p, q zero. */
  function rotate(p: number, q: number): void {
    const theta = (at(q, q) - at(p, p)) / (2 * at(p, q));
    const tangent = Math.sign(theta || 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1));
    const cosine = 1 / Math.sqrt(tangent * tangent + 1);
    const sine = tangent * cosine;
    turn(a, p, q, size, cosine, sine);
    turn(a, p * size, q * size, 1, cosine, sine);
    turn(vectors, p, q, size, cosine, sine);
  }

  /** Combines two lines of numbers that start at `first` and `second`. */
  function turn(
    numbers: Float64Array,
    first: number,
    second: number,
    stride: number,
    cosine: number,
    sine: number,
  ): void {
    for (let k = 0; k < size; k++) {
      const [i, j] = [first + k * stride, second + k * stride];
      const [x, y] = [numbers[i] ?? missing('number', i), numbers[j] ?? missing('number', j)];
      numbers[i] = cosine * x - sine * y;
      numbers[j] = sine * x + cosine * y;
    }
  }
}
