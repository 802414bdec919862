/** The hashes of a model's folder, whatever its family: the same that every engine gives for it. */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { CuvetteError } from '../../../errors.ts';
import { hashOfFiles } from '../../models/hashes.ts';
import { openWeightFiles } from '../../models/weight-files.ts';

export async function hashesOf(folder: string, signal?: AbortSignal): Promise<{ weights: string; tokenizer: string }> {
  const tokenizer = join(folder, 'tokenizer.json');
  for (const needed of [join(folder, 'config.json'), tokenizer]) {
    if (existsSync(needed)) continue;
    const advice = 'A model folder has config.json, tokenizer.json and weights in safetensors; check the path.';
    throw new CuvetteError('bad_model', `There is no ${needed}. ${advice}`);
  }
  const files = openWeightFiles(folder);
  files.close();
  return { weights: await hashOfFiles(files.paths, signal), tokenizer: await hashOfFiles([tokenizer], signal) };
}
