/** Keeps the event logs of streamed executions: their owner finds them again by session and number, or by the id that it gave the call. */

import type { Spills } from '../../files/spill.ts';
import { type CallIds, createCallIds } from '../call-ids.ts';
import type { EventLog } from '../event-log.ts';
import { createEventLogs, type LogLimits } from '../event-logs.ts';

export interface StreamLogs {
  /** Begins the log of an execution, and keeps it; also by the id of its call, if it has one. */
  begin(session: string, execution: number, owner: string, id?: string): EventLog;
  /** One for a single reader, which is not found again, and which that reader removes. */
  detached(session: string, execution: number): EventLog;
  /** The log, if it is there and this owner's. */
  find(session: string, execution: number, owner: string): EventLog | undefined;
  /** Forgets the logs of a session. */
  removeSession(id: string): void;
  close(): void;
  /** Calls by the ids that clients gave them. */
  readonly ids: CallIds<StreamedCall>;
}

export interface StreamedCall {
  /** Once the code is in its session's queue. */
  log: Promise<EventLog>;
  /** Interrupts the code; what waits is not run. */
  cancel(): void;
}

interface About {
  session: string;
  owner: string;
  id: string | undefined;
}

const LIMITS: LogLimits = { keep: 10 * 60_000, most: 1000, mostFiles: 200, mostBytes: 1 << 30 };

export function createStreamLogs(spills: Spills, limits: Partial<LogLimits> = {}): StreamLogs {
  const ids = createCallIds<StreamedCall>('service');
  const logs = createEventLogs<About>({
    spills,
    limits: { ...LIMITS, ...limits },
    formatOf: (key) => ({
      before: (number) => `id: ${key}.${number}\ndata: `,
      after: '\n\n',
      dropped: (text) => JSON.stringify({ type: 'stream', name: 'stderr', stream: 'stderr', text }),
    }),
    onGone({ owner, id }) {
      if (id !== undefined) ids.retire({ owner, id });
    },
  });
  const keyOf = (session: string, execution: number) => `${session}.${execution}`;
  return {
    ids,
    begin: (session, execution, owner, id) => logs.begin(keyOf(session, execution), { session, owner, id }),
    detached: (session, execution) => logs.detached(keyOf(session, execution)),
    find(session, execution, owner) {
      const found = logs.find(keyOf(session, execution));
      return found?.about.owner === owner ? found.log : undefined;
    },
    removeSession: (id) => logs.removeWhere(({ session }) => session === id),
    close: () => logs.removeWhere(() => true),
  };
}
