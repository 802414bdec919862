/**
 * Names the axes of a residual stream, and turns what is written along them by one random rotation, so that no coordinate means
 * anything. All of them are orthogonal to the direction that a layer norm takes the mean along, so that it does what an RMS norm does.
 */

import type { Random } from '../../../../src/lab/statistics/random.ts';
import { type Matrix, put, randomRotation, transpose, turnRows, zeros } from './matrices.ts';

/** Numbers along axes with names. */
export type Along = Readonly<Record<string, number>>;

export interface Basis {
  width: number;
  /** The column of an axis. A name that is new gets the next one that is free. */
  axis(name: string): number;
  /** Many axes under one name. */
  block(name: string, count: number): number[];
  /** Rows that are read from or added to the residual stream, turned. */
  turn(matrix: Matrix): Matrix;
  /** The same of columns. */
  turnColumns(matrix: Matrix): Matrix;
  direction(along: Along): Float64Array;
}

export function createBasis(width: number, random: Random): Basis {
  const rotation = randomRotation(width, random);
  const columns = new Map<string, number>();
  const basis: Basis = {
    width,
    axis(name) {
      const known = columns.get(name);
      if (known !== undefined) return known;
      // The first is the direction of the mean.
      const column = columns.size + 1;
      if (column >= width) throw new RangeError(`There is no axis left for ${name} in a width of ${width}.`);
      columns.set(name, column);
      return column;
    },
    block: (name, count) => Array.from({ length: count }, (_, i) => basis.axis(`${name} ${i}`)),
    turn: (matrix) => turnRows(matrix, rotation),
    turnColumns: (matrix) => transpose(turnRows(transpose(matrix), rotation)),
    direction(along) {
      const named = zeros(1, width);
      putAlong(named, 0, along, basis);
      return basis.turn(named).values;
    },
  };
  return basis;
}

export function putAlong(matrix: Matrix, row: number, along: Along, basis: Basis, factor = 1): void {
  for (const [name, value] of Object.entries(along)) put(matrix, row, basis.axis(name), factor * value);
}
