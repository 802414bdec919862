/** JSON that is sent piece by piece, because texts in it are too long to be held in memory. */

import { isLong } from '../sessions/long-text.ts';

export interface JsonBody {
  /** All of it, if it holds no long text. */
  readonly whole: string | undefined;
  /** Can be asked for again until `release`. */
  pieces(): AsyncIterable<string | Uint8Array>;
  /** Bytes of long texts that are on the disk for it. */
  readonly size: number;
  /** Gives up what it is read from. */
  release(): void;
}

/** Long texts may stand in the value, and in the objects that are its fields; they are kept by `source`. */
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
  for (const [key, one] of Object.entries(value)) {
    if (one === undefined) continue;
    yield `${separator}${JSON.stringify(key)}:`;
    separator = ',';
    if (isLong(one)) yield* quoted(one.escaped());
    else if (isRecord(one)) yield* piecesOf(one);
    else yield JSON.stringify(one);
  }
  yield '}';
}

async function* quoted(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<string | Uint8Array> {
  yield '"';
  yield* pieces;
  yield '"';
}

function hasLong(value: object): boolean {
  return Object.values(value).some((one) => isLong(one) || (isRecord(one) && Object.values(one).some(isLong)));
}

function isRecord(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
