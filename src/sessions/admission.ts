/**
 * Limits how many executions one caller may start in a minute and have at once, and reports each execution that has ended.
 * Every surface starts executions through it, so that limits and metrics hold for all of them.
 */

import { CuvetteError } from '../errors.ts';
import type { ExecutionRecord } from './execution-record.ts';

const MINUTE_MS = 60_000;

export interface Admission {
  /** Starts an execution of this caller, unless a limit forbids it: then it throws `rate_limited`, and nothing starts. */
  admit<Started extends { finished: Promise<{ record: ExecutionRecord }> }>(
    caller: string,
    start: () => Promise<Started>,
  ): Promise<Started>;
}

interface Use {
  /** When the executions of the last minute began, the oldest first. */
  started: number[];
  running: number;
}

export interface AdmissionOptions {
  /** 0 is no limit. */
  rateLimit: number;
  /** 0 is no limit. */
  maxRunning: number;
  /** Is told of each execution that has ended, and whose it was. */
  onEnded?(record: ExecutionRecord, caller: string): void;
  /** Is told of each execution that was not started, and why. */
  onRefused?(error: unknown, caller: string): void;
  now?(): number;
}

export function createAdmission({
  rateLimit,
  maxRunning,
  onEnded,
  onRefused,
  now = () => performance.now(),
}: AdmissionOptions): Admission {
  const uses = new Map<string, Use>();
  let forgotAt = now();

  function forgetOld(time: number): void {
    for (const [caller, use] of uses) {
      use.started = use.started.filter((start) => time - start < MINUTE_MS);
      if (use.started.length === 0 && use.running === 0) uses.delete(caller);
    }
    forgotAt = time;
  }

  /** Throws `rate_limited`; else counts the execution until the returned function is called. */
  function enter(caller: string): () => void {
    if (rateLimit === 0 && maxRunning === 0) return () => {};
    const time = now();
    if (time - forgotAt >= MINUTE_MS) forgetOld(time);
    const use = uses.get(caller) ?? { started: [], running: 0 };
    if (maxRunning > 0 && use.running >= maxRunning)
      throw rateLimited(
        `At most ${maxRunning} executions may run at once, and so many do. Wait until one has ended.`,
        1,
      );
    if (rateLimit > 0) {
      use.started = use.started.filter((start) => time - start < MINUTE_MS);
      const [oldest] = use.started;
      if (oldest !== undefined && use.started.length >= rateLimit) {
        const seconds = Math.max(1, Math.ceil((oldest + MINUTE_MS - time) / 1000));
        throw rateLimited(`At most ${rateLimit} executions may start in a minute. Try again in ${seconds} s.`, seconds);
      }
      use.started.push(time);
    }
    use.running += 1;
    uses.set(caller, use);
    return () => {
      use.running -= 1;
    };
  }

  return {
    async admit(caller, start) {
      let leave = () => {};
      try {
        leave = enter(caller);
        const started = await start();
        // At once: a caller that goes on when this has finished must not be refused for it.
        started.finished.then(leave, leave);
        started.finished.then(({ record }) => onEnded?.(record, caller)).catch(() => {});
        return started;
      } catch (error) {
        leave();
        onRefused?.(error, caller);
        throw error;
      }
    },
  };
}

/** Seconds after which a refused caller may try again, if the error says so. */
export function retryAfterOf(error: CuvetteError): number | undefined {
  const { cause } = error;
  if (typeof cause !== 'object' || cause === null || !('retryAfterSeconds' in cause)) return undefined;
  return typeof cause.retryAfterSeconds === 'number' ? cause.retryAfterSeconds : undefined;
}

export function rateLimited(message: string, retryAfterSeconds: number): CuvetteError {
  return new CuvetteError('rate_limited', message, { cause: { retryAfterSeconds } });
}
