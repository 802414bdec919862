/** Folders that code may change at any moment: held open, and entered one step at a time, so that no symlink leads out of them. */

import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { CuvetteError } from '../errors.ts';

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export interface HeldFolder {
  /** The path of an entry, good for as long as the folder is held. The entry itself may be anything. */
  entry(name: string): string;
  close(): Promise<void>;
}

/** Holds a folder below `root`. On the way, everything must be a folder; what is missing is made if `make` says so. */
export async function holdFolder(root: string, below: string[], make = false): Promise<HeldFolder> {
  let path = root;
  let held = await open(root, FOLDER);
  try {
    for (const [depth, name] of below.entries()) {
      const next = entryOf(held, path, name);
      if (make) await mkdir(next, { mode: 0o755 }).catch(unless('EEXIST'));
      const entered = await open(next, FOLDER).catch(refuse(below.slice(0, depth + 1).join('/'), next));
      await held.close();
      held = entered;
      path = join(path, name);
    }
  } catch (error) {
    await held.close();
    throw error;
  }
  return { entry: (name) => entryOf(held, path, name), close: () => held.close() };
}

/** Where an open file or folder can be opened again, whatever has become of its name. Linux only. */
export function pathOfHandle(handle: FileHandle): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** Elsewhere than on Linux, an entry is reached by its path, and each step is only checked when it is taken. */
function entryOf(held: FileHandle, path: string, name: string): string {
  return join(process.platform === 'linux' ? pathOfHandle(held) : path, name);
}

function refuse(name: string, path: string) {
  return async (error: NodeJS.ErrnoException): Promise<never> => {
    if (error.code !== 'ENOTDIR' && error.code !== 'ELOOP' && error.code !== 'EACCES') throw error;
    const what = await lstat(path).catch(() => undefined);
    const found = what?.isSymbolicLink() ? 'a symlink' : what?.isDirectory() ? 'closed to the server' : 'not a folder';
    throw new CuvetteError(
      'invalid_input',
      `${name} is ${found} in the workspace, so nothing can be reached below it. Remove or rename it.`,
      { cause: error },
    );
  };
}

function unless(...codes: string[]) {
  return (error: NodeJS.ErrnoException): void => {
    if (!codes.includes(error.code ?? '')) throw error;
  };
}
