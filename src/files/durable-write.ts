/** Writes bytes to disk so that they survive a crash: a stream into a new file, and a file into its folder. A failure leaves nothing behind. */

import type { Hash } from 'node:crypto';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CuvetteError } from '../errors.ts';

/** Writes a stream to a new file; says how many bytes it had. */
export async function writeStream(
  source: AsyncIterable<Uint8Array>,
  path: string,
  limit: number,
  hash: Hash | undefined,
): Promise<number> {
  const handle = await open(path, 'wx', 0o600);
  try {
    let size = 0;
    for await (const chunk of source) {
      size += chunk.length;
      if (size > limit) throw fileTooLarge(limit);
      hash?.update(chunk);
      await handle.appendFile(chunk);
    }
    await handle.sync();
    return size;
  } catch (error) {
    await rm(path, { force: true });
    throw asStorageError(error);
  } finally {
    await handle.close();
  }
}

/** The stream, which the signal ends even while its source gives nothing. */
export async function* abortable<T>(signal: AbortSignal, source: AsyncIterable<T>): AsyncGenerator<T> {
  const iterator = source[Symbol.asyncIterator]();
  let stop = (_reason: unknown): void => {};
  const listen = () => stop(signal.reason);
  signal.addEventListener('abort', listen);
  try {
    for (;;) {
      signal.throwIfAborted();
      const { done, value } = await new Promise<IteratorResult<T>>((resolve, reject) => {
        stop = reject;
        iterator.next().then(resolve, reject);
      });
      if (done) return;
      yield value;
    }
  } finally {
    signal.removeEventListener('abort', listen);
    iterator.return?.().catch(() => {});
  }
}

/** Moves a file into a folder, which is made if it is missing. */
export async function moveInto(folder: string, from: string, name: string): Promise<void> {
  // Others may remove the folder as empty between the two steps, and while Node sees whether it is there.
  for (let attempt = 1; ; attempt++) {
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await rename(from, join(folder, name));
      break;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || attempt === 3) throw error;
    }
  }
  const handle = await open(folder);
  await handle.sync().finally(() => handle.close());
}

/** The first half of the hash: enough to tell two files apart. */
export function etagOf(hash: Hash): string {
  return hash.digest('hex').slice(0, 32);
}

export function fileTooLarge(limit: number): CuvetteError {
  return new CuvetteError('too_large', `The file is larger than ${limit} bytes, the most that is taken.`);
}

/** A disk that is full is told as such. */
export function asStorageError(error: unknown): unknown {
  const code = (error as NodeJS.ErrnoException).code;
  if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'SQLITE_FULL') return error;
  return new CuvetteError('storage_full', 'The disk has no room for this file. Delete files that are not needed.', {
    cause: error,
  });
}
