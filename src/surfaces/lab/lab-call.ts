/** One call of a lab: it runs once, and writes its events to a log for whoever listens. When nobody has listened for a while, it is stopped. */

import { CuvetteError, isErrorCode, toCuvetteError } from '../../errors.ts';
import { type LabCallEvent, labCallEvent } from '../../lab/remote/lab-protocol.ts';
import type { LabContext } from '../../lab/workbench.ts';
import type { Logger } from '../../log.ts';
import type { EventFormat, EventLog, EventReader } from '../event-log.ts';

export interface LabCallOptions {
  run(context: LabContext): Promise<Record<string, unknown>>;
  events: EventLog;
  /** Whether the log outlives its readers. */
  isKept: boolean;
  /** Milliseconds for which it goes on without a listener. */
  grace: number;
  onStop(): void;
  log: Logger;
}

export interface LabCall {
  /** From the event after this number on. */
  listen(after: number): EventReader;
  stop(): void;
}

/** Lines of JSON. The number is a field of the event. */
export const LAB_EVENTS: EventFormat = {
  before: (number) => `{"number":${number},`,
  after: '\n',
  dropped(count) {
    const text = `[${count} events were dropped here: they came faster than they were read.]\n`;
    return fieldsOf({ output: { type: 'stream', name: 'stderr', text } });
  },
};

export function startLabCall({ run, events, isKept, grace, onStop, log }: LabCallOptions): LabCall {
  const stopping = new AbortController();
  let listeners = 0;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  const add = (event: LabCallEvent) => events.add(fieldsOf(event));
  const removeUnlessKept = () => {
    if (events.isEnded && listeners === 0 && (!isKept || isStopped)) events.remove();
  };
  const end = (event: LabCallEvent) => {
    clearTimeout(timer);
    add(event);
    events.end();
    removeUnlessKept();
  };
  const stop = () => {
    clearTimeout(timer);
    isStopped = true;
    onStop();
    stopping.abort();
  };

  const context: LabContext = {
    signal: stopping.signal,
    progress: (progress) => void add({ progress }),
    output: (output) => add({ output }),
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
    listen(after) {
      const reader = events.read(after);
      let isGone = false;
      listeners += 1;
      clearTimeout(timer);
      return {
        next: reader.next,
        get isWaiting() {
          return reader.isWaiting;
        },
        leave() {
          if (isGone) return;
          isGone = true;
          reader.leave();
          listeners -= 1;
          removeUnlessKept();
          if (listeners > 0 || events.isEnded) return;
          if (grace === 0) stop();
          else timer = setTimeout(stop, grace).unref();
        },
      };
    },
  };
}

/** The answer alone, for who does not ask for events. */
export async function answerOf(reader: EventReader, gone: AbortSignal): Promise<Record<string, unknown>> {
  gone.addEventListener('abort', reader.leave);
  if (gone.aborted) reader.leave();
  try {
    const { answer, error } = await lastOf(reader);
    if (answer) return answer;
    if (error) throw new CuvetteError(isErrorCode(error.code) ? error.code : 'internal', error.message);
  } finally {
    reader.leave();
  }
  throw new CuvetteError('internal', 'The caller has gone.');
}

async function lastOf(reader: EventReader): Promise<LabCallEvent> {
  const decoder = new TextDecoder();
  let line = '';
  for (let piece = await reader.next(); piece; piece = await reader.next()) {
    line += decoder.decode(piece, { stream: true });
    line = line.slice(line.lastIndexOf('\n', line.length - 2) + 1);
  }
  return line === '' ? {} : labCallEvent.parse(JSON.parse(line));
}

/** An event's JSON without its opening brace, which stands before the number. */
function fieldsOf(event: LabCallEvent): string {
  return JSON.stringify(event).slice(1);
}
