/** The event logs of streamed executions, by session and number: whose they are, and how long and how much of them is kept once they have ended. */

import type { Spills } from '../../files/spill.ts';
import { createEventLog, type EventLog } from '../event-log.ts';

export interface LogLimits {
  /** Milliseconds for which the events of an ended execution can be asked for again. */
  keep: number;
  /** Of ended ones: how many, how many of them on the disk, and their bytes. Beyond, the oldest go. */
  most: number;
  mostFiles: number;
  mostBytes: number;
}

export interface StreamLogs {
  /** Begins the log of an execution, and keeps it. */
  begin(session: string, execution: number, owner: string): StreamLog;
  /** One for a single reader, which is not found again, and which that reader removes. */
  detached(session: string, execution: number): EventLog;
  /** The log, if it is there and this owner's. */
  find(session: string, execution: number, owner: string): EventLog | undefined;
  /** Forgets the logs of a session. */
  removeSession(id: string): void;
  close(): void;
}

export type StreamLog = Pick<EventLog, 'add' | 'end' | 'read'>;

interface Kept {
  log: EventLog;
  session: string;
  owner: string;
  timer?: NodeJS.Timeout;
}

const LIMITS: LogLimits = { keep: 10 * 60_000, most: 1000, mostFiles: 200, mostBytes: 1 << 30 };

export function createStreamLogs(spills: Spills, limits: Partial<LogLimits> = {}): StreamLogs {
  const { keep, most, mostFiles, mostBytes } = { ...LIMITS, ...limits };
  const logs = new Map<string, Kept>();
  /** In the order in which they ended. */
  const ended = new Set<string>();

  const keyOf = (session: string, execution: number) => `${session}.${execution}`;
  const create = (key: string) =>
    createEventLog(spills, { before: (number) => `id: ${key}.${number}\ndata: `, after: '\n\n' });

  function remove(key: string): void {
    const kept = logs.get(key);
    clearTimeout(kept?.timer);
    kept?.log.remove();
    logs.delete(key);
    ended.delete(key);
  }

  /** The latest stays, however large: its reader may have lost it this very moment. */
  function makeRoom(latest: string): void {
    const those = [...ended].flatMap((key) => logs.get(key)?.log ?? []);
    let bytes = those.reduce((sum, { size }) => sum + size, 0);
    let files = those.filter(({ isOnDisk }) => isOnDisk).length;
    for (const key of ended) {
      if (key === latest || (ended.size <= most && files <= mostFiles && bytes <= mostBytes)) return;
      const log = logs.get(key)?.log;
      bytes -= log?.size ?? 0;
      files -= log?.isOnDisk ? 1 : 0;
      remove(key);
    }
  }

  return {
    begin(session, execution, owner) {
      const key = keyOf(session, execution);
      const log = create(key);
      const kept: Kept = { log, session, owner };
      logs.set(key, kept);
      return {
        add: log.add,
        read: log.read,
        end(last) {
          log.end(last);
          if (logs.get(key) !== kept) return;
          kept.timer = setTimeout(remove, keep, key).unref();
          ended.add(key);
          makeRoom(key);
        },
      };
    },
    detached: (session, execution) => create(keyOf(session, execution)),
    find(session, execution, owner) {
      const kept = logs.get(keyOf(session, execution));
      return kept?.owner === owner ? kept.log : undefined;
    },
    removeSession(id) {
      for (const [key, { session }] of logs) if (session === id) remove(key);
    },
    close() {
      for (const key of [...logs.keys()]) remove(key);
    },
  };
}
