/** Writes text to an open file. Node copies a string only while it is written, so nothing is left for the garbage collector. */

import type { FileHandle } from 'node:fs/promises';

/** All of it, at the position, or at the end of the file if there is none. Says how many bytes it took. */
export async function writeText(handle: FileHandle, text: string, position: number | null): Promise<number> {
  const size = Buffer.byteLength(text);
  const { bytesWritten } = await handle.write(text, position);
  if (bytesWritten === size) return size;
  const data = Buffer.from(text);
  for (let done = bytesWritten; done < size; ) {
    const at = position === null ? null : position + done;
    done += (await handle.write(data, done, size - done, at)).bytesWritten;
  }
  return size;
}
