/** Reads and writes JSON messages, one a line, over a stream. Owns framing only. */

import type { Readable, Writable } from 'node:stream';

/** Calls back with each whole line. A line may come in any number of pieces. */
export function readLines(stream: Readable, onLine: (line: string) => void): void {
  let pieces: Buffer[] = [];
  stream.on('data', (chunk: Buffer) => {
    let start = 0;
    for (let end = chunk.indexOf(10); end !== -1; end = chunk.indexOf(10, start)) {
      const piece = chunk.subarray(start, end);
      start = end + 1;
      if (pieces.length === 0) {
        onLine(piece.toString('utf8'));
        continue;
      }
      pieces.push(piece);
      const line = Buffer.concat(pieces).toString('utf8');
      pieces = [];
      onLine(line);
    }
    if (start < chunk.length) pieces.push(chunk.subarray(start));
  });
}

/** False if the stream's buffer is full: its 'drain' event tells when it is not. */
export function writeLine(stream: Writable, message: unknown): boolean {
  return writeLines(stream, [message]);
}

/** All of them in one piece. */
export function writeLines(stream: Writable, messages: unknown[]): boolean {
  return stream.write(messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
}
