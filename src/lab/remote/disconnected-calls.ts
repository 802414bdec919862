/** Remembers the ids of calls whose connection was lost for good, so that the same call made again joins the one that may still run there. */

import { hashOf } from '../core/manifest.ts';

/** By which a call is known to be the same. */
export interface CallIdentity {
  /** What it was asked of: the model, or the address where that is not known. */
  of: string;
  name: string;
  args: Record<string, unknown>;
}

export interface DisconnectedCalls {
  keep(call: CallIdentity, id: string): void;
  /** The id that it had, once. */
  take(call: CallIdentity): string | undefined;
}

/** Milliseconds; a lab or a service remembers no longer. */
const KEEP = 600_000;

export function createDisconnectedCalls(): DisconnectedCalls {
  const ids = new Map<string, { id: string; until: number }>();
  return {
    keep(call, id) {
      const now = Date.now();
      for (const [key, { until }] of ids) if (until <= now) ids.delete(key);
      ids.set(keyOf(call), { id, until: now + KEEP });
    },
    take(call) {
      if (ids.size === 0) return undefined;
      const key = keyOf(call);
      const found = ids.get(key);
      ids.delete(key);
      return found && found.until > Date.now() ? found.id : undefined;
    },
  };
}

function keyOf({ of, name, args }: CallIdentity): string {
  return hashOf([of, name, args]);
}
