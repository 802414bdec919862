/** Reads and writes JSON messages, one a line, over a stream. Owns framing only. */

import type { Readable, Writable } from 'node:stream';
import { setImmediate as yieldToOthers } from 'node:timers/promises';

/** Characters of a string that are encoded in one go. */
const PIECE = 256 * 1024;

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
export function writeLine(stream: Writable, message: object): boolean {
  return writeLines(stream, [message]);
}

/** All of them in one piece. */
function writeLines(stream: Writable, messages: readonly object[]): boolean {
  return stream.write(messages.map((message) => `${JSON.stringify(message)}\n`).join(''));
}

export interface LineWriter {
  write(messages: readonly object[]): void;
  /** Ends the stream after what is being written. */
  end(): void;
}

/** Writes messages in their order. One with a string of megabytes is encoded piece by piece, so that it does not hold the event loop. */
export function createLineWriter(stream: Writable): LineWriter {
  let waiting: (readonly object[] | 'end')[] | undefined;

  async function writeInPieces(messages: readonly object[]): Promise<void> {
    for (const message of messages) {
      for (const piece of piecesOf(message)) {
        if (!stream.writable) return;
        if (!stream.write(piece)) await drained(stream);
        await yieldToOthers();
      }
    }
  }

  async function writeAll(queue: (readonly object[] | 'end')[]): Promise<void> {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      if (next === 'end') stream.end();
      else await writeInPieces(next);
    }
    waiting = undefined;
  }

  return {
    write(messages) {
      if (waiting) waiting.push(messages);
      else if (messages.some(hasLongString)) {
        waiting = [messages];
        void writeAll(waiting);
      } else writeLines(stream, messages);
    },
    end() {
      if (waiting) waiting.push('end');
      else stream.end();
    },
  };
}

/** Resolves when the stream takes more, or never will. */
export function drained(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      stream.off('drain', end).off('close', end);
      resolve();
    };
    stream.once('drain', end).once('close', end);
  });
}

function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length > PIECE;
}

function hasLongString(message: object): boolean {
  return Object.values(message).some(isLong);
}

/** Encodes a message as a line; a surrogate pair that is cut becomes two escape sequences, which any parser joins. */
function* piecesOf(message: object): Generator<string> {
  const long = Object.entries(message).filter(([, value]) => isLong(value));
  const others = Object.fromEntries(Object.entries(message).filter(([, value]) => !isLong(value)));
  let separator = Object.keys(others).length > 0 ? ',' : '';
  yield JSON.stringify(others).slice(0, -1);
  for (const [key, value] of long) {
    yield `${separator}${JSON.stringify(key)}:"`;
    for (let at = 0; at < value.length; at += PIECE) yield JSON.stringify(value.slice(at, at + PIECE)).slice(1, -1);
    yield '"';
    separator = ',';
  }
  yield '}\n';
}
