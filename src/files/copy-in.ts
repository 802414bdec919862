/** Writes files into a workspace, whatever code has left there: nothing is written through a symlink, a hard link or a FIFO. */

import { closeSync, constants, fchownSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { copyFile, type FileHandle, open, rename, unlink } from 'node:fs/promises';
import { nanoid } from 'nanoid';
import { CuvetteError } from '../errors.ts';
import { asStorageError, fileTooLarge } from './durable-write.ts';
import { type FolderHandle, type FolderHandleSync, openFolder, pathOfHandle, tryUnlinkSync } from './folder-handle.ts';
import { safeName } from './names.ts';

/** How a file's name begins in the workspace until it is whole. */
const TEMPORARY = '.cuvette-placing-';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export interface FileAttributes {
  mode: number;
  /** Whom the file is to belong to, if not to this process's user. */
  owner?: number | undefined;
}

/** Copies a file of the server's own. */
export function copyIntoWorkspace(from: string, workspace: string, name: string, how: FileAttributes): Promise<void> {
  return write(workspace, name, how, async (handle, temporary) => {
    // By its handle, since something else may stand at that name by now.
    const target = process.platform === 'linux' ? pathOfHandle(handle) : temporary;
    await copyFile(from, target, constants.COPYFILE_FICLONE);
  });
}

export function writeIntoWorkspace(text: string, workspace: string, name: string, how: FileAttributes): Promise<void> {
  return write(workspace, name, how, (handle) => handle.writeFile(text));
}

/** Writes what comes, up to so many bytes; says how many they were. */
export async function receiveIntoWorkspace(
  source: AsyncIterable<Uint8Array>,
  workspace: string,
  name: string,
  { limit, ...how }: FileAttributes & { limit: number },
): Promise<number> {
  let size = 0;
  await write(workspace, name, how, async (handle) => {
    for await (const chunk of source) {
      size += chunk.length;
      if (size > limit) throw fileTooLarge(limit);
      await handle.appendFile(chunk);
    }
  }).catch((error: unknown) => {
    throw asStorageError(error);
  });
  return size;
}

/** A small file for the folder's owner alone, at once. */
export function writeIntoFolderSync(text: string, folder: FolderHandleSync, name: string, owner?: number): void {
  const temporary = folder.entry(TEMPORARY + nanoid());
  const fd = openSync(temporary, NEW_FILE, 0o600);
  try {
    writeFileSync(fd, text);
    if (owner !== undefined) fchownSync(fd, owner, owner);
    renameSync(temporary, folder.entry(name));
  } catch (error) {
    tryUnlinkSync(temporary);
    throw error;
  } finally {
    closeSync(fd);
  }
}

type Fill = (handle: FileHandle, path: string) => Promise<void>;

async function write(workspace: string, name: string, how: FileAttributes, fill: Fill): Promise<void> {
  const folders = safeName(name).split('/');
  const last = folders.pop() ?? '';
  const folder = await openFolder(workspace, folders, { owner: how.owner });
  try {
    await replace(folder, last, how, fill);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EISDIR' && code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    throw new CuvetteError('invalid_input', `${name} is a folder in the workspace. Remove it, or rename the file.`, {
      cause: error,
    });
  } finally {
    await folder.close();
  }
}

async function replace(folder: FolderHandle, name: string, { mode, owner }: FileAttributes, fill: Fill): Promise<void> {
  const temporary = folder.entry(TEMPORARY + nanoid());
  const handle = await open(temporary, NEW_FILE, 0o600);
  try {
    await fill(handle, temporary);
    await handle.chmod(mode);
    if (owner !== undefined) await handle.chown(owner, owner);
    await rename(temporary, folder.entry(name));
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  } finally {
    await handle.close();
  }
}
