/** Passes on what happens in the sessions of a server to whoever watches. A watcher only looks on: what it does or throws never reaches the session. */

import type { Execution } from './execution.ts';

/** What a session itself tells. */
export type ExecutionChange =
  /** An execution is queued, has begun or has ended: its record says which. */
  | { type: 'execution'; execution: Execution }
  /** An ended execution goes on printing, by threads that it left; its output comes by this object from now on. */
  | { type: 'late output'; execution: Execution }
  /** An interpreter was started afresh. */
  | { type: 'cleared'; interpreter: string };

/** Why a session is open no more. */
export type ClosedReason = 'evicted' | 'removed';

export type SessionChange = { session: string } & (
  | ExecutionChange
  | { type: 'opened' }
  | { type: 'closed'; reason: ClosedReason }
  /** Somebody else than its code has changed files of its workspace. */
  | { type: 'files' }
);

export type ChangeListener = (change: SessionChange) => void;

export interface SessionChanges {
  tell(owner: string, change: SessionChange): void;
  /** Calls back with each change of the owner's sessions, until the returned function is called. */
  watch(owner: string, listener: ChangeListener): () => void;
}

export function createSessionChanges(): SessionChanges {
  const byOwner = new Map<string, Set<ChangeListener>>();
  return {
    tell(owner, change) {
      for (const listener of byOwner.get(owner) ?? []) {
        try {
          listener(change);
        } catch {
          // A spectator that fails disturbs nobody.
        }
      }
    },
    watch(owner, listener) {
      const listeners = byOwner.get(owner) ?? new Set();
      byOwner.set(owner, listeners.add(listener));
      return () => {
        listeners.delete(listener);
        if (listeners.size === 0 && byOwner.get(owner) === listeners) byOwner.delete(owner);
      };
    },
  };
}
