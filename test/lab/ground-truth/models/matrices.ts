/** Writes matrices in a basis with named axes, and rotates them into one where no axis means anything. */

import { missing } from '../../../../src/lab/core/missing.ts';
import type { Random } from '../../../../src/lab/statistics/random.ts';
import { addScaled, dot, norm } from '../../../../src/lab/statistics/vectors.ts';

/** Row-major. */
export interface Matrix {
  rows: number;
  columns: number;
  values: Float64Array;
}

export function zeros(rows: number, columns: number): Matrix {
  return { rows, columns, values: new Float64Array(rows * columns) };
}

export function put({ columns, values }: Matrix, row: number, column: number, value: number): void {
  values[row * columns + column] = value;
}

function get({ columns, values }: Matrix, row: number, column: number): number {
  return values[row * columns + column] ?? missing('number of row', row);
}

/** An orthogonal matrix whose first row is the same number throughout, and otherwise all of them alike: Gram and Schmidt's of normal numbers. */
export function randomRotation(size: number, random: Random): Matrix {
  const rotation = zeros(size, size);
  for (let row = 0; row < size; row++) {
    const values = rotation.values.subarray(row * size, (row + 1) * size);
    for (let i = 0; i < size; i++) values[i] = row === 0 ? 1 : random.normal();
    // Twice, as once leaves rounding errors in.
    for (let other = 0; other < 2 * row; other++) {
      const offset = (other % row) * size;
      addScaled(values, rotation.values, offset, -dot(rotation.values, values, offset));
    }
    const length = norm(values);
    for (let i = 0; i < size; i++) values[i] = (values[i] ?? missing('number', i)) / length;
  }
  return rotation;
}

/** For rows that are read from or added to the residual stream: each row in the turned basis. */
export function turnRows(matrix: Matrix, rotation: Matrix): Matrix {
  const { rows, columns } = matrix;
  const result = zeros(rows, columns);
  for (let row = 0; row < rows; row++) {
    const turned = result.values.subarray(row * columns, (row + 1) * columns);
    for (let axis = 0; axis < columns; axis++) {
      const value = get(matrix, row, axis);
      if (value !== 0) addScaled(turned, rotation.values, axis * columns, value);
    }
  }
  return result;
}

export function transpose(matrix: Matrix): Matrix {
  const { rows, columns } = matrix;
  const result = zeros(columns, rows);
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) put(result, column, row, get(matrix, row, column));
  }
  return result;
}

export function stackRows(matrices: readonly Matrix[]): Matrix {
  const columns = matrices[0]?.columns ?? missing('matrix', 0);
  const stacked = zeros(
    matrices.reduce((rows, matrix) => rows + matrix.rows, 0),
    columns,
  );
  let offset = 0;
  for (const { values } of matrices) {
    stacked.values.set(values, offset);
    offset += values.length;
  }
  return stacked;
}
