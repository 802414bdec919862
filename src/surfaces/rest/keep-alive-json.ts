/**
 * Answers a long call with JSON and keeps its connection alive: after some silence it sends white space, which JSON allows before a value,
 * so that no proxy closes the connection as idle. The status 200 is sent by then, so a later error is reported in the body.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { encodePieces, type JsonBody, jsonBody } from '../json-body.ts';

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
