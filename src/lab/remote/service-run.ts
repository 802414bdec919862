/** Runs code once in a remote service: passes on its outputs as they come, each once, stops it when asked, and tells how it ended. */

import { STREAM_HEADERS, type StreamEvent, streamEvent } from '../../interpreters/execution-events.ts';
import type { ExitReport, Output, StopReason } from '../../interpreters/interpreter.ts';
import type { LabContext } from '../core/lab.ts';
import type { CallIdentity } from './disconnected-calls.ts';
import { notCuvette, type Remote } from './remote-errors.ts';
import type { ResumableCall, ResumableCalls, StartedCall } from './resumable-calls.ts';
import { endingOf } from './service-ending.ts';

export interface ServiceRunOptions {
  remote: Remote;
  calls: ResumableCalls;
  /** Before the code is sent. */
  reach(): Promise<void>;
  identity: CallIdentity;
  /** Of the request to the service. */
  body: Record<string, unknown>;
  /** Characters that may be printed. */
  limit: number;
  context: LabContext;
  /** The session in which it runs. */
  onSession(event: SessionEvent): void;
}

export interface ServiceRun {
  /** Interrupts it, now or as soon as it has begun. */
  stop(why: StopReason): void;
  ending: Promise<ExitReport>;
}

export type SessionEvent = Extract<StreamEvent, { type: 'session' }>;
type DoneEvent = Extract<StreamEvent, { type: 'done' }>;

const PATH = '/exec/stream';

export function startServiceRun(options: ServiceRunOptions): ServiceRun {
  const { remote, calls, identity, body, limit, context } = options;
  const show = (output: Output) => context.output?.(output);
  const outputs = createUnrepeated(show);
  let last: string | undefined;
  let hasBegun = false;
  let stopped: StopReason | undefined;
  let errorName: string | undefined;
  let started: StartedCall<DoneEvent> | undefined;

  const call: ResumableCall<DoneEvent> = {
    identity,
    isRepeatable: false,
    hasId: true,
    request(id, isJoin) {
      if (isJoin) return { method: 'GET', path: PATH, headers: named(id) };
      return { method: 'POST', path: PATH, headers: { [STREAM_HEADERS.id]: id }, body: { ...body, background: true } };
    },
    take({ id, data }) {
      const event = parse(data, remote);
      last = id;
      if (event?.type === 'done') return { answer: event };
      if (event?.type === 'session') begin(event);
      else if (event) take(event);
      return undefined;
    },
    restart() {
      last = undefined;
    },
    cancel: (id) => ({ method: 'DELETE', path: PATH, headers: named(id) }),
  };

  /** A service that was restarted knows its events, and not the ids of calls. */
  function named(id: string): Record<string, string> {
    return last === undefined ? { [STREAM_HEADERS.id]: id } : { 'last-event-id': last };
  }

  function begin(event: SessionEvent): void {
    if (!hasBegun) options.onSession(event);
    hasBegun = true;
    outputs.again();
    if (stopped) started?.cancel();
  }

  function take(event: Exclude<StreamEvent, SessionEvent | DoneEvent>): void {
    if (event.type === 'error') errorName = event.ename;
    if (stopped === 'output-limit') return;
    outputs.take(toOutput(event));
    if (outputs.characters() > limit) stop('output-limit');
  }

  /** Only what has begun there is sure to be stopped by it. */
  function stop(why: StopReason): void {
    stopped ??= why;
    if (hasBegun) started?.cancel();
  }

  async function conclude(): Promise<ExitReport> {
    await options.reach();
    started = calls.start(call, context);
    const { run, error } = await started.answer;
    const { ending, remarks } = endingOf(run, { errorName, stopped });
    for (const text of error === undefined ? remarks : [...remarks, error])
      show({ type: 'stream', name: 'stderr', text: `[${text}]\n` });
    return ending;
  }

  return { stop, ending: conclude() };
}

/** Nothing, if it is of a kind that a later version has. */
function parse(data: string, remote: Remote): StreamEvent | undefined {
  try {
    return streamEvent.safeParse(JSON.parse(data)).data;
  } catch (error) {
    throw notCuvette(remote, `one of its events is no JSON (${data.slice(0, 80)})`, error);
  }
}

function toOutput(event: Exclude<StreamEvent, SessionEvent | DoneEvent>): Output {
  if (event.type !== 'display') return event;
  const { display_id, ...display } = event;
  return display_id === undefined ? display : { ...display, displayId: display_id };
}

/** Passes outputs on, and those that come again from the first, after the service was restarted, only from where they are new. */
function createUnrepeated(pass: (output: Output) => void) {
  const known = { stdout: 0, stderr: 0, shown: 0 };
  let seen = { stdout: 0, stderr: 0, shown: 0 };
  return {
    again() {
      seen = { stdout: 0, stderr: 0, shown: 0 };
    },
    characters: () => known.stdout + known.stderr,
    take(output: Output) {
      const kind = output.type === 'stream' ? output.name : 'shown';
      const size = output.type === 'stream' ? output.text.length : 1;
      const repeated = Math.min(size, known[kind] - seen[kind]);
      seen[kind] += size;
      if (repeated === size) return;
      known[kind] = seen[kind];
      pass(output.type === 'stream' ? { ...output, text: output.text.slice(repeated) } : output);
    },
  };
}
