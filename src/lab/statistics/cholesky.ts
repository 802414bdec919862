/** Linear equations with a symmetric positive definite matrix. */

/** Solves A x = b for many b. The matrix is row-major and is overwritten. */
export function choleskySolver(matrix: Float64Array, size: number): (b: Float64Array) => Float64Array {
  for (let row = 0; row < size; row++) {
    for (let column = 0; column <= row; column++) {
      let sum = matrix[row * size + column] ?? 0;
      for (let k = 0; k < column; k++) sum -= (matrix[row * size + k] ?? 0) * (matrix[column * size + k] ?? 0);
      matrix[row * size + column] = row === column ? Math.sqrt(sum) : sum / (matrix[column * size + column] ?? 1);
    }
  }
  return (b) => {
    const x = Float64Array.from(b);
    for (let row = 0; row < size; row++) {
      let sum = x[row] ?? 0;
      for (let k = 0; k < row; k++) sum -= (matrix[row * size + k] ?? 0) * (x[k] ?? 0);
      x[row] = sum / (matrix[row * size + row] ?? 1);
    }
    for (let row = size - 1; row >= 0; row--) {
      let sum = x[row] ?? 0;
      for (let k = row + 1; k < size; k++) sum -= (matrix[k * size + row] ?? 0) * (x[k] ?? 0);
      x[row] = sum / (matrix[row * size + row] ?? 1);
    }
    return x;
  };
}
