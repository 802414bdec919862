/** Opens a model's folder in Hugging Face's layout: config.json, tokenizer.json and weights in safetensors. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import { elementsOf } from '../formats/tensor-file.ts';
import { readLayout } from './architectures/architectures.ts';
import type { ModelSpec } from './architectures/model-spec.ts';
import { hashOfFiles } from './hashes.ts';
import { openTokenizer, type Tokenizer } from './tokenizer.ts';
import { openWeightFiles } from './weight-files.ts';
import { type WeightTensor, weightTensors } from './weights.ts';

export interface ModelFiles {
  folder: string;
  spec: ModelSpec;
  /** How many numbers the tensors hold. */
  parameters: number;
  /** By the names in `weights.ts`. */
  tensors: ReadonlyMap<string, WeightTensor>;
  tokenizer: Tokenizer;
  /** SHA-256 of the weight files' contents, in the order of their names, and of tokenizer.json. */
  hashes: { weights: string; tokenizer: string };
  /** Tensors cannot be read any more. */
  close(): void;
}

export async function openModelFolder(folder: string, signal?: AbortSignal): Promise<ModelFiles> {
  if (!existsSync(folder)) {
    throw new CuvetteError(
      'unknown_model',
      `There is no folder ${folder}. Give the path of a folder that holds a model.`,
    );
  }
  const { spec, tensors: layout } = readLayout(folder);
  const tokenizer = openTokenizer(folder, spec.vocabulary);
  const files = openWeightFiles(folder);
  try {
    const tensors = weightTensors(files, layout);
    const hashes = {
      weights: await hashOfFiles(files.paths, signal),
      tokenizer: await hashOfFiles([join(folder, 'tokenizer.json')], signal),
    };
    return { folder, spec, parameters: parametersOf(tensors), tensors, tokenizer, hashes, close: files.close };
  } catch (error) {
    files.close();
    throw error;
  }
}

function parametersOf(tensors: ReadonlyMap<string, WeightTensor>): number {
  let sum = 0;
  for (const { shape } of tensors.values()) sum += elementsOf(shape);
  return sum;
}
