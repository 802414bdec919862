/**
 * Answers with JSON that may be long or late. Texts that are too long for memory are serialized piece by piece. After some silence white
 * space is sent, which JSON allows before a value, so that no proxy closes the connection as idle; the status 200 is sent by then, so a
 * later error is reported in the body.
 */

import { setTimeout as sleep } from 'node:timers/promises';
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

export interface KeepAliveOptions {
  /** Aborted when the caller goes away. */
  gone: AbortSignal;
  /** Milliseconds of silence after which white space is sent. */
  silence: number;
  /** Builds the body for an error that came too late for a status. */
  onLate(error: unknown): object;
}

const HEADERS = { 'content-type': 'application/json' };
const SPACE = Buffer.from('\n');

/** Declares the JSON of a route whose handler writes the response itself: the type then allows any response. */
export function writtenJson<Schema>(schema: Schema): Record<string, { schema: Schema }> {
  return { 'application/json': { schema } };
}

/** Rejects with the error of the work if that comes before anything was sent. */
export async function keepAliveJson(work: Promise<JsonBody>, options: KeepAliveOptions): Promise<Response> {
  const { gone, silence, onLate } = options;
  const isReady = await isSettled(work, silence);
  if (isReady) return jsonResponse(await work, gone);

  const late = work.catch((error: unknown) => jsonBody(onLate(error)));
  async function* pieces() {
    yield SPACE;
    while (!(await isSettled(late, silence))) yield SPACE;
    yield* (await late).pieces();
  }
  return streamed({ pieces, release: () => void late.then((body) => body.release()) }, gone);
}

function jsonResponse(body: JsonBody, gone: AbortSignal): Response {
  if (body.whole === undefined) return streamed(body, gone);
  body.release();
  return new Response(body.whole, { headers: HEADERS });
}

function streamed({ pieces, release }: Pick<JsonBody, 'pieces' | 'release'>, gone: AbortSignal): Response {
  const bytes = encodePieces(pieces());
  let isOver = false;
  const end = () => {
    if (isOver) return;
    isOver = true;
    release();
  };
  gone.addEventListener('abort', end, { once: true });
  if (gone.aborted) end();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await bytes.next();
        if (!done) return controller.enqueue(value);
        end();
        controller.close();
      } catch (error) {
        end();
        if (gone.aborted) controller.close();
        else controller.error(error);
      }
    },
    cancel: end,
  });
  return new Response(body, { headers: HEADERS });
}

/** Resolves to true as soon as the work has an outcome, and to false after so many milliseconds without one. */
async function isSettled(work: Promise<unknown>, milliseconds: number): Promise<boolean> {
  const over = new AbortController();
  const settled = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, sleep(milliseconds, false, { signal: over.signal })]);
  } finally {
    over.abort();
  }
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
