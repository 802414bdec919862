/**
 * An answer in JSON to a call that may take long. After some silence the answer begins with white space, which JSON allows before a value,
 * so that no proxy takes the connection for a dead one. The status is 200 by then: what goes wrong later is told in the body.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import { bytesOf } from '../bytes-of.ts';
import { type JsonBody, jsonBody } from '../json-body.ts';

export interface PatienceOptions {
  /** Aborted when the caller goes away. */
  gone: AbortSignal;
  /** Milliseconds of silence after which white space is sent. */
  silence: number;
  /** What the caller is told of an error that came too late for a status. */
  onLate(error: unknown): object;
}

const HEADERS = { 'content-type': 'application/json' };
const SPACE = Buffer.from('\n');

/** For the definition of a route whose handler writes its JSON itself: the type then allows any response. */
export function writtenJson<Schema>(schema: Schema): Record<string, { schema: Schema }> {
  return { 'application/json': { schema } };
}

/** Rejects as the work does, if that is soon enough. */
export async function patientJson(work: Promise<JsonBody>, options: PatienceOptions): Promise<Response> {
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
  const bytes = bytesOf(pieces());
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

/** True as soon as it has an outcome; false after so many milliseconds without one. */
async function isSettled(work: Promise<unknown>, patience: number): Promise<boolean> {
  const over = new AbortController();
  const settled = work.then(
    () => true,
    () => true,
  );
  try {
    return await Promise.race([settled, sleep(patience, false, { signal: over.signal })]);
  } finally {
    over.abort();
  }
}
