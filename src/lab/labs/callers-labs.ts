/**
 * Gives each caller of a service labs of its own, with captures and probes that no other caller sees. Opens only the endpoints that the operator admits.
 * Evicts the labs of the least recently used caller when too many are open.
 */

import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { isUrl } from '../../config.ts';
import { CuvetteError } from '../../errors.ts';
import { createLabs, DEMO, type Labs, type LabsOptions } from './labs.ts';

export interface CallersLabs {
  of(caller: string): Labs;
  close(): Promise<void>;
}

export interface CallersLabsOptions extends Omit<LabsOptions, 'check' | 'isShared'> {
  /** What may be attached, as callers write it. */
  endpoints: readonly string[];
  /** Whether any URL may be attached, since callers are programs of this machine, which can reach it themselves. */
  admitsUrls: boolean;
  /** Callers whose labs are open at once. */
  most?: number;
}

interface CallerLabs {
  labs: Labs;
  usedAt: number;
  calls: number;
}

const MOST = 4;

export function createCallersLabs(options: CallersLabsOptions): CallersLabs {
  const { endpoints, admitsUrls, most = MOST, ...places } = options;
  const callers = new Map<string, CallerLabs>();

  function check(endpoint: string): void {
    if (endpoints.includes(endpoint) || (admitsUrls && isUrl(endpoint))) return;
    const admittedEndpoints =
      [...endpoints, ...(admitsUrls ? ['the URL of a cuvette lab serve'] : [])].join(', ') || 'nothing';
    throw new CuvetteError(
      'forbidden',
      `This service does not open ${endpoint} for its callers. It admits: ${admittedEndpoints}. Whoever runs it can admit more with --lab-endpoints (CUVETTE_LAB_ENDPOINTS).`,
    );
  }

  async function enter(caller: string): Promise<CallerLabs> {
    const known = callers.get(caller);
    if (known) return use(known);
    if (callers.size >= most) await evictLeastRecentlyUsed();
    const data = join(options.data, 'callers', createHash('sha256').update(caller).digest('hex').slice(0, 24));
    const callerLabs = callers.get(caller) ?? {
      labs: createLabs({ ...places, data, check, isShared: true }),
      usedAt: 0,
      calls: 0,
    };
    callers.set(caller, callerLabs);
    return use(callerLabs);
  }

  function use(callerLabs: CallerLabs): CallerLabs {
    callerLabs.usedAt = Date.now();
    callerLabs.calls += 1;
    return callerLabs;
  }

  async function evictLeastRecentlyUsed(): Promise<void> {
    const [oldest] = [...callers].filter(([, { calls }]) => calls === 0).sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (!oldest)
      throw new CuvetteError('rate_limited', `The labs of ${most} callers are at work. Try again soon.`, {
        cause: { retryAfterSeconds: 5 },
      });
    callers.delete(oldest[0]);
    await oldest[1].labs.close();
  }

  async function within<T>(caller: string, work: (labs: Labs) => Promise<T>): Promise<T> {
    const callerLabs = await enter(caller);
    try {
      return await work(callerLabs.labs);
    } finally {
      callerLabs.calls -= 1;
    }
  }

  return {
    of: (caller) => ({
      attach: (...args) => within(caller, (labs) => labs.attach(...args)),
      detach: (...args) => within(caller, (labs) => labs.detach(...args)),
      call: (...args) => within(caller, (labs) => labs.call(...args)),
      // Listing opens no lab, and evicts none.
      attached: async () => callers.get(caller)?.labs.attached() ?? [],
      close: async () => {},
    }),
    async close() {
      await Promise.all([...callers.values()].map(({ labs }) => labs.close()));
      callers.clear();
    },
  };
}

/** The endpoints that callers may attach: those of the setting; by default the shipped model, if only this machine can call. */
export function admitted(setting: readonly string[] | undefined, isOpen: boolean): readonly string[] {
  return setting ?? (isOpen ? [DEMO] : []);
}
