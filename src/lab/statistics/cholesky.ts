/** Solves linear equations with a symmetric positive definite matrix. */

import { missing } from '../core/missing.ts';

/** Solves A x = b for many b. The matrix is row-major and is overwritten. */
export function choleskySolver(matrix: Float64Array, size: number): (b: Float64Array) => Float64Array {
  for (let row = 0; row < size; row++) {
    for (let column = 0; column <= row; column++) {
      const [own, other] = [row * size, column * size];
      let sum = matrix[own + column] ?? missing('row of the matrix', row);
      for (let k = 0; k < column; k++) {
        sum -=
          (matrix[own + k] ?? missing('row of the matrix', row)) *
          (matrix[other + k] ?? missing('row of the matrix', column));
      }
      matrix[own + column] = row === column ? Math.sqrt(sum) : sum / at(column, column);
    }
  }
  return (b) => {
    const x = Float64Array.from(b);
    for (let row = 0; row < size; row++) {
      let sum = known(x, row);
      for (let k = 0; k < row; k++) sum -= at(row, k) * known(x, k);
      x[row] = sum / at(row, row);
    }
    for (let row = size - 1; row >= 0; row--) {
      let sum = known(x, row);
      for (let k = row + 1; k < size; k++) sum -= at(k, row) * known(x, k);
      x[row] = sum / at(row, row);
    }
    return x;
  };

  function at(row: number, column: number): number {
    return matrix[row * size + column] ?? missing('row of the matrix', row);
  }
}

function known(x: Float64Array, row: number): number {
  return x[row] ?? missing('right-hand side of row', row);
}
