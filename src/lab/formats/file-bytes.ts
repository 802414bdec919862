/** Reads parts of a file of any size. Errors name the file. */

import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { CuvetteError, messageOf } from '../../errors.ts';

export interface FileBytes {
  path: string;
  length: number;
  /** Fills the target. */
  read(target: Uint8Array, position: number): void;
  close(): void;
}

/** Bytes that are asked of the system at a time. */
const LARGEST_READ = 1 << 30;

export function openFileBytes(path: string): FileBytes {
  const file = attempt('open', path, () => openSync(path, 'r'));
  return { path, length: fstatSync(file).size, read, close: () => closeSync(file) };

  function read(target: Uint8Array, position: number): void {
    for (let done = 0; done < target.length; ) {
      const part = target.subarray(done, done + LARGEST_READ);
      const count = attempt('read', path, () => readSync(file, part, 0, part.length, position + done));
      if (count === 0) throw new CuvetteError('bad_model', `${path} ended while it was read. Fetch the file again.`);
      done += count;
    }
  }
}

function attempt<Result>(what: string, path: string, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    throw new CuvetteError('bad_model', `Cannot ${what} ${path}: ${messageOf(error)}.`, { cause: error });
  }
}
