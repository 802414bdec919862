/** The calls of a lab by the ids that clients have given them: a client that comes again joins its call while it runs, or gets what it ended with. */

import type { Spills } from '../../files/spill.ts';
import type { Lab } from '../../lab/lab.ts';
import { hashOf } from '../../lab/manifest.ts';
import type { Logger } from '../../log.ts';
import { createCallIds } from '../call-ids.ts';
import { createEventLogs } from '../event-logs.ts';
import { LAB_EVENTS, type LabCall, type LabCallOptions, startLabCall } from './lab-call.ts';

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
