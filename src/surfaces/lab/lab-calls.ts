/** Keeps the calls of a lab by the ids that clients have given them: each runs once, and a client that comes again joins its call while it runs, or gets what it ended with. */

import { CuvetteError, isErrorCode, toCuvetteError } from '../../errors.ts';
import type { Spills } from '../../files/spill.ts';
import type { Lab, LabContext } from '../../lab/core/lab.ts';
import { hashOf } from '../../lab/core/manifest.ts';
import { type LabCallEvent, labCallEvent } from '../../lab/remote/lab-protocol.ts';
import type { Logger } from '../../log.ts';
import { createCallIds } from '../call-ids.ts';
import type { EventFormat, EventLog, EventReader } from '../event-log.ts';
import { createEventLogs } from '../event-logs.ts';

export interface LabCallLimits {
  /** Milliseconds for which a call goes on without a listener. */
  grace: number;
  /** Milliseconds for which an ended call is remembered; and how many of them, and of how many bytes together. */
  keep: number;
  mostEnded: number;
  /** Bytes of the events of one call, too; beyond, the oldest are dropped. */
  mostKept: number;
  /** How many ids of calls that are over are known as such. */
  mostOver: number;
}

export interface LabCallRequest {
  /** Without one, a call is its caller's alone, and ends with the connection. */
  id: string | undefined;
  name: string;
  args: Record<string, unknown>;
  /** Whether it was sent before: then it is not started. */
  isJoin: boolean;
}

export interface LabCalls {
  find(request: LabCallRequest): LabCall;
  /** Stops the call; its id is not free again. */
  stop(id: string): void;
}

export interface LabCall {
  /** From the event after this number on. */
  listen(after: number): EventReader;
  stop(): void;
}

interface LabCallOptions {
  run(context: LabContext): Promise<Record<string, unknown>>;
  events: EventLog;
  /** Whether the log outlives its readers. */
  isKept: boolean;
  /** Milliseconds for which it goes on without a listener. */
  grace: number;
  onStop(): void;
  log: Logger;
}

export interface LabCallsOptions {
  lab: Lab;
  /** Where the events of calls go that are too many for memory. */
  spills: Spills;
  log: Logger;
  limits?: Partial<LabCallLimits> | undefined;
}

const LIMITS: LabCallLimits = {
  grace: 60_000,
  keep: 600_000,
  mostEnded: 200,
  mostKept: 64 * 1024 * 1024,
  mostOver: 20_000,
};

/** Lines of JSON. The number is a field of the event. */
const LAB_EVENTS: EventFormat = {
  before: (number) => `{"number":${number},`,
  after: '\n',
  dropped: (text) => fieldsOf({ output: { type: 'stream', name: 'stderr', text } }),
};

export function createLabCalls({ lab, spills, log, limits }: LabCallsOptions): LabCalls {
  const { grace, keep, mostEnded, mostKept, mostOver } = { ...LIMITS, ...limits };
  const ids = createCallIds<LabCall>('lab', mostOver);
  const idOf = (id: string) => ({ owner: '', id });
  const logs = createEventLogs<string>({
    spills,
    limits: { keep, most: mostEnded, mostFiles: mostEnded, mostBytes: mostKept },
    formatOf: () => LAB_EVENTS,
    onGone: (id) => ids.retire(idOf(id)),
  });

  /** Apart from `find`: functions made in one place hold all that any of them uses, and arguments can be large. */
  function start(id: string | undefined, run: LabCallOptions['run']): LabCall {
    if (id === undefined)
      return startLabCall({ run, events: logs.detached(''), isKept: false, grace: 0, onStop: () => {}, log });
    return startLabCall({ run, events: logs.begin(id, id), isKept: true, grace, onStop: () => logs.release(id), log });
  }

  return {
    find({ id, name, args, isJoin }) {
      const run: LabCallOptions['run'] = async (context) => lab.call(name, args, context);
      if (id === undefined) return start(id, run);
      return ids.find({ ...idOf(id), hash: hashOf([name, args]), isJoin }, () => start(id, run));
    },
    stop: (id) => ids.stop(idOf(id)).stop(),
  };
}

/** When nobody has listened for a while, the call is stopped. */
function startLabCall({ run, events, isKept, grace, onStop, log }: LabCallOptions): LabCall {
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
export async function collectAnswer(reader: EventReader, gone: AbortSignal): Promise<Record<string, unknown>> {
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
