/** A log of events as an answer: server-sent events, at the pace at which they are read, with a comment where there is silence. */

import type { EventReader } from './event-log.ts';

export interface EventStreamOptions {
  /** Aborted when the caller goes away. */
  gone: AbortSignal;
  /** Milliseconds of silence after which a comment is sent. */
  silence: number;
  /** Once nobody reads it any more: `isWhole` if that is because there is no more. */
  onEnd(isWhole: boolean): void;
}

const COMMENT = Buffer.from(': still here\n\n');

export function eventStream(reader: EventReader, { gone, silence, onEnd }: EventStreamOptions): Response {
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const end = (isWhole: boolean) => {
    if (isOver) return;
    isOver = true;
    clearInterval(timer);
    reader.leave();
    onEnd(isWhole);
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      timer = setInterval(() => {
        // Between two events only, and only to who has read all before.
        if (reader.isWaiting && (controller.desiredSize ?? 0) > 0) controller.enqueue(COMMENT);
      }, silence);
      gone.addEventListener('abort', () => end(false), { once: true });
      if (gone.aborted) end(false);
    },
    async pull(controller) {
      const piece = await reader.next().catch((error: unknown) => {
        end(false);
        throw error;
      });
      timer?.refresh();
      if (piece) return controller.enqueue(piece);
      end(true);
      controller.close();
    },
    cancel: () => end(false),
  });
  return new Response(body, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    },
  });
}
