/**
 * Keeps the event logs of what somebody watches: each is begun by its first reader, shared by all that follow, and removed some time after
 * the last has gone, so that one who lost the connection goes on where it was. For what nobody watches, nothing is kept or computed.
 */

import { nanoid } from 'nanoid';
import { CuvetteError } from '../../errors.ts';
import type { Spills } from '../../files/spill.ts';
import { rateLimited } from '../../sessions/admission.ts';
import { createEventLog, type EventLog, type EventReader } from '../event-log.ts';

/** What is watched: where it stands, and what becomes of it. */
export interface Watched {
  /** Tells where things stand now. May first tell events that wait to be told. */
  snapshot(): object;
  /** Begins to tell what happens; returns how to stop that. */
  begin(tell: (event: object) => void, end: () => void): () => void;
}

export interface Watches {
  /** Reads on after the event of that id; from where things stand now, if that is not known any more or was not given. */
  read(owner: string, key: string, after: string | undefined, watched: Watched): WatchReader;
  /** Tells all readers that the server is stopping, and ends them. */
  close(): void;
}

export interface WatchReader extends EventReader {
  /** Must be called when the stream has ended, whoever ended it. */
  done(): void;
}

export interface WatchLimits {
  /** Bytes of events that are kept of one thing that is watched. */
  mostBytes: number;
  /** Milliseconds for which they are kept when nobody reads them. */
  keep: number;
  /** Readers that one caller may have at once. */
  mostReaders: number;
}

interface Watch {
  readonly instance: string;
  readonly log: EventLog;
  readonly tell: (event: object) => void;
  readonly stop: () => void;
  readers: number;
  timer: NodeJS.Timeout | undefined;
}

const LIMITS: WatchLimits = { mostBytes: 8 << 20, keep: 60_000, mostReaders: 100 };
const STOPPING = { type: 'closed', reason: 'stopping', message: 'The server is stopping. Connect again in a moment.' };

export function createWatches(spills: Spills, limits: Partial<WatchLimits> = {}): Watches {
  const { mostBytes, keep, mostReaders } = { ...LIMITS, ...limits };
  const watches = new Map<string, Watch>();
  const readersOf = new Map<string, number>();
  let isClosed = false;

  function begin(key: string, watched: Watched): Watch {
    const instance = nanoid(10);
    const log = createEventLog({
      spills,
      format: {
        before: (number) => `id: ${instance}.${number}\ndata: `,
        after: '\n\n',
        dropped: (text) => JSON.stringify({ type: 'dropped', message: text }),
      },
      most: mostBytes,
      snapshot: () => JSON.stringify(watched.snapshot()),
    });
    const tell = (event: object) => void log.add(JSON.stringify(event));
    // Who comes after its end begins anew.
    const end = () => {
      log.end();
      remove(key, watch);
    };
    const watch: Watch = { instance, log, tell, stop: watched.begin(tell, end), readers: 0, timer: undefined };
    watches.set(key, watch);
    return watch;
  }

  /** Readers that are there may read to the end. */
  function remove(key: string, watch: Watch): void {
    clearTimeout(watch.timer);
    watch.stop();
    if (watches.get(key) === watch) watches.delete(key);
    if (watch.readers === 0) watch.log.remove();
  }

  function leave(owner: string, key: string, watch: Watch): void {
    const left = (readersOf.get(owner) ?? 1) - 1;
    if (left > 0) readersOf.set(owner, left);
    else readersOf.delete(owner);
    watch.readers -= 1;
    if (watch.readers > 0) return;
    if (watches.get(key) === watch) watch.timer = setTimeout(remove, keep, key, watch).unref();
    else watch.log.remove();
  }

  return {
    read(owner, name, after, watched) {
      if (isClosed) throw new CuvetteError('no_server', STOPPING.message);
      const count = readersOf.get(owner) ?? 0;
      if (count >= mostReaders)
        throw rateLimited(
          `At most ${mostReaders} streams of events may be open at once. Close one that is not needed.`,
          5,
        );
      readersOf.set(owner, count + 1);
      const key = JSON.stringify([owner, name]);
      const watch = watches.get(key) ?? begin(key, watched);
      clearTimeout(watch.timer);
      watch.readers += 1;
      const reader = watch.log.read(placeIn(watch, after));
      let isDone = false;
      return {
        next: reader.next,
        get isWaiting() {
          return reader.isWaiting;
        },
        leave: reader.leave,
        done() {
          if (isDone) return;
          isDone = true;
          reader.leave();
          leave(owner, key, watch);
        },
      };
    },
    close() {
      isClosed = true;
      for (const [key, watch] of watches) {
        watch.tell(STOPPING);
        watch.log.end();
        remove(key, watch);
      }
    },
  };
}

/** Where to read on after an event, if this log has had it. */
function placeIn({ instance, log }: Watch, after: string | undefined): number | 'now' {
  const [, known, number = ''] = /^([\w-]{10})\.(\d{1,15})$/.exec(after ?? '') ?? [];
  return known === instance && Number(number) <= log.last ? Number(number) : 'now';
}
