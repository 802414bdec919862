/** One call of a lab: it runs once, and tells its events to whoever listens, from whichever event on. When nobody has listened for a while, it is stopped. */

import { toCuvetteError } from '../../errors.ts';
import type { LabContext } from '../../lab/core/lab.ts';
import type { WireEvent } from '../../lab/remote/wire.ts';
import type { Logger } from '../../log.ts';

export interface CallOptions {
  run(context: LabContext): Promise<Record<string, unknown>>;
  /** Milliseconds for which it goes on without a listener. */
  grace: number;
  /** Characters of events to keep; beyond, the oldest are dropped. */
  mostKept: number;
  onEnd(): void;
  onStop(): void;
  log: Logger;
}

export interface Call {
  /** From the event after this number on. */
  listen(after: number): Listener;
  stop(): void;
  /** Characters of the events that are kept. */
  size(): number;
}

export interface Listener {
  /** The next event, once there is one; nothing after the last, or after `leave`. */
  next(): Promise<WireEvent | undefined>;
  leave(): void;
}

export function startCall({ run, grace, mostKept, onEnd, onStop, log }: CallOptions): Call {
  const stopping = new AbortController();
  const events: { event: WireEvent; size: number }[] = [];
  const wakers = new Set<() => void>();
  let listeners = 0;
  let told = 0;
  let size = 0;
  let isEnded = false;
  let timer: NodeJS.Timeout | undefined;

  const tell = (event: WireEvent) => {
    if (isEnded) return;
    told += 1;
    const kept = { event: { number: told, ...event }, size: JSON.stringify(event).length };
    events.push(kept);
    size += kept.size;
    while (size > mostKept && events.length > 1) size -= events.shift()?.size ?? 0;
    wakeAll();
  };
  const wakeAll = () => {
    for (const wake of wakers) wake();
    wakers.clear();
  };
  const end = (event: WireEvent) => {
    clearTimeout(timer);
    tell(event);
    isEnded = true;
    onEnd();
  };
  const stop = () => {
    clearTimeout(timer);
    onStop();
    stopping.abort();
  };

  const context: LabContext = {
    signal: stopping.signal,
    progress: (progress) => tell({ progress }),
    output: (output) => tell({ output }),
  };
  run(context).then(
    (answer) => end({ answer }),
    (error: unknown) => {
      const { code, message } = toCuvetteError(error);
      log[code === 'internal' && !stopping.signal.aborted ? 'error' : 'debug']({ err: error }, 'lab');
      end({ error: { code, message } });
    },
  );

  return {
    stop,
    size: () => size,
    listen(after) {
      let seen = after;
      let isGone = false;
      let wake = () => {};
      listeners += 1;
      clearTimeout(timer);
      return {
        async next() {
          while (!isGone) {
            const first = told - events.length + 1;
            const event = seen + 1 < first ? droppedUntil(first, seen) : events[seen + 1 - first]?.event;
            seen = event?.number ?? seen;
            if (event || isEnded) return event;
            await new Promise<void>((resolve) => {
              wake = resolve;
              wakers.add(resolve);
            });
          }
          return undefined;
        },
        leave() {
          if (isGone) return;
          isGone = true;
          listeners -= 1;
          wakers.delete(wake);
          wake();
          if (listeners > 0 || isEnded) return;
          if (grace === 0) stop();
          else timer = setTimeout(stop, grace).unref();
        },
      };
    },
  };
}

/** In place of the events between: what is missing must not look as if it never was. */
function droppedUntil(first: number, seen: number): WireEvent {
  const text = `[${first - 1 - seen} events were dropped here: they came faster than they were read.]\n`;
  return { number: first - 1, output: { type: 'stream', name: 'stderr', text } };
}
