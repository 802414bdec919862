/**
 * Holds the sessions that are open in this server, up to a limit: to open one more, it evicts the least recently used session in which
 * nothing runs. Who may use a session, and how one is opened, is decided by its callers.
 */

import { rateLimited } from './admission.ts';
import type { Session } from './session.ts';
import type { ClosedReason } from './session-changes.ts';

export interface LiveSession {
  readonly session: Session;
  /** Milliseconds since 1970. */
  readonly startedAt: number;
  usedAt: number;
  /** Callers that have acquired the session and not released it yet. */
  users: number;
}

export interface LiveSessions<Live extends LiveSession> {
  get(id: string): Live | undefined;
  all(): Live[];
  readonly size: number;
  /** How many sessions were evicted so far. */
  readonly evicted: number;
  /**
   * The open session of that id; else the one that `open` returns, if it returns one, once there is room for it. It is not evicted
   * before `release`. Throws `rate_limited` if there is no room and no session can be evicted.
   */
  acquire<Opened extends Live | undefined>(id: string | undefined, open: () => Opened): Promise<Live | Opened>;
  release(live: Live): void;
  /** True if nobody has acquired the session and nothing runs or waits in it. */
  isIdle(live: Live): boolean;
  evict(live: Live): Promise<void>;
  /** Ends the session's interpreters, then runs `after`; whoever opens the session again waits for both. */
  end(live: Live, reason: ClosedReason, after?: () => Promise<void>): Promise<void>;
}

const RETRY_AFTER_SECONDS = 5;

/** `onChange` is told of each session that opens, and, with the reason, of each that has closed. */
export function createLiveSessions<Live extends LiveSession>(
  most: number,
  onChange: (live: Live, closed?: ClosedReason) => void = () => {},
): LiveSessions<Live> {
  const live = new Map<string, Live>();
  const ending = new Map<string, Promise<void>>();
  let evicted = 0;

  const isIdle = ({ session, users }: Live) => users === 0 && session.pending().length === 0;

  async function acquire<Opened extends Live | undefined>(
    id: string | undefined,
    open: () => Opened,
  ): Promise<Live | Opened> {
    for (;;) {
      if (id !== undefined) await ending.get(id);
      // From here to the end nothing is awaited, so that no other caller takes the session or the room.
      const known = id === undefined ? undefined : live.get(id);
      if (known || live.size < most) return known ? use(known) : use(open());
      const victim = leastRecentlyUsed();
      if (!victim)
        throw rateLimited(`All ${most} sessions of this server are at work. Try again soon.`, RETRY_AFTER_SECONDS);
      await evict(victim);
    }
  }

  function use<Opened extends Live | undefined>(opened: Opened): Opened {
    if (!opened) return opened;
    const isNew = !live.has(opened.session.id);
    live.set(opened.session.id, opened);
    opened.users += 1;
    opened.usedAt = Date.now();
    if (isNew) onChange(opened);
    return opened;
  }

  function leastRecentlyUsed(): Live | undefined {
    return [...live.values()].filter(isIdle).sort((a, b) => a.usedAt - b.usedAt)[0];
  }

  async function evict(opened: Live): Promise<void> {
    evicted += 1;
    await end(opened, 'evicted');
  }

  async function end(opened: Live, reason: ClosedReason, after: () => Promise<void> = async () => {}): Promise<void> {
    const { session } = opened;
    live.delete(session.id);
    const ended = session
      .stop()
      .then(after)
      .finally(() => ending.delete(session.id));
    ending.set(session.id, ended);
    await ended;
    onChange(opened, reason);
  }

  return {
    get: (id) => live.get(id),
    all: () => [...live.values()],
    get size() {
      return live.size;
    },
    get evicted() {
      return evicted;
    },
    acquire,
    release(opened) {
      opened.users -= 1;
    },
    isIdle,
    evict,
    end,
  };
}
