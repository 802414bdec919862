/** Reads an SAE's weights from a file of tensors into the one orientation that the lab computes with, and rescales them for loaders. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import type { Sae } from '../core/sae.ts';
import { elementsOf, type StoredTensor, type TensorFile } from '../formats/tensor-file.ts';

/** What the tensors are called, and for matrices whether the file has one row for each number of the width instead of one for each feature. */
export interface WeightNames {
  encoder: string;
  encoderByWidth: boolean;
  /** Absent where the encoder has no bias of its own. */
  encoderBias?: string;
  decoder: string;
  decoderByWidth: boolean;
  decoderBias?: string;
}

export type SaeWeights = Pick<Sae, 'width' | 'features' | 'encoder' | 'encoderBias' | 'decoder' | 'decoderBias'> & {
  outputWidth: number;
};

export async function readWeights(file: TensorFile, names: WeightNames, signal?: AbortSignal): Promise<SaeWeights> {
  const { rows: features, columns: width } = sizesOf(file, names.encoder, names.encoderByWidth);
  const { rows: decoded, columns: outputWidth } = sizesOf(file, names.decoder, names.decoderByWidth);
  if (decoded !== features) {
    throw unusable(
      file,
      `its encoder ${names.encoder} has ${features} features, its decoder ${names.decoder} ${decoded}`,
    );
  }
  return {
    width,
    features,
    outputWidth,
    encoder: await readMatrix(file, names.encoder, names.encoderByWidth, signal),
    encoderBias: readVector(file, names.encoderBias, features),
    decoder: await readMatrix(file, names.decoder, names.decoderByWidth, signal),
    decoderBias: readVector(file, names.decoderBias, outputWidth),
  };
}

/** Reads a vector: zeros if there is no name, and one number stands for all. */
export function readVector(file: TensorFile, name: string | undefined, length: number): Float32Array {
  const numbers = new Float32Array(length);
  if (name === undefined) return numbers;
  const { shape } = tensorOf(file, name);
  if (elementsOf(shape) === 1) return numbers.fill(readNumber(file, name));
  if (elementsOf(shape) !== length) throw unusable(file, `${name} has shape [${shape}] instead of [${length}]`);
  file.into(name, numbers);
  return numbers;
}

export function readNumber(file: TensorFile, name: string): number {
  const { shape } = tensorOf(file, name);
  if (elementsOf(shape) !== 1) throw unusable(file, `${name} has shape [${shape}] instead of one number`);
  const number = new Float32Array(1);
  file.into(name, number);
  return number[0] ?? missing(`number ${name} of`, file.path);
}

/** Row by row. `transposed` says that the matrix which is wanted is the other way round than its shape in the file. */
export async function readMatrix(
  file: TensorFile,
  name: string,
  transposed: boolean,
  signal?: AbortSignal,
): Promise<Float32Array> {
  const { rows, columns } = sizesOf(file, name, transposed);
  const matrix = new Float32Array(rows * columns);
  const isAsStored = transposed === (tensorOf(file, name).columnMajor ?? false);
  const stored = isAsStored ? { rows, columns } : { rows: columns, columns: rows };
  // A transposed block is written a few numbers at a time, so that it should have as many rows as fill a line of the cache.
  const blockRows = Math.min(stored.rows, Math.max(16, Math.floor(BLOCK / stored.columns)));
  const block = isAsStored ? matrix : new Float32Array(blockRows * stored.columns);
  for (let row = 0; row < stored.rows; row += blockRows) {
    signal?.throwIfAborted();
    const count = Math.min(blockRows, stored.rows - row) * stored.columns;
    const start = isAsStored ? row * stored.columns : 0;
    const part = block.subarray(start, start + count);
    file.into(name, part, { first: row * stored.columns });
    if (!isAsStored) transposeInto(matrix, part, row, stored);
    await nextTurn();
  }
  return matrix;
}

/** Multiplies each feature's row. */
export function scaleRows(matrix: Float32Array, factors: Float32Array): void {
  const columns = matrix.length / factors.length;
  for (let row = 0; row < factors.length; row++) {
    scaleAll(matrix.subarray(row * columns, (row + 1) * columns), factors[row] ?? missing('factor of row', row));
  }
}

export function scaleAll(numbers: Float32Array, factor: number): void {
  for (let i = 0; i < numbers.length; i++) numbers[i] = (numbers[i] ?? missing('weight', i)) * factor;
}

export function rowLengths(matrix: Float32Array, rows: number): Float32Array {
  const columns = matrix.length / rows;
  return Float32Array.from({ length: rows }, (_, row) => {
    let squares = 0;
    for (let i = row * columns; i < (row + 1) * columns; i++) squares += (matrix[i] ?? missing('weight', i)) ** 2;
    return Math.sqrt(squares);
  });
}

/** Normalises each feature's decoder row, and returns the norms. A row of zeros stays. */
export function shortenDecoderRows(weights: SaeWeights): Float32Array {
  const lengths = rowLengths(weights.decoder, weights.features).map((length) => length || 1);
  scaleRows(
    weights.decoder,
    lengths.map((length) => 1 / length),
  );
  return lengths;
}

/** The same, and scales each feature by the norm, so that the reconstruction stays the same. */
export function foldDecoderLengths(weights: SaeWeights): Float32Array {
  const lengths = shortenDecoderRows(weights);
  scaleRows(weights.encoder, lengths);
  scaleRows(weights.encoderBias, lengths);
  return lengths;
}

/** Folds a factor of the training activations into the weights, so that the SAE works on unscaled activations. */
export function foldInputScale(weights: SaeWeights, scale: number): void {
  scaleAll(weights.encoder, scale);
  scaleAll(weights.decoder, 1 / scale);
  scaleAll(weights.decoderBias, 1 / scale);
}

/** Numbers that are transposed in one block. */
const BLOCK = 1 << 21;
const TILE = 16;

function transposeInto(
  matrix: Float32Array,
  block: Float32Array,
  firstRow: number,
  stored: { rows: number; columns: number },
): void {
  const blockRows = block.length / stored.columns;
  // By tiles: what is read and what is written at a time has to fit the cache.
  for (let left = 0; left < stored.columns; left += TILE) {
    const right = Math.min(left + TILE, stored.columns);
    for (let row = 0; row < blockRows; row++) {
      const start = row * stored.columns;
      for (let column = left; column < right; column++) {
        matrix[column * stored.rows + firstRow + row] = block[start + column] ?? missing('weight', start + column);
      }
    }
  }
}

/** Of the matrix that is wanted. Further dimensions of a tensor count as columns, row after row. */
function sizesOf(file: TensorFile, name: string, transposed: boolean): { rows: number; columns: number } {
  const { shape } = tensorOf(file, name);
  const [first = 0, ...rest] = shape;
  if (rest.length === 0 || (transposed && rest.length > 1))
    throw unusable(file, `${name} has shape [${shape}] and is no matrix`);
  const second = elementsOf(rest);
  if (first * second === 0) throw unusable(file, `${name} is empty`);
  return transposed ? { rows: second, columns: first } : { rows: first, columns: second };
}

function tensorOf(file: TensorFile, name: string): StoredTensor {
  const tensor = file.tensors.get(name);
  if (tensor === undefined)
    throw unusable(file, `it has no ${name}, only ${[...file.tensors.keys()].slice(0, 20).join(', ')}`);
  return tensor;
}

function unusable(file: TensorFile, what: string): CuvetteError {
  return new CuvetteError('bad_model', `${file.path} cannot be used as a sparse autoencoder: ${what}.`);
}
