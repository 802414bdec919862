/** Opens files that code may replace at any moment: only those of the expected kind, without following a link or waiting for a writer. */

import { closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from 'node:fs';
import { type FileHandle, lstat, open } from 'node:fs/promises';

const NO_FOLLOW_NO_WAIT = constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** A regular file, to be read; undefined if something else stands there. Throws if nothing does. */
export async function openRegularFile(path: string): Promise<FileHandle | undefined> {
  // To open a FIFO or a device can have effects, so they are told apart before. What counts is what was opened.
  if (!(await lstat(path)).isFile()) return undefined;
  const handle = await open(path, constants.O_RDONLY | NO_FOLLOW_NO_WAIT).catch(unlessOther);
  if ((await handle?.stat())?.isFile()) return handle;
  await handle?.close();
  return undefined;
}

/** The first bytes of a regular file, at most so many. Throws if there is none. */
export function readRegularFileSync(path: string, most: number): Buffer {
  const fd = openKindSync(path, constants.O_RDONLY, (about) => about.isFile());
  try {
    const bytes = Buffer.allocUnsafe(Math.min(fstatSync(fd).size, most));
    let length = 0;
    for (let read = -1; read !== 0 && length < bytes.length; length += read) {
      read = readSync(fd, bytes, length, bytes.length - length, null);
    }
    return bytes.subarray(0, length);
  } finally {
    closeSync(fd);
  }
}

/** A FIFO, open for both, so that neither this nor writing to it waits for a reader. Throws if there is none. */
export function openFifoSync(path: string): number {
  return openKindSync(path, constants.O_RDWR, (about) => about.isFIFO());
}

function openKindSync(path: string, flags: number, isMeant: (about: Stats) => boolean): number {
  const refuse = () => new Error(`${path} is something else than was expected`);
  if (!isMeant(lstatSync(path))) throw refuse();
  const fd = openSync(path, flags | NO_FOLLOW_NO_WAIT);
  if (isMeant(fstatSync(fd))) return fd;
  closeSync(fd);
  throw refuse();
}

/** What opening says of a symlink, and of a socket, that has come to stand there since. */
function unlessOther(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ELOOP' && error.code !== 'ENXIO') throw error;
}
