/** Opens a model's safetensors files, one or several with an index, as one table of tensors. */

import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { CuvetteError } from '../../errors.ts';
import { readJsonObject } from '../formats/json-object.ts';
import { openSafetensors, type SafetensorsFile } from '../formats/safetensors.ts';

export interface WeightFiles {
  /** In the order of their names. */
  paths: string[];
  /** The file that holds the tensor. */
  holding(tensor: string): SafetensorsFile | undefined;
  close(): void;
}

export function openWeightFiles(folder: string): WeightFiles {
  const single = join(folder, 'model.safetensors');
  if (!existsSync(single)) return openShards(folder);
  const file = openSafetensors(single);
  return { paths: [single], holding: (tensor) => (file.tensors.has(tensor) ? file : undefined), close: file.close };
}

const Index = z.object({ weight_map: z.record(z.string(), z.string()) });

function openShards(folder: string): WeightFiles {
  const indexPath = join(folder, 'model.safetensors.index.json');
  const { weight_map: shardOf } = parseIndex(indexPath, readJsonObject(indexPath) ?? noWeights(folder));
  const files = new Map<string, SafetensorsFile>();
  const close = () => {
    for (const file of files.values()) file.close();
  };
  try {
    for (const name of [...new Set(Object.values(shardOf))].sort()) files.set(name, openShard(folder, indexPath, name));
    for (const [tensor, shard] of Object.entries(shardOf)) {
      if (files.get(shard)?.tensors.has(tensor)) continue;
      const message = `${indexPath} says that tensor ${tensor} is in ${shard}, where it is not. Fetch the model again.`;
      throw new CuvetteError('bad_model', message);
    }
  } catch (error) {
    close();
    throw error;
  }
  const table = new Map(Object.entries(shardOf));
  return {
    paths: [...files.values()].map(({ path }) => path),
    holding: (tensor) => files.get(table.get(tensor) ?? ''),
    close,
  };
}

function parseIndex(path: string, json: Record<string, unknown>): z.infer<typeof Index> {
  const parsed = Index.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new CuvetteError('bad_model', `${path} is no index of weights: it needs a weight_map. Fetch it again.`);
}

function openShard(folder: string, indexPath: string, name: string): SafetensorsFile {
  const path = join(folder, name);
  // The index comes with the model, and must not lead out of its folder.
  if (basename(name) === name && existsSync(path)) return openSafetensors(path);
  const message = `${indexPath} names the file ${name}, which is not in ${folder}. Fetch the model again.`;
  throw new CuvetteError('bad_model', message);
}

function noWeights(folder: string): never {
  const missing = `There is no model.safetensors in ${folder}, and no model.safetensors.index.json.`;
  const pickled =
    existsSync(join(folder, 'pytorch_model.bin')) || existsSync(join(folder, 'pytorch_model.bin.index.json'));
  if (!pickled) throw new CuvetteError('bad_model', `${missing} Fetch the model's weights in safetensors.`);
  const script = `from transformers import AutoModelForCausalLM as M; M.from_pretrained('${folder}').save_pretrained('${folder}')`;
  const advice = `Its pytorch_model.bin may hold code, and is not read. Convert it once: python -c "${script}"`;
  throw new CuvetteError('bad_model', `${missing} ${advice}`);
}
