/** Places named axes in a random orthonormal basis, so that no axis of the model means anything. */

import { missing } from '../../../src/lab/core/missing.ts';
import type { Random } from '../../../src/lab/statistics/random.ts';
import { addScaled, dot, norm } from '../../../src/lab/statistics/vectors.ts';
import type { Named } from './blueprint.ts';

export interface RotatedBasis {
  /** The vector in the model's own axes. */
  place(named: Named): Float64Array;
}

/** `takesMean` says that the model's norms do. The axis `level` is what they take: the same number everywhere. */
export function createRotatedBasis(
  width: number,
  axes: readonly string[],
  takesMean: boolean,
  random: Random,
): RotatedBasis {
  // The basis is orthogonal to what a layer norm takes away, and so loses nothing.
  const taken = takesMean ? [new Float64Array(width).fill(1 / Math.sqrt(width))] : [];
  const turned = axes.filter((axis) => axis !== 'level');
  if (turned.length + taken.length > width)
    throw new RangeError(`${turned.length} axes do not fit into a width of ${width}.`);
  const rows = orthonormalRows(width, turned.length, taken, random);
  const byName = new Map(turned.map((axis, i) => [axis, rows[i] ?? missing('row', i)]));
  for (const mean of taken) byName.set('level', mean);

  return {
    place(named) {
      const vector = new Float64Array(width);
      for (const [axis, weight] of Object.entries(named)) {
        addScaled(vector, byName.get(axis) ?? missing('axis', axis), 0, weight);
      }
      return vector;
    },
  };
}

function orthonormalRows(width: number, count: number, taken: readonly Float64Array[], random: Random): Float64Array[] {
  const rows = [...taken];
  while (rows.length < count + taken.length) {
    const row = Float64Array.from({ length: width }, () => random.normal());
    // Twice, as once leaves rounding errors in.
    for (const other of [...rows, ...rows]) addScaled(row, other, 0, -dot(other, row));
    const length = norm(row);
    rows.push(row.map((value) => value / length));
  }
  return rows.slice(taken.length);
}
