/** Opens folders that code may change at any moment: one step at a time, by descriptors, so that no symlink leads out of them. */

import { closeSync, constants, openSync, unlinkSync } from 'node:fs';
import { type FileHandle, lstat, mkdir, open } from 'node:fs/promises';
import { join } from 'node:path';
import { CuvetteError } from '../errors.ts';

const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

interface OpenFolder {
  /** Where the folder can be listed for as long as it is held. */
  readonly path: string;
  /** The path of an entry, good for as long as the folder is held. The entry itself may be anything. */
  entry(name: string): string;
}

export interface FolderHandle extends OpenFolder {
  close(): Promise<void>;
}

export interface FolderHandleSync extends OpenFolder {
  readonly fd: number;
  close(): void;
}

/** Holds a folder below `root`. On the way, everything must be a folder; what is missing is made, for that owner, if `make` is given. */
export async function openFolder(
  root: string,
  below: string[],
  make?: { owner?: number | undefined },
): Promise<FolderHandle> {
  let path = root;
  let held = await open(root, FOLDER);
  try {
    for (const [depth, name] of below.entries()) {
      const next = join(pathOf(held, path), name);
      const isMade =
        make !== undefined && (await mkdir(next, { mode: 0o755 }).then(() => true, unless('EEXIST'))) === true;
      const entered = await open(next, FOLDER).catch(refuse(below.slice(0, depth + 1).join('/'), next));
      await held.close();
      held = entered;
      path = join(path, name);
      if (isMade && make?.owner !== undefined) await held.chown(make.owner, make.owner);
    }
  } catch (error) {
    await held.close();
    throw error;
  }
  const reached = pathOf(held, path);
  return { path: reached, entry: (name) => join(reached, name), close: () => held.close() };
}

/** Holds the folder at a path, or at the entry of another that is held. It is no symlink; what is above it is trusted. */
export function openFolderSync(path: string): FolderHandleSync {
  const fd = openSync(path, FOLDER);
  const reached = pathOf({ fd }, path);
  return { fd, path: reached, entry: (name) => join(reached, name), close: () => closeSync(fd) };
}

/**
 * Removes an entry that is no folder, if it can be removed. Node's `rm` would, where a folder has come to stand since it
 * looked, remove all that is in it, by its path.
 */
export function tryUnlinkSync(path: string): void {
  try {
    unlinkSync(path);
  } catch {}
}

/** Where an open file or folder can be opened again, whatever has become of its name. Linux only. */
export function pathOfHandle(handle: Pick<FileHandle, 'fd'>): string {
  return `/proc/self/fd/${handle.fd}`;
}

/** On other systems than Linux, an entry is reached by its path, and each step is only checked when it is taken. */
function pathOf(held: Pick<FileHandle, 'fd'>, path: string): string {
  return process.platform === 'linux' ? pathOfHandle(held) : path;
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
