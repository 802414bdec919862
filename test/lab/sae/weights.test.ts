/** Tests that matrices are read in one orientation, whichever the file has, also in many blocks. */

import { expect, test } from 'vitest';
import type { StoredTensor, TensorFile } from '../../../src/lab/formats/tensor-file.ts';
import { readMatrix, readVector, readWeights } from '../../../src/lab/sae/weights.ts';

/** More than are transposed at a time. */
const ROWS = 300;
const COLUMNS = 9000;

test.each([
  ['as it is wanted', { shape: [ROWS, COLUMNS] }, false, (row: number, column: number) => row * COLUMNS + column],
  ['the other way round', { shape: [COLUMNS, ROWS] }, true, (row: number, column: number) => column * ROWS + row],
  [
    'column by column',
    { shape: [ROWS, COLUMNS], columnMajor: true },
    false,
    (row: number, column: number) => column * ROWS + row,
  ],
  [
    'the other way round and column by column',
    { shape: [COLUMNS, ROWS], columnMajor: true },
    true,
    (row: number, column: number) => row * COLUMNS + column,
  ],
])('a matrix that the file has %s', async (_, tensor, transposed, placeOf) => {
  const numbers = Float32Array.from({ length: ROWS * COLUMNS }, (_, i) => i);
  const matrix = await readMatrix(fileOf({ m: { ...tensor, numbers } }), 'm', transposed);
  const wrong = matrix.findIndex((number, i) => number !== placeOf(Math.floor(i / COLUMNS), i % COLUMNS));
  expect(wrong).toBe(-1);
});

test('an SAE whose encoder and decoder do not fit each other is refused', async () => {
  const file = fileOf({
    e: { shape: [4, 2], numbers: new Float32Array(8) },
    d: { shape: [5, 2], numbers: new Float32Array(10) },
  });
  const names = { encoder: 'e', encoderByWidth: false, decoder: 'd', decoderByWidth: false };
  await expect(readWeights(file, names)).rejects.toThrow(/its encoder e has 4 features, its decoder d 5/);
});

test('SAE weights: one number stands for a whole vector, and any other length is refused', () => {
  const file = fileOf({
    one: { shape: [], numbers: Float32Array.of(7) },
    three: { shape: [3], numbers: Float32Array.of(1, 2, 3) },
  });
  expect([...readVector(file, 'one', 3)]).toEqual([7, 7, 7]);
  expect([...readVector(file, 'three', 3)]).toEqual([1, 2, 3]);
  expect(() => readVector(file, 'three', 4)).toThrow(/three has shape \[3\] instead of \[4\]/);
});

test('SAE weights that are no matrix are refused', async () => {
  const file = fileOf({
    v: { shape: [3], numbers: new Float32Array(3) },
    z: { shape: [0, 3], numbers: new Float32Array(0) },
  });
  await expect(readMatrix(file, 'v', false)).rejects.toThrow(/no matrix/);
  await expect(readMatrix(file, 'z', false)).rejects.toThrow(/is empty/);
});

function fileOf(tensors: Record<string, StoredTensor & { numbers: Float32Array }>): TensorFile {
  return {
    path: 'test',
    tensors: new Map(Object.entries(tensors)),
    into(name, target, options) {
      const first = options?.first ?? 0;
      target.set(tensors[name]?.numbers.subarray(first, first + target.length) ?? []);
    },
    close() {},
  };
}
