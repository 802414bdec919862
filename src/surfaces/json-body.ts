/** Serializes JSON piece by piece, because texts in it can be too long to be held in memory. */

import { isLong } from '../sessions/long-text.ts';

/** Characters of text that are encoded at once. */
const MOST_AT_ONCE = 64 << 10;

export interface JsonBody {
  /** The whole JSON, if it holds no long text. */
  readonly whole: string | undefined;
  /** Can be called again until `release`. */
  pieces(): AsyncIterable<string | Uint8Array>;
  /** Bytes of its long texts on the disk. */
  readonly size: number;
  /** Deletes the long texts that it is read from. */
  release(): void;
}

/** Long texts, which `source` keeps, may stand in the value and in the objects that are its fields. */
export function jsonBody(value: object, source: { size: number; release(): void } = NOTHING): JsonBody {
  const whole = hasLong(value) ? undefined : JSON.stringify(value);
  async function* pieces() {
    if (whole === undefined) yield* piecesOf(value);
    else yield whole;
  }
  return { whole, pieces, size: source.size, release: () => source.release() };
}

const NOTHING = { size: 0, release() {} };

async function* piecesOf(value: object): AsyncGenerator<string | Uint8Array> {
  let separator = '{';
  for (const [key, field] of Object.entries(value)) {
    if (field === undefined) continue;
    yield `${separator}${JSON.stringify(key)}:`;
    separator = ',';
    if (isLong(field)) yield* quoted(field.escaped());
    else if (isRecord(field)) yield* piecesOf(field);
    else yield JSON.stringify(field);
  }
  yield '}';
}

async function* quoted(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<string | Uint8Array> {
  yield '"';
  yield* pieces;
  yield '"';
}

function hasLong(value: object): boolean {
  return Object.values(value).some((field) => isLong(field) || (isRecord(field) && Object.values(field).some(isLong)));
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Encodes text and bytes as one stream of bytes; short texts that follow each other become one chunk. */
export async function* encodePieces(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  let text = '';
  for await (const piece of pieces) {
    if (typeof piece === 'string') text += piece;
    if (text !== '' && (typeof piece !== 'string' || text.length >= MOST_AT_ONCE)) {
      yield Buffer.from(text);
      text = '';
    }
    if (typeof piece !== 'string') yield piece;
  }
  if (text !== '') yield Buffer.from(text);
}
