/** Describes how an architecture stores a model: which tensor of its files, and which part of it, is each of Cuvette's own tensors. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from './model-spec.ts';

/** What an architecture makes of config.json. */
export interface Layout {
  spec: Omit<ModelSpec, 'architecture' | 'endTokens'>;
  /** By Cuvette's names, see `weights.ts`. */
  tensors: Map<string, Stored>;
}

export interface Stored {
  /** The names that files give it; the first that is there counts. */
  names: readonly string[];
  /** As stored. */
  storedShape: readonly number[];
  /** As engines want it: matrices are [out, in]. */
  shape: readonly number[];
  part: Part;
  /** Added to all numbers, as to the weights of Gemma's norms. */
  offset?: number;
  /** All numbers, with the offset, are multiplied by it. */
  scale?: number;
  /** May be missing, as the unembedding of a model that uses its embedding for that. */
  optional?: boolean;
}

/**
 * - `rows`: `size` rows out of every `step`, beginning with row `first`.
 * - `columns`: columns from `first` on become rows, for families that store matrices as [in, out].
 */
export type Part = { kind: 'rows'; first: number; size: number; step: number } | { kind: 'columns'; first: number };

export function wholeTensor(names: readonly string[], shape: readonly number[]): Stored {
  const rows = shape[0] ?? missing('rows of', names.join(' or '));
  return { names, storedShape: shape, shape, part: { kind: 'rows', first: 0, size: rows, step: rows } };
}

/** Of a matrix whose rows are those of `parts` matrices, `heads` times one after the other: the one with number `part`. */
export function fusedRows(
  names: readonly string[],
  shape: readonly [number] | readonly [number, number],
  { part, parts, heads = 1 }: { part: number; parts: number; heads?: number },
): Stored {
  const [rows, ...columns] = shape;
  const size = rows / heads;
  const chosen: Part = { kind: 'rows', first: part * size, size, step: parts * size };
  return { names, storedShape: [parts * rows, ...columns], shape, part: chosen };
}

/** Of a matrix with `total` rows: as many as the shape has, from `first` on. */
export function someRows(
  names: readonly string[],
  shape: readonly [number, number],
  { first, total }: { first: number; total: number },
): Stored {
  const [size, columns] = shape;
  return { names, storedShape: [total, columns], shape, part: { kind: 'rows', first, size, step: total } };
}

/** Of a matrix stored as [in, parts × out]: the one with number `part`. */
export function fusedColumns(
  names: readonly string[],
  shape: readonly [number, number],
  { part, parts }: { part: number; parts: number },
): Stored {
  const [out, inner] = shape;
  return { names, storedShape: [inner, parts * out], shape, part: { kind: 'columns', first: part * out } };
}
