/** Makes the random-weights twin of a model: the same shape and tokenizer, and each tensor's weights shuffled. */

import { copyFileSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { encodeSafetensors, openSafetensors, type TensorToWrite } from '../../../../src/lab/formats/safetensors.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';

export function writeRandomTwin(folder: string, twin: string, seed: number): void {
  mkdirSync(twin, { recursive: true });
  for (const name of readdirSync(folder)) {
    if (name.endsWith('.json')) copyFileSync(join(folder, name), join(twin, name));
  }
  writeFileSync(join(twin, 'model.safetensors'), shuffledWeights(join(folder, 'model.safetensors'), seed));
}

/** Shuffling keeps the distribution of the weights. Norms and biases are copied. */
export function shuffledWeights(path: string, seed: number): Uint8Array {
  const file = openSafetensors(path);
  try {
    const tensors: Record<string, TensorToWrite> = {};
    for (const [name, { shape }] of file.tensors) {
      const values = file.float32(name);
      const random = createRandom(seed, `twin of ${name}`);
      const data = shape.length > 1 ? Float32Array.from(random.shuffle(values)) : values;
      tensors[name] = { dtype: 'F32', shape, data };
    }
    return encodeSafetensors(tensors);
  } finally {
    file.close();
  }
}
