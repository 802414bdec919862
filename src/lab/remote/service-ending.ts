/** SessionQueue what a service tells of an ended execution into the ending that an interpreter of this machine would have reported. Pure. */

import * as z from 'zod';
import { type EndedRun, endedRun } from '../../interpreters/execution-events.ts';
import type { ExitReport, StopReason } from '../../interpreters/interpreter.ts';

export interface ServiceEnding {
  ending: ExitReport;
  /** What the caller should know beside the output, and would not be told on this side. */
  remarks: string[];
}

/** Reasons whose sentence is made anew on this side; of all others it has to be passed on. */
const SAID_HERE = [
  'exception',
  'exit',
  'timeout',
  'cancelled',
  'output-limit',
  'signal',
  'process-exit',
  'broken-channel',
];

const OLDER =
  'The service is older than this Cuvette, and does not tell how code ended: the reason is not known, nor whether variables survived.';

/** What every version has told. */
const olderRun = z.object({ status: z.string().nullable(), message: z.string().nullable() });

/** `run`: as it came. `errorName`: that of the exception that was shown, if one was. `stopped`: why it was stopped by this side. */
export function endingOf(
  run: unknown,
  { errorName, stopped }: { errorName?: string | undefined; stopped?: StopReason | undefined } = {},
): ServiceEnding {
  const { data: told } = endedRun.safeParse(run);
  if (told) return { ending: toEnding(told, errorName, stopped), remarks: remarksOn(told) };
  const older = olderRun.safeParse(run).data;
  const unmeasured = { wall: 0, cpu: 0, peak: 0, ended: [] };
  if (older?.status === null) return { ending: { status: 'ok', ...unmeasured }, remarks: remarksIn(older.message) };
  const ending: ExitReport = { status: 'error', errorName: errorName ?? 'unknown', ...unmeasured };
  return { ending, remarks: [OLDER, ...remarksIn(older?.message ?? null)] };
}

function toEnding(run: EndedRun, errorName: string | undefined, stoppedHere: StopReason | undefined): ExitReport {
  const measured = {
    wall: (run.wall_time ?? 0) / 1000,
    cpu: (run.cpu_time ?? 0) / 1000,
    peak: run.memory ?? 0,
    ended: run.ended_processes,
  };
  if (run.reason === null) return { status: 'ok', ...measured };
  const isDead = !run.variables_survived;
  const why = stopReasonOf(run, stoppedHere);
  // One that was stopped before it ran, or with its interpreter, has no rung.
  const stopped = why && {
    stopped: { why, rung: run.rung ?? (isDead ? ('killed' as const) : ('interrupted' as const)) },
  };
  if (isDead) {
    const death = {
      exit: run.reason === 'process-exit' ? run.code : null,
      signal: run.signal,
      oom: run.reason === 'oom',
    };
    return {
      status: 'death',
      death,
      ...(run.reason === 'broken-channel' && { brokeChannel: true }),
      ...stopped,
      ...measured,
    };
  }
  if (run.reason === 'exit' && run.code !== null) return { status: 'exit', exitCode: run.code, ...measured };
  return { status: 'error', errorName: errorName ?? run.reason, ...stopped, ...measured };
}

/** The service knows of an interrupt, and not of the reason that there was on this side. */
function stopReasonOf({ outcome, reason }: EndedRun, stoppedHere: StopReason | undefined): StopReason | undefined {
  if (outcome === 'cancelled') return stoppedHere ?? 'cancelled';
  if (outcome === 'timeout') return 'timeout';
  return reason === 'output-limit' ? 'output-limit' : undefined;
}

function remarksOn({ reason, message, notes }: EndedRun): string[] {
  return reason === null || SAID_HERE.includes(reason) ? notes : remarksIn(message);
}

function remarksIn(message: string | null): string[] {
  return message === null ? [] : [message];
}
