/** Moves subspaces: orthonormal columns are turned along a tangent of the manifold of subspaces, and made orthonormal again. */

import { missing } from '../core/missing.ts';
import { addScaled, dot, norm } from './vectors.ts';

/** The columns of a matrix. */
export type Columns = readonly Float64Array[];

/** The part of a vector in the span of orthonormal columns. */
export function projectOn(columns: Columns, vector: Float64Array): Float64Array {
  const part = new Float64Array(vector.length);
  for (const column of columns) addScaled(part, column, 0, dot(column, vector));
  return part;
}

/** What a gradient by the columns says about turning their span: what lies within it is no turn. */
export function tangentAt(columns: Columns, gradient: Columns): Float64Array[] {
  return gradient.map((one) => {
    const within = projectOn(columns, one);
    return one.map((value, i) => value - (within[i] ?? missing('number', i)));
  });
}

/** SessionQueue by an angle, in radians, where the tangent is of one column; of several, by that much in all. */
export function turned(columns: Columns, tangent: Columns, angle: number): Float64Array[] {
  const length = Math.hypot(...tangent.map(norm));
  const moved = columns.map((column, which) => {
    const next = Float64Array.from(column);
    addScaled(next, tangent[which] ?? missing('tangent of column', which), 0, Math.tan(angle) / length);
    return next;
  });
  return orthonormal(moved);
}

/** By Gram and Schmidt's method, twice over, as one pass leaves rounding errors. Columns must be independent. */
function orthonormal(columns: Columns): Float64Array[] {
  const found: Float64Array[] = [];
  for (const column of columns) {
    const next = Float64Array.from(column);
    for (const other of [...found, ...found]) addScaled(next, other, 0, -dot(other, next));
    const length = norm(next);
    found.push(next.map((value) => value / length));
  }
  return found;
}
