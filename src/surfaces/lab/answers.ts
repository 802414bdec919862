/** What a listener to a call hears, as a response: events line by line for who asks for them, or the answer alone. */

import { CuvetteError, isErrorCode } from '../../errors.ts';
import { EVENTS, STILL_HERE } from '../../lab/remote/lab-protocol.ts';
import type { Listener } from './lab-call.ts';

/** A sign of life goes between, now and then. A client that reads slowly is not sent more than it takes. */
export function streamed(listener: Listener, gone: AbortSignal): Response {
  const encoder = new TextEncoder();
  const toLine = (event: object) => encoder.encode(`${JSON.stringify(event)}\n`);
  let timer: NodeJS.Timeout | undefined;
  const leave = () => {
    clearInterval(timer);
    listener.leave();
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      timer = setInterval(() => {
        if ((controller.desiredSize ?? 0) > 0) controller.enqueue(toLine({}));
      }, STILL_HERE);
      gone.addEventListener('abort', leave);
      if (gone.aborted) leave();
    },
    async pull(controller) {
      const event = await listener.next();
      if (event) return controller.enqueue(toLine(event));
      leave();
      controller.close();
    },
    cancel: leave,
  });
  return new Response(body, { headers: { 'content-type': EVENTS, 'cache-control': 'no-cache' } });
}

export async function lastOf(listener: Listener, gone: AbortSignal): Promise<Record<string, unknown>> {
  gone.addEventListener('abort', listener.leave);
  if (gone.aborted) listener.leave();
  try {
    for (let event = await listener.next(); event; event = await listener.next()) {
      if (event.answer) return event.answer;
      if (event.error) throw errorOf(event.error);
    }
  } finally {
    listener.leave();
  }
  throw new CuvetteError('internal', 'The caller has gone.');
}

function errorOf({ code, message }: { code: string; message: string }): CuvetteError {
  return new CuvetteError(isErrorCode(code) ? code : 'internal', message);
}
