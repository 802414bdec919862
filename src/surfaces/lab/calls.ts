/** The calls of a lab by the ids that clients have given them, so that one who comes again joins what runs or gets what has ended, and nothing runs twice. */

import { CuvetteError } from '../../errors.ts';
import type { Lab } from '../../lab/core/lab.ts';
import { hashOf } from '../../lab/core/manifest.ts';
import type { Logger } from '../../log.ts';
import { type Call, type CallOptions, startCall } from './call.ts';

export interface CallLimits {
  /** Milliseconds for which a call goes on without a listener. */
  grace: number;
  /** Milliseconds for which an ended call is remembered; and how many of them, and of how many characters together. */
  keep: number;
  mostEnded: number;
  mostKept: number;
  /** How many ids of calls that are over are known as such. */
  mostOver: number;
}

export interface CallRequest {
  /** Without one, a call is its caller's alone, and ends with the connection. */
  id: string | undefined;
  name: string;
  args: Record<string, unknown>;
  /** Whether it was sent before: then it is not started. */
  isJoin: boolean;
}

export interface Calls {
  find(request: CallRequest): Call;
  /** Stops the call; its id is not free again. */
  stop(id: string): void;
}

const LIMITS: CallLimits = {
  grace: 60_000,
  keep: 600_000,
  mostEnded: 200,
  mostKept: 64 * 1024 * 1024,
  mostOver: 20_000,
};

interface Known {
  call: Call;
  /** Of the primitive and its arguments. */
  hash: string;
}

export function createCalls(lab: Lab, log: Logger, limits: Partial<CallLimits> = {}): Calls {
  const { grace, keep, mostEnded, mostKept, mostOver } = { ...LIMITS, ...limits };
  const known = new Map<string, Known>();
  /** In the order in which they ended. */
  const ended = new Map<string, { call: Call; timer: NodeJS.Timeout }>();
  /** Ids of calls that were stopped or forgotten: what has run must not run again because a client could not know. */
  const over = new Set<string>();

  function start({ id, name, args }: CallRequest): Call {
    const run = runningOf(lab, name, args);
    if (id === undefined) return startCall({ run, grace: 0, mostKept, onEnd: () => {}, onStop: () => {}, log });
    const call = startCall({
      run,
      grace,
      mostKept,
      onEnd: () => remember(id, call),
      onStop: () => drop(id, call),
      log,
    });
    known.set(id, { call, hash: hashOf([name, args]) });
    return call;
  }

  /** What was stopped while it ran has no answer that anyone could want again. */
  function remember(id: string, call: Call): void {
    if (known.get(id)?.call !== call) return;
    ended.set(id, { call, timer: setTimeout(drop, keep, id, call).unref() });
    let size = [...ended.values()].reduce((sum, one) => sum + one.call.size(), 0);
    for (const [oldest, one] of ended) {
      // The latest stays, however large its answer: its client may have lost it this very moment.
      if (oldest === id || (ended.size <= mostEnded && size <= mostKept)) break;
      size -= one.call.size();
      drop(oldest, one.call);
    }
  }

  function drop(id: string, call: Call): void {
    if (known.get(id)?.call !== call) return;
    known.delete(id);
    clearTimeout(ended.get(id)?.timer);
    ended.delete(id);
    over.add(id);
    for (const oldest of over) {
      if (over.size <= mostOver) break;
      over.delete(oldest);
    }
  }

  return {
    find(request) {
      const { id, name, args, isJoin } = request;
      const found = id === undefined ? undefined : known.get(id);
      if (found && found.hash !== hashOf([name, args]))
        throw new CuvetteError(
          'invalid_input',
          `The call ${id} was another primitive, or had other arguments. Give each call an id of its own.`,
        );
      if (id !== undefined && over.has(id))
        throw new CuvetteError(
          'call_over',
          `The call ${id} is over: it was stopped, because nobody listened or somebody said so, or its answer was too long ago. To run it again, give it another id.`,
        );
      if (!found && isJoin)
        throw new CuvetteError(
          'unknown_call',
          `This lab knows no call ${id}: it was started again since, or the call never came here. Send the call without the header x-join.`,
        );
      return found?.call ?? start(request);
    },
    stop(id) {
      const found = known.get(id);
      if (!found) throw new CuvetteError('unknown_call', `This lab knows no call ${id}; there is nothing to stop.`);
      found.call.stop();
    },
  };
}

/** Apart from what an ended call is remembered with: functions made in one place hold all that any of them uses, and arguments can be large. */
function runningOf(lab: Lab, name: string, args: Record<string, unknown>): CallOptions['run'] {
  return async (context) => lab.call(name, args, context);
}
