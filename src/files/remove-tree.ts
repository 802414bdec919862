/**
 * Removes a folder as code has left it: closed, deeper than any path can tell, or with links that code still moves about.
 * Folders in it are moved up before what held them is removed, so that no path has more than two steps, and each is held.
 */

import { constants, type Dirent } from 'node:fs';
import { chmod, open, readdir, rename, rmdir, unlink } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { nanoid } from 'nanoid';
import { codeOf } from '../errors.ts';
import { type FolderHandle, openFolder, pathOfHandle } from './folder-handle.ts';
import { inBatches } from './in-batches.ts';

/** Opens what nobody may read, for its mode alone. Node has no name for it. */
const O_PATH = 0o10000000;
/** What goes wrong where something was made or removed in the meantime. */
const MEANWHILE = new Set<unknown>(['ENOENT', 'ENOTEMPTY', 'EEXIST']);
const TO_OPEN_UP = O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/** Milliseconds between two tries, and how many there are: processes that are being killed may still write, and remove what they wrote. */
const PAUSE_MS = 20;
const TRIES = 100;

/** The folder above it is trusted. Where there is none of that name, there is nothing to do. */
export async function removeTree(path: string): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await removeOnce(path);
    } catch (error) {
      if (tries === TRIES || !MEANWHILE.has(codeOf(error))) throw error;
      await sleep(PAUSE_MS);
    }
  }
}

async function removeOnce(path: string): Promise<void> {
  const top = await enter(path).catch(unlessMissing);
  if (!top) return;
  try {
    for (let entries = await list(top); entries.length > 0; entries = await list(top)) {
      await removeFiles(top, entries);
      for (const folder of entries.filter(isFolder)) await removeFolder(top, folder.name);
    }
  } finally {
    await top.close();
  }
  await rmdir(path);
}

async function removeFolder(top: FolderHandle, name: string): Promise<void> {
  const folder = await enter(top.entry(name));
  try {
    const entries = await list(folder);
    await removeFiles(folder, entries);
    for (const below of entries.filter(isFolder)) await moveUp(folder.entry(below.name), top);
  } finally {
    await folder.close();
  }
  await rmdir(top.entry(name));
}

async function removeFiles(folder: FolderHandle, entries: Dirent[]): Promise<void> {
  const files = entries.filter((entry) => !isFolder(entry));
  await inBatches(files, ({ name }) => unlink(folder.entry(name)));
}

async function moveUp(path: string, top: FolderHandle): Promise<void> {
  const higher = top.entry(nanoid());
  await rename(path, higher).catch(async (error: NodeJS.ErrnoException) => {
    await openUp(path, error);
    await rename(path, higher);
  });
}

/** With the right to list and to empty it. */
async function enter(path: string): Promise<FolderHandle> {
  const folder = await openFolder(path, []).catch(async (error: NodeJS.ErrnoException) => {
    await openUp(path, error);
    return openFolder(path, []);
  });
  await chmod(folder.path, 0o700).catch(async (error: unknown) => {
    await folder.close();
    throw error;
  });
  return folder;
}

/** A folder that code has closed, even to us. */
async function openUp(path: string, error: NodeJS.ErrnoException): Promise<void> {
  if (error.code !== 'EACCES' || process.platform !== 'linux') throw error;
  const handle = await open(path, TO_OPEN_UP);
  await chmod(pathOfHandle(handle), 0o700).finally(() => handle.close());
}

function isFolder(entry: Dirent): boolean {
  return entry.isDirectory();
}

function list(folder: FolderHandle): Promise<Dirent[]> {
  return readdir(folder.path, { withFileTypes: true });
}

function unlessMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
