/** Reads parts of files: parses a Range header, and streams the bytes no faster than they are taken. */

import type { FileHandle } from 'node:fs/promises';

export interface Range {
  start: number;
  /** The first byte after it. */
  end: number;
}

const CHUNK = 128 * 1024;

/** What of a file the header asks for: all of it if it is no single range, nothing if the file has no such bytes. */
export function rangeOf(header: string, size: number): Range | 'all' | 'none' {
  const [, first = '', last = ''] = /^\s*bytes\s*=\s*(\d*)\s*-\s*(\d*)\s*$/i.exec(header) ?? [];
  if (first === '' && last === '') return 'all';
  if (first === '') {
    const start = Math.max(0, size - Number(last));
    return start < size ? { start, end: size } : 'none';
  }
  const start = Number(first);
  const end = last === '' ? size : Math.min(Number(last) + 1, size);
  if (last !== '' && Number(last) < start) return 'all';
  return start < size ? { start, end } : 'none';
}

/** Closes the file at its end, and when nobody wants the rest. */
export function streamRange(handle: FileHandle, { start, end }: Range): ReadableStream<Uint8Array> {
  let position = start;
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const room = Buffer.allocUnsafe(Math.min(end - position, CHUNK));
        const { bytesRead } = await handle.read(room, 0, room.length, position);
        position += bytesRead;
        if (bytesRead > 0) controller.enqueue(room.subarray(0, bytesRead));
        if (bytesRead > 0 && position < end) return;
        await handle.close();
        controller.close();
      } catch (error) {
        await handle.close().catch(() => {});
        controller.error(error);
      }
    },
    cancel: () => handle.close(),
  });
}
