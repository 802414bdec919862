/**
 * Maps a model's tensors to Cuvette's own names, whatever its files call them. Every matrix is [out, in], row by row, so that y = W x + b:
 *
 * - `embedding` [vocabulary, width]; `positions` [context, width], where they are learned
 * - `layers.{i}.attention.{norm,afterNorm}.{weight,bias}`, `layers.{i}.attention.{query,key,value,output}.{weight,bias}`
 * - `layers.{i}.attention.{queryNorm,keyNorm}.weight`, or `layers.{i}.attention.{queryNorm,keyNorm}.{head}.weight` where heads have weights of their own
 * - `layers.{i}.mlp.{norm,afterNorm}.{weight,bias}`, `layers.{i}.mlp.{up,gate,down}.{weight,bias}`
 * - `final.norm.{weight,bias}`; `unembedding.weight`, which is absent where it is the embedding
 *
 * Biases and norms are absent where the model has none: `norm` is before attention or MLP, `afterNorm` behind it. A parallel block without `mlp.norm` has
 * one norm for both.
 */

import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import type { SafetensorsFile } from '../formats/safetensors.ts';
import type { Stored } from './architectures/layout.ts';
import type { WeightFiles } from './weight-files.ts';

export interface WeightTensor {
  shape: readonly number[];
  /** The target holds exactly the tensor's numbers. */
  read(target: Float32Array): void;
}

export function weightTensors(files: WeightFiles, layout: ReadonlyMap<string, Stored>): Map<string, WeightTensor> {
  const tensors = new Map<string, WeightTensor>();
  const parts = createPartBuffer();
  for (const [name, stored] of layout) {
    const found = find(files, stored);
    if (found) tensors.set(name, { shape: stored.shape, read: (target) => read(found, stored, target, parts) });
  }
  return tensors;
}

interface Found {
  file: SafetensorsFile;
  /** In the file. */
  name: string;
}

function find(files: WeightFiles, { names, storedShape, optional }: Stored): Found | undefined {
  for (const name of names) {
    const file = files.holding(name);
    const entry = file?.tensors.get(name);
    if (!file || !entry) continue;
    if (String(entry.shape) === String(storedShape)) return { file, name };
    const shapes = `it has the shape [${entry.shape.join(', ')}], and config.json asks for [${storedShape.join(', ')}]`;
    throw new CuvetteError('bad_model', `Tensor ${name} in ${file.path} does not fit: ${shapes}. ${ADVICE}`);
  }
  if (optional) return undefined;
  throw new CuvetteError('bad_model', `Tensor ${names[0]} is missing in ${files.paths.join(', ')}. ${ADVICE}`);
}

const ADVICE = 'Weights and config.json must be of the same model; fetch both again.';

function read(
  { file, name }: Found,
  { part, storedShape, shape, offset = 0, scale = 1 }: Stored,
  target: Float32Array,
  parts: PartBuffer,
): void {
  if (part.kind === 'columns') {
    const [rows = missing('rows of', name), columns = missing('columns of', name)] = storedShape;
    const count = shape[0] ?? missing('rows of', name);
    readTransposed(file, name, { rows, columns, first: part.first, count }, target, parts);
  } else {
    // A vector is a matrix of one column.
    const [rows = missing('rows of', name), columns = 1] = storedShape;
    const block = part.size * columns;
    for (let row = part.first, done = 0; row < rows; row += part.step, done += block) {
      file.into(name, target.subarray(done, done + block), { first: row * columns });
    }
  }
  if (scale === 1 && offset === 0) return;
  for (let i = 0; i < target.length; i++) {
    target[i] = ((target[i] ?? missing(`weight of ${name}`, i)) + offset) * scale;
  }
}

/** Numbers of a stored matrix that are held at a time. */
const PART = 1 << 18;

/** Gives room for so many numbers, which the next caller writes over. */
type PartBuffer = (count: number) => Float32Array;

/** One buffer for all tensors: one for each would stay in the process's memory after the model is loaded. */
function createPartBuffer(): PartBuffer {
  let buffer = new Float32Array();
  return (count) => {
    if (buffer.length < count) buffer = new Float32Array(Math.max(count, PART));
    return buffer.subarray(0, count);
  };
}

/** Reads `count` columns from `first` on; they become the rows of the target. */
function readTransposed(
  file: SafetensorsFile,
  name: string,
  { rows, columns, first, count }: { rows: number; columns: number; first: number; count: number },
  target: Float32Array,
  parts: PartBuffer,
): void {
  const rowsAtOnce = Math.max(1, Math.min(rows, Math.floor(PART / columns)));
  const part = parts(rowsAtOnce * columns);
  for (let start = 0; start < rows; start += rowsAtOnce) {
    const held = Math.min(rowsAtOnce, rows - start);
    file.into(name, part.subarray(0, held * columns), { first: start * columns });
    for (let column = 0; column < count; column++) {
      const to = column * rows + start;
      for (let row = 0; row < held; row++) {
        target[to + row] = part[row * columns + first + column] ?? missing(`row of ${name}`, start + row);
      }
    }
  }
}
