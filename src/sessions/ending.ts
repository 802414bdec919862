/** SessionQueue an interpreter's report on how an execution ended into what the caller is told: outcome, reason, exit code. Pure. */

import { constants } from 'node:os';
import type { Escalation, ExitReport, ReachedLimit } from '../interpreters/interpreter.ts';
import type { Policy } from '../sandbox/policy.ts';
import type { EndingReason, ExecutionOutcome } from './execution-record.ts';

export interface Ending {
  outcome: ExecutionOutcome;
  reason: EndingReason | null;
  exitCode: number;
  variablesSurvived: boolean;
  /** What killed the interpreter or the program, if it was not stopped. */
  signal?: string;
  /** If it was stopped: how far that had to go. */
  rung?: Escalation;
}

const RUNGS = {
  interrupted: 'it was interrupted',
  'children-killed': 'the processes it had started were ended, and it was interrupted',
  killed: 'it did not react to interrupts, so its interpreter was ended',
};

export interface Limits {
  timeout: number | null;
  maxOutput: number;
  /** Those of a confined session. */
  session?: Policy['limits'] | undefined;
}

export function endingFrom(report: ExitReport, limits: Limits): Ending {
  const { stopped } = report;
  const signal = report.death?.signal ?? report.signal;
  const how = stopped ? { rung: stopped.rung } : signal ? { signal } : {};
  const ending = { ...endingWithoutLimits(report, limits), ...how };
  const { reason } = ending;
  const hit = reachedLimitOf(report, limits.session);
  if (!limits.session || !hit || !reason || ending.outcome === 'cancelled') return ending;
  const sentence = describeLimit(hit, limits.session);
  if (ending.outcome === 'timeout' || reason.code === 'output-limit')
    return { ...ending, reason: { ...reason, message: `${reason.message} ${sentence}` } };
  const fate = report.steps !== undefined ? '' : ending.variablesSurvived ? 'Variables survived.' : LOST;
  return { ...ending, reason: { code: hit, message: joined(sentence, fate, WHAT_TO_DO[hit]) } };
}

/** The limit of its session that stands behind an execution's end, the one that ended it first. */
export function reachedLimitOf(ending: ExitReport, session: Policy['limits'] | undefined): ReachedLimit | undefined {
  if (!session) return undefined;
  const why = ending.stopped?.why;
  if (why === 'disk-quota' || why === 'too-many-processes') return why;
  // It asked for more than there is, in one piece, and was refused.
  if (ending.errorName === 'MemoryError' && session.memory > 0) return 'oom';
  const [first] = ending.hit ?? [];
  return first;
}

export function describeLimit(hit: ReachedLimit, { memory, processes, disk, fileCount }: Policy['limits']): string {
  if (hit === 'oom') return `It ran into the limit of its session's memory, ${bytes(memory)}.`;
  if (hit === 'too-many-processes')
    return `It ran into the limit of its session's processes and threads, ${processes.toLocaleString('en')}.`;
  const room = [disk > 0 && bytes(disk), fileCount > 0 && `${fileCount.toLocaleString('en')} files`].filter(Boolean);
  return `It ran into the limit of its session's disk, ${room.join(' or ')}.`;
}

const WHAT_TO_DO: Record<ReachedLimit, string> = {
  oom: 'Work in smaller pieces.',
  'too-many-processes': 'Start fewer at once, and wait for them.',
  'disk-quota': 'What was written so far is still there: remove files, then go on.',
};

function bytes(count: number): string {
  const [size, unit] = count >= GIB ? [count / GIB, 'GiB'] : [count / MIB, 'MiB'];
  return `${Number(size.toFixed(1))} ${unit}`;
}

const MIB = 1 << 20;
const GIB = 1 << 30;

function endingWithoutLimits(ending: ExitReport, limits: Limits): Ending {
  if (ending.steps !== undefined) return endingOfProgram(ending, limits);
  const variablesSurvived = ending.status !== 'death';
  const fate = variablesSurvived ? 'Variables survived.' : LOST;
  if (ending.stopped) return endingOfStopped(ending.stopped, fate, variablesSurvived, limits);
  if (ending.death)
    return { outcome: 'died', variablesSurvived, ...endingOfDeath(ending.death, ending.brokeChannel ?? false) };
  if (ending.status === 'exit') {
    const exitCode = ending.exitCode ?? 0;
    if (exitCode === 0) return { outcome: 'ok', reason: null, exitCode, variablesSurvived };
    const message = `The code called sys.exit with status ${exitCode}. Variables survived.`;
    return { outcome: 'error', reason: { code: 'exit', message }, exitCode, variablesSurvived };
  }
  if (ending.status === 'error') {
    const message = `The code raised ${ending.errorName ?? 'an exception'}.`;
    return { outcome: 'error', reason: { code: 'exception', message }, exitCode: 1, variablesSurvived };
  }
  return { outcome: 'ok', reason: null, exitCode: 0, variablesSurvived };
}

/** A program of another language: it has no variables to lose. */
function endingOfProgram(ending: ExitReport, limits: Limits): Ending {
  const exitCode = ending.exitCode ?? 0;
  if (ending.stopped) return endingOfStopped(ending.stopped, '', true, limits);
  if (ending.signal) {
    const [code, how] = ending.isOutOfMemory
      ? (['oom', 'was killed: the machine ran out of memory'] as const)
      : (['signal', howKilled(ending.signal)] as const);
    return {
      outcome: 'died',
      reason: { code, message: `The program ${how}.` },
      exitCode,
      variablesSurvived: true,
    };
  }
  if (exitCode === 0) return { outcome: 'ok', reason: null, exitCode, variablesSurvived: true };
  const message = `The program ended with status ${exitCode}.`;
  return { outcome: 'error', reason: { code: 'exit', message }, exitCode, variablesSurvived: true };
}

/** The interpreter vanished, and nobody is left to say how. */
export function endingOfLostInterpreter(): Ending {
  const message = `The interpreter and its keeper were killed from outside. ${LOST}`;
  const how = { exitCode: 137, signal: 'SIGKILL', variablesSurvived: false };
  return { outcome: 'died', reason: { code: 'interpreter-lost', message }, ...how };
}

/** Somebody stopped the interpreter while it was at work. */
export function endingOfStoppedInterpreter(): Ending {
  const message = 'Its interpreter was stopped, and its variables with it; the next call starts a fresh one.';
  return { outcome: 'cancelled', reason: { code: 'cancelled', message }, exitCode: 130, variablesSurvived: false };
}

/** It never ran: cancelled in the queue, or its server ended first. */
export function endingNotStarted(message: string): Ending {
  return { outcome: 'cancelled', reason: { code: 'not-started', message }, exitCode: 130, variablesSurvived: true };
}

const LOST = 'Its variables are lost; the next call runs in a fresh interpreter.';

function endingOfStopped(
  stopped: NonNullable<ExitReport['stopped']>,
  fate: string,
  variablesSurvived: boolean,
  limits: Limits,
): Ending {
  const how = RUNGS[stopped.rung];
  if (stopped.why === 'timeout') {
    const message = joined(
      `Timed out after ${limits.timeout} s: ${how}.`,
      fate,
      'Allow more time with timeout, or run it in the background.',
    );
    return { outcome: 'timeout', reason: { code: 'timeout', message }, exitCode: 124, variablesSurvived };
  }
  if (stopped.why === 'output-limit') {
    const message = joined(
      `It printed more than ${limits.maxOutput.toLocaleString('en')} characters: ${how}.`,
      fate,
      'Print less, or write to a file.',
    );
    return { outcome: 'error', reason: { code: 'output-limit', message }, exitCode: 1, variablesSurvived };
  }
  if (stopped.why !== 'cancelled') {
    const message = joined(`It ran into a limit of its session: ${how}.`, fate);
    return { outcome: 'error', reason: { code: stopped.why, message }, exitCode: 1, variablesSurvived };
  }
  return {
    outcome: 'cancelled',
    reason: { code: 'cancelled', message: joined(`Cancelled: ${how}.`, fate) },
    exitCode: 130,
    variablesSurvived,
  };
}

function endingOfDeath(
  death: NonNullable<ExitReport['death']>,
  brokeChannel: boolean,
): { reason: EndingReason; exitCode: number } {
  if (brokeChannel) {
    const message = `The code closed or wrote to the interpreter's own control channel. ${LOST}`;
    return { reason: { code: 'broken-channel', message }, exitCode: 1 };
  }
  if (death.signal === null) {
    const message = `The code ended its interpreter with exit status ${death.exit}. ${LOST}`;
    return { reason: { code: 'process-exit', message }, exitCode: death.exit ?? 1 };
  }
  const exitCode = 128 + (constants.signals[death.signal as NodeJS.Signals] ?? 0);
  if (death.signal === 'SIGKILL' && death.oom) {
    return {
      reason: {
        code: 'oom',
        message: `The machine ran out of memory, and the interpreter was killed. ${LOST}`,
      },
      exitCode,
    };
  }
  return { reason: { code: 'signal', message: `The interpreter ${howKilled(death.signal)}. ${LOST}` }, exitCode };
}

function howKilled(signal: string): string {
  return signal === 'SIGSEGV' ? 'crashed (segmentation fault, SIGSEGV)' : `was killed by ${signal}`;
}

function joined(...parts: string[]): string {
  return parts.filter(Boolean).join(' ');
}
