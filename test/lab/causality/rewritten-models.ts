/** Rewrites the weights of hand-built models in ways that must change no verdict: a rotation of the residual stream, and the gain of the read-out. */

import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeSafetensors, openSafetensors, type TensorToWrite } from '../../../src/lab/formats/safetensors.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { type Matrix, randomRotation, transpose, turnRows } from '../ground-truth/models/matrices.ts';

/** What adds to the residual stream; everything else reads from it. */
const WRITES = /\.(o_proj|down_proj)\.weight$/;
/** The last block, which answers. */
const READ_OUT = /^model\.layers\.1\.(self_attn\.o_proj|mlp\.down_proj)\.weight$/;

export function rotate(from: string, to: string, seed: number): (direction: readonly number[]) => number[] {
  let rotation: Matrix | undefined;
  const rotationOf = (width: number) => {
    rotation ??= randomRotation(width, createRandom(seed, 'rotation of a model'));
    return rotation;
  };
  rewrite(from, to, (name, matrix) =>
    WRITES.test(name)
      ? transpose(turnRows(transpose(matrix), rotationOf(matrix.rows)))
      : turnRows(matrix, rotationOf(matrix.columns)),
  );
  return (direction) => {
    const row = { rows: 1, columns: direction.length, values: Float64Array.from(direction) };
    return Array.from(turnRows(row, rotationOf(direction.length)).values);
  };
}

/** Multiplies what the last block makes of what it reads. */
export function amplify(from: string, to: string, gain: number): void {
  rewrite(from, to, (name, matrix) =>
    READ_OUT.test(name) ? { ...matrix, values: matrix.values.map((value) => gain * value) } : matrix,
  );
}

function rewrite(from: string, to: string, change: (name: string, matrix: Matrix) => Matrix): void {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    if (name.endsWith('.json')) copyFileSync(join(from, name), join(to, name));
  }
  const file = openSafetensors(join(from, 'model.safetensors'));
  try {
    const tensors: Record<string, TensorToWrite> = {};
    for (const [name, { shape }] of file.tensors) {
      const values = file.float32(name);
      const [rows, columns] = shape;
      const changed =
        rows === undefined || columns === undefined
          ? values
          : change(name, { rows, columns, values: Float64Array.from(values) }).values;
      tensors[name] = { dtype: 'F32', shape, data: Float32Array.from(changed) };
    }
    writeFileSync(join(to, 'model.safetensors'), encodeSafetensors(tensors));
  } finally {
    file.close();
  }
}
