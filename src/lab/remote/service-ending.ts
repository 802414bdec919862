/** From what a service tells of an ended execution to how an interpreter would have seen it end. Pure. */

import { constants } from 'node:os';
import * as z from 'zod';
import type { ExitReport, StopReason } from '../../interpreters/interpreter.ts';

/** Of the tool `get_output`. */
export const endedSchema = z.object({
  outcome: z.enum(['ok', 'error', 'timeout', 'cancelled', 'died']).nullable(),
  reason: z.object({ code: z.string(), message: z.string() }).nullable(),
  exit_code: z.number().nullable(),
  variables_survived: z.boolean(),
  wall_seconds: z.number().nullable(),
  cpu_seconds: z.number().nullable(),
  peak_memory_bytes: z.number().nullable(),
  installed: z.array(z.object({ distribution: z.string(), version: z.string() })),
  ended_processes: z.array(z.string()),
  notes: z.array(z.string()),
});

export type Ended = z.infer<typeof endedSchema>;

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

export function endingOf(ended: Ended, errorName: string | undefined): ExitReport {
  const { reason, wall_seconds, cpu_seconds, peak_memory_bytes, ended_processes } = ended;
  const measured = {
    wall: wall_seconds ?? 0,
    cpu: cpu_seconds ?? 0,
    peak: peak_memory_bytes ?? 0,
    ended: ended_processes,
  };
  if (!reason) return { status: 'ok', ...measured };
  const isDead = !ended.variables_survived;
  const why = stopReasonOf(ended);
  const stopped = why && { stopped: { why, rung: isDead ? ('killed' as const) : ('interrupted' as const) } };
  if (isDead)
    return {
      status: 'death',
      death: deathOf(ended),
      ...(reason.code === 'broken-channel' && { brokeChannel: true }),
      ...stopped,
      ...measured,
    };
  if (reason.code === 'exit') return { status: 'exit', exitCode: ended.exit_code ?? 1, ...measured };
  return { status: 'error', errorName: errorName ?? reason.code, ...stopped, ...measured };
}

/** What the caller should know beside the output, and would not be told on this side. */
export function remarksOn({ reason, notes, installed }: Ended): string[] {
  const installs = installed.map(({ distribution, version }) => `installed ${distribution} ${version} there`);
  return [...notes, ...installs, ...(reason && !SAID_HERE.includes(reason.code) ? [reason.message] : [])];
}

function stopReasonOf({ outcome, reason }: Ended): StopReason | undefined {
  if (outcome === 'timeout' || outcome === 'cancelled') return outcome;
  return reason?.code === 'output-limit' ? 'output-limit' : undefined;
}

function deathOf({ reason, exit_code }: Ended): NonNullable<ExitReport['death']> {
  if (reason?.code === 'process-exit') return { exit: exit_code, signal: null, oom: false };
  const [signal = 'SIGKILL'] = Object.entries(constants.signals).find(([, number]) => 128 + number === exit_code) ?? [];
  return { exit: null, signal, oom: reason?.code === 'oom' };
}
