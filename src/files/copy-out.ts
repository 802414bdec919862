/** Copies a file out of a workspace while code may still change its name, the folders above it, and its bytes. */

import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { chmod, copyFile, type FileHandle, open, rm } from 'node:fs/promises';
import { resolve, sep } from 'node:path';
import { CuvetteError } from '../errors.ts';
import { etagOf, fileTooLarge, writeStream } from './durable-write.ts';
import { openFolder, pathOfHandle } from './folder-handle.ts';
import { openRegularFile } from './open-untrusted.ts';

/** Larger files get an etag without their bytes being read for it. */
const LARGEST_HASHED = 64 * 1024 * 1024;

export interface CopiedFile {
  size: number;
  etag: string;
}

/** Copies a file to a new one at `to`. The path ends with the parts of the name, and none of these may be a symlink. */
export async function copyOutOfWorkspace(path: string, name: string, limit: number, to: string): Promise<CopiedFile> {
  const source = await openSource(path, name);
  try {
    const { size, mtimeMs } = await source.stat();
    if (size > limit) throw fileTooLarge(limit);
    if (await clone(source, to)) return await finishClone(to, limit);
    const hash = size <= LARGEST_HASHED ? createHash('sha256') : undefined;
    const copied = await writeStream(bytesOf(source, size), to, limit, hash);
    return { size: copied, etag: hash ? etagOf(hash) : quickEtag(copied, mtimeMs) };
  } finally {
    await source.close();
  }
}

async function openSource(path: string, name: string): Promise<FileHandle> {
  const root = resolve(path).split(sep);
  const below = root.splice(-name.split('/').length);
  const last = below.pop() ?? '';
  const folder = await openFolder(root.join(sep) || sep, below);
  try {
    const handle = await openRegularFile(folder.entry(last));
    if (handle) return handle;
    throw new CuvetteError('invalid_input', `${name} is not a regular file, so it cannot be kept.`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new CuvetteError('unknown_file', `There is no file ${name} any more.`, { cause: error });
  } finally {
    await folder.close();
  }
}

/**
 * Shares the bytes between the two files, where the file system can. Node's copyFile would copy them otherwise, but
 * never ends if its source is cut short meanwhile; so it is only asked for what is done in one step.
 */
async function clone(source: FileHandle, to: string): Promise<boolean> {
  if (process.platform !== 'linux') return false;
  const how = constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE;
  return copyFile(pathOfHandle(source), to, how).then(
    () => true,
    () => false,
  );
}

async function finishClone(path: string, limit: number): Promise<CopiedFile> {
  const handle = await open(path);
  try {
    const { size, mtimeMs } = await handle.stat();
    if (size > limit) throw fileTooLarge(limit);
    await chmod(path, 0o600);
    await handle.sync();
    if (size > LARGEST_HASHED) return { size, etag: quickEtag(size, mtimeMs) };
    const hash = createHash('sha256');
    for await (const chunk of bytesOf(handle, size)) hash.update(chunk);
    return { size, etag: etagOf(hash) };
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await handle.close();
  }
}

async function* bytesOf(handle: FileHandle, size: number): AsyncGenerator<Uint8Array> {
  let position = 0;
  while (position < size) {
    const room = Buffer.allocUnsafe(Math.min(size - position, 256 * 1024));
    const { bytesRead } = await handle.read(room, 0, room.length, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield room.subarray(0, bytesRead);
  }
}

function quickEtag(size: number, mtimeMs: number): string {
  return `${size.toString(16)}-${Math.trunc(mtimeMs).toString(16)}`;
}
