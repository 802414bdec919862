/** Hashes the files of a model, so that a result can name the model it came from. A hash is computed once in this process, unless the file changes. */

import { createHash } from 'node:crypto';
import { createReadStream, existsSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { CuvetteError } from '../../errors.ts';
import { openWeightFiles } from './weight-files.ts';

/** SHA-256 in hexadecimal of the files' contents, one after the other; of a single file it is what `sha256sum` and the hub say. */
export async function hashOfFiles(paths: readonly string[], signal?: AbortSignal): Promise<string> {
  const key = paths.map(identityOf).join('\n');
  const remembered = known.get(key);
  if (remembered) return remembered;
  const hash = createHash('sha256');
  for (const path of paths) {
    await pipeline(
      createReadStream(path, { highWaterMark: 1 << 20 }),
      async (content) => {
        for await (const part of content) hash.update(part);
      },
      { ...(signal && { signal }) },
    );
  }
  const digest = hash.digest('hex');
  known.set(key, digest);
  return digest;
}

const known = new Map<string, string>();

/** The time of the last change of any kind is there because tools that copy or unpack files set the other one. */
function identityOf(path: string): string {
  const { size, ino, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
  return [resolve(path), size, ino, mtimeNs, ctimeNs].join(' ');
}

/** The hashes of a model folder of any architecture; every engine gives the same for it. */
export async function hashesOfModel(
  folder: string,
  signal?: AbortSignal,
): Promise<{ weights: string; tokenizer: string }> {
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
