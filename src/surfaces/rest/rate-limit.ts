/** How many executions one principal may start in any minute, and have at once. */

import { CuvetteError } from '../../errors.ts';
import type { Principal } from './principal.ts';

const MINUTE = 60_000;

export interface Limiter {
  /** Before an execution; what it returns is called after it, however it ended. Throws `rate_limited`. */
  enter(principal: Principal): () => void;
}

interface Use {
  /** When the executions of the last minute began, the oldest first. */
  started: number[];
  running: number;
}

/** 0 is no limit. */
export function createLimiter(
  { rateLimit, maxRunning }: { rateLimit: number; maxRunning: number },
  now: () => number = () => performance.now(),
): Limiter {
  const uses = new Map<string, Use>();
  let swept = now();

  function forgetOld(time: number): void {
    for (const [id, use] of uses) {
      use.started = use.started.filter((start) => time - start < MINUTE);
      if (use.started.length === 0 && use.running === 0) uses.delete(id);
    }
    swept = time;
  }

  return {
    enter({ id }) {
      if (rateLimit === 0 && maxRunning === 0) return () => {};
      const time = now();
      if (time - swept >= MINUTE) forgetOld(time);
      const use = uses.get(id) ?? { started: [], running: 0 };
      if (maxRunning > 0 && use.running >= maxRunning)
        throw tooMany(`At most ${maxRunning} executions may run at once, and so many do. Wait until one has ended.`, 1);
      if (rateLimit > 0) {
        use.started = use.started.filter((start) => time - start < MINUTE);
        const [oldest] = use.started;
        if (oldest !== undefined && use.started.length >= rateLimit) {
          const seconds = Math.max(1, Math.ceil((oldest + MINUTE - time) / 1000));
          throw tooMany(`At most ${rateLimit} executions may start in a minute. Try again in ${seconds} s.`, seconds);
        }
        use.started.push(time);
      }
      use.running += 1;
      uses.set(id, use);
      let isInside = true;
      return () => {
        if (isInside) use.running -= 1;
        isInside = false;
      };
    },
  };
}

/** Seconds after which it makes sense to try again, where an error knows. */
export function retryAfterOf(error: CuvetteError): number | undefined {
  const { cause } = error;
  if (typeof cause !== 'object' || cause === null || !('retryAfterSeconds' in cause)) return undefined;
  return typeof cause.retryAfterSeconds === 'number' ? cause.retryAfterSeconds : undefined;
}

function tooMany(message: string, retryAfterSeconds: number): CuvetteError {
  return new CuvetteError('rate_limited', message, { cause: { retryAfterSeconds } });
}
