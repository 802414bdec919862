/**
 * Collects bytes that are only ever added to: in memory while they are few, in a file once they are many. The file has no name once it is
 * open, so it goes with the process that holds it, however that process ends.
 */

import { type FileHandle, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { nanoid } from 'nanoid';
import { privateFolder } from '../paths.ts';
import { asStorageError } from './durable-write.ts';
import { writeText } from './write-text.ts';

export interface Spill {
  /** Bytes that were added. */
  readonly size: number;
  /** True once they are in a file. */
  readonly isOnDisk: boolean;
  /** Adds text, which must have no half of a character at its ends; JSON never has. */
  add(text: string): void;
  /** Undefined while there is room in memory for more; else a promise for when there is. */
  room(): Promise<void> | undefined;
  /** Up to so many bytes from an offset on, at least one. The offset must be less than the size. */
  read(offset: number, most: number): Promise<Uint8Array>;
  close(): void;
}

export interface Spills {
  /** Makes one that holds this many bytes in memory before it goes to the disk. */
  create(inMemory: number): Spill;
}

/** Bytes: pieces that are written, unless a text is longer, and how much may wait for the disk. */
const PIECE = 64 << 10;
const MOST_WAITING = 128 << 10;

interface Piece {
  text: string;
  size: number;
  /** True once it is being written. */
  isSealed: boolean;
}

/** What a process leaves in the folder that is killed between making a file and taking its name away is removed here. */
export async function openSpills(folder: string): Promise<Spills> {
  privateFolder(folder);
  for (const name of await readdir(folder)) await rm(join(folder, name), { force: true });
  return { create: (inMemory) => createSpill(folder, inMemory) };
}

function createSpill(folder: string, inMemory: number): Spill {
  /** What is not in the file yet; the last piece grows. */
  let waiting: Piece[] = [];
  let waitingSize = 0;
  let written = 0;
  let file: Promise<FileHandle> | undefined;
  let writing: Promise<void> | undefined;
  let failure: unknown;
  let isClosed = false;

  async function write(): Promise<void> {
    try {
      file ??= openUnnamed(folder);
      const handle = await file;
      for (let piece = waiting[0]; piece && !isClosed; piece = waiting[0]) {
        piece.isSealed = true;
        await writeText(handle, piece.text, written);
        // It stays readable until it is in the file.
        waiting.shift();
        waitingSize -= piece.size;
        written += piece.size;
      }
    } catch (error) {
      failure = asStorageError(error);
      waiting = [];
    } finally {
      writing = undefined;
    }
  }

  function inPieces(offset: number, most: number): Uint8Array {
    let start = written;
    for (const { text, size } of waiting) {
      if (offset < start + size) return Buffer.from(text).subarray(offset - start, offset - start + most);
      start += size;
    }
    throw new Error(`There are ${start} bytes, and no byte ${offset}.`);
  }

  return {
    get size() {
      return written + waitingSize;
    },
    get isOnDisk() {
      return file !== undefined;
    },
    add(text) {
      if (failure !== undefined || isClosed) return;
      const size = Buffer.byteLength(text);
      const last = waiting.at(-1);
      if (last && !last.isSealed && last.size + size <= PIECE) {
        last.text += text;
        last.size += size;
      } else waiting.push({ text, size, isSealed: false });
      waitingSize += size;
      if (written + waitingSize > inMemory) writing ??= write();
    },
    room: () => (waitingSize > MOST_WAITING ? writing : undefined),
    async read(offset, most) {
      if (failure !== undefined) throw failure;
      if (isClosed) throw new Error('What was kept of this output has been removed.');
      if (offset >= written || !file) return inPieces(offset, most);
      const buffer = Buffer.allocUnsafeSlow(Math.min(most, written - offset));
      const { bytesRead } = await (await file).read(buffer, 0, buffer.length, offset);
      return buffer.subarray(0, bytesRead);
    },
    close() {
      isClosed = true;
      waiting = [];
      file?.then((handle) => handle.close()).catch(() => {});
    },
  };
}

async function openUnnamed(folder: string): Promise<FileHandle> {
  const path = join(folder, nanoid());
  const handle = await open(path, 'wx+', 0o600);
  await rm(path, { force: true }); // Another server that starts just now may have removed it.
  return handle;
}
