/** One run of code in a service elsewhere: its outputs as they come, each once, the ways to stop it, and how it ended. */

import { once } from 'node:events';
import type { ExitReport, Output, StopReason } from '../../interpreters/interpreter.ts';
import type { ServiceClient, ServiceEvent, ServiceSession } from './service-client.ts';
import { endedSchema, endingOf, remarksOn } from './service-ending.ts';

export interface ServiceRunOptions {
  client: ServiceClient;
  /** Of the request to the service. */
  body: Record<string, unknown>;
  /** Characters that may be printed. */
  limit: number;
  signal: AbortSignal;
  /** Where it is to run. */
  findSession(signal: AbortSignal): Promise<ServiceSession>;
  onOutput(output: Output): void;
}

export interface ServiceRun {
  /** Interrupts it, now or as soon as it is on its way. */
  stop(why: StopReason): void;
  /** Runs it when its turn has come. One that is stopped before that ends at once, and never runs. */
  ending(turn: Promise<unknown>): Promise<ExitReport>;
}

/** Where it runs. */
interface Place {
  session: string;
  execution: number;
}

/** Milliseconds that an interrupt may take for which nobody waits. */
const FAREWELL = 10_000;

export function createServiceRun({
  client,
  body,
  limit,
  signal,
  findSession,
  onOutput,
}: ServiceRunOptions): ServiceRun {
  const told = createTold(onOutput);
  const connection = new AbortController();
  const halted = new AbortController();
  let place: Place | undefined;
  let stopped: StopReason | undefined;
  let errorName: string | undefined;

  function stop(why: StopReason): void {
    stopped ??= why;
    halted.abort();
    if (place) client.tool('interrupt', { ...place }, AbortSignal.timeout(FAREWELL)).catch(() => {});
  }

  /** Only what has a number can be interrupted, so one that is on its way is waited for. */
  function giveUp(): void {
    stop('cancelled');
    if (place) return connection.abort();
    setTimeout(() => connection.abort(), FAREWELL).unref();
  }

  function take(event: ServiceEvent): void {
    if (event.type === 'done') return;
    if (event.type === 'session') {
      place = { session: event.session_id, execution: event.execution };
      told.again();
      if (stopped) stop(stopped);
      if (signal.aborted) connection.abort();
      return;
    }
    if (event.type === 'error') errorName = event.ename;
    if (stopped === 'output-limit') return;
    told.take(event);
    if (told.characters() > limit) stop('output-limit');
  }

  async function ending(turn: Promise<unknown>): Promise<ExitReport> {
    await unless(AbortSignal.any([signal, halted.signal]), turn);
    signal.throwIfAborted();
    if (stopped) return neverRun(stopped);
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      const session = await findSession(connection.signal);
      signal.throwIfAborted();
      if (stopped) return neverRun(stopped);
      for await (const event of client.run(session, body, connection.signal)) take(event);
      const ended = endedSchema.parse(await howItEnded().catch(howItEnded));
      for (const remark of remarksOn(ended)) onOutput({ type: 'stream', name: 'stderr', text: `[${remark}]\n` });
      const result = endingOf(ended, errorName);
      // The service knows of an interrupt, and not of the reason that there was here.
      const why = result.stopped?.why === 'cancelled' ? stopped : undefined;
      return result.stopped && why ? { ...result, stopped: { ...result.stopped, why } } : result;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  /** May be asked again: the run is over, and only the connection can be in the way. */
  function howItEnded(): Promise<unknown> {
    return client.tool('get_output', { ...place, offset: 0, limit: 1 }, connection.signal);
  }

  return { stop, ending };
}

/** Waits for the turn, and no longer than until the signal. */
async function unless(signal: AbortSignal, turn: Promise<unknown>): Promise<void> {
  if (signal.aborted) return;
  const over = new AbortController();
  const aborted = once(signal, 'abort', { signal: over.signal }).catch(() => {});
  await Promise.race([turn, aborted]);
  over.abort();
}

function neverRun(why: StopReason): ExitReport {
  return { status: 'error', stopped: { why, rung: 'interrupted' }, wall: 0, cpu: 0, peak: 0, ended: [] };
}

/** Passes outputs on, and those that come again from the first, after the service was restarted, only from where they are new. */
function createTold(pass: (output: Output) => void) {
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
