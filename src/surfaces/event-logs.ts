/** Keeps event logs by key, from their beginning until some time after their end, and deletes the oldest ended ones when they are too many or too large. */

import type { Spills } from '../files/spill.ts';
import { createEventLog, type EventFormat, type EventLog } from './event-log.ts';

export interface LogLimits {
  /** Milliseconds for which the events of an ended call can be asked for again. */
  keep: number;
  /** Of ended ones: how many, how many of them on the disk, and their bytes. Beyond, the oldest go. */
  most: number;
  mostFiles: number;
  mostBytes: number;
}

export interface EventLogs<About> {
  /** Begins a log, and keeps it. */
  begin(key: string, about: About): EventLog;
  /** Begins one that is not found again, and that its reader removes. */
  detached(key: string): EventLog;
  find(key: string): { log: EventLog; about: About } | undefined;
  /** Keeps a log no longer; whoever reads it now may read it to its end, and removes it. */
  release(key: string): void;
  /** Deletes all logs of which this holds. */
  removeWhere(holds: (about: About) => boolean): void;
}

export interface EventLogsOptions<About> {
  spills: Spills;
  limits: LogLimits;
  formatOf(key: string): EventFormat;
  onGone?(about: About): void;
}

interface Kept<About> {
  log: EventLog;
  about: About;
  timer?: NodeJS.Timeout;
}

export function createEventLogs<About>(options: EventLogsOptions<About>): EventLogs<About> {
  const { spills, limits, formatOf, onGone } = options;
  const logs = new Map<string, Kept<About>>();
  /** In the order in which they ended. */
  const ended = new Map<string, Kept<About>>();
  const create = (key: string, onEnd?: () => void) =>
    createEventLog({ spills, format: formatOf(key), most: limits.mostBytes, ...(onEnd && { onEnd }) });

  function release(key: string): EventLog | undefined {
    const kept = logs.get(key);
    if (!kept) return undefined;
    clearTimeout(kept.timer);
    logs.delete(key);
    ended.delete(key);
    onGone?.(kept.about);
    return kept.log;
  }

  const remove = (key: string) => release(key)?.remove();

  function keepEnded(key: string, kept: Kept<About>): void {
    if (logs.get(key) !== kept) return;
    kept.timer = setTimeout(remove, limits.keep, key).unref();
    ended.set(key, kept);
    const all = [...ended.values()].map(({ log }) => log);
    let bytes = all.reduce((sum, { size }) => sum + size, 0);
    let files = all.filter(({ isOnDisk }) => isOnDisk).length;
    for (const [oldest, { log }] of ended) {
      // The latest stays, however large: its reader may have lost it this very moment.
      if (oldest === key || (ended.size <= limits.most && files <= limits.mostFiles && bytes <= limits.mostBytes))
        return;
      bytes -= log.size;
      files -= log.isOnDisk ? 1 : 0;
      remove(oldest);
    }
  }

  return {
    begin(key, about) {
      const kept: Kept<About> = { log: create(key, () => keepEnded(key, kept)), about };
      logs.set(key, kept);
      return kept.log;
    },
    detached: (key) => create(key),
    find: (key) => logs.get(key),
    release: (key) => void release(key),
    removeWhere(holds) {
      for (const [key, { about }] of logs) if (holds(about)) remove(key);
    },
  };
}
