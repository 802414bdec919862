/** Answers a request with an event log, at the pace at which it is read, and with a heartbeat where there is silence. */

import type { EventReader } from './event-log.ts';

export interface EventStreamOptions {
  contentType: string;
  /** What is sent, between two events, to show that the connection is alive. */
  heartbeat: string;
  /** Milliseconds of silence after which that is sent. */
  silence: number;
  /** Aborted when the caller goes away. */
  gone: AbortSignal;
  /** Once nobody reads it any more: `isWhole` if that is because there is no more. */
  onEnd?(isWhole: boolean): void;
}

export function eventStream(reader: EventReader, options: EventStreamOptions): Response {
  const { contentType, silence, gone, onEnd } = options;
  const heartbeat = Buffer.from(options.heartbeat);
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const end = (isWhole: boolean) => {
    if (isOver) return;
    isOver = true;
    clearInterval(timer);
    reader.leave();
    onEnd?.(isWhole);
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      timer = setInterval(() => {
        // Between two events only, and only to who has read all before.
        if (reader.isWaiting && (controller.desiredSize ?? 0) > 0) controller.enqueue(heartbeat);
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
    headers: { 'content-type': contentType, 'cache-control': 'no-cache', 'x-accel-buffering': 'no' },
  });
}
