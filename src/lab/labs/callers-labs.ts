/**
 * The labs of a service's callers: each has labs of its own, with captures and probes that no other sees. Opens what the
 * operator admits and no file that a caller names. Few are open at a time; the least recently used is closed for another.
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
  /** Whether any URL may be, since callers are programs of this machine, which can reach it themselves. */
  admitsUrls: boolean;
  /** Callers whose labs are open at once. */
  most?: number;
}

interface Held {
  labs: Labs;
  usedAt: number;
  calls: number;
}

const MOST = 4;

export function createCallersLabs(options: CallersLabsOptions): CallersLabs {
  const { endpoints, admitsUrls, most = MOST, ...places } = options;
  const held = new Map<string, Held>();

  function check(endpoint: string): void {
    if (endpoints.includes(endpoint) || (admitsUrls && isUrl(endpoint))) return;
    const admitted = [...endpoints, ...(admitsUrls ? ['the URL of a cuvette lab serve'] : [])].join(', ') || 'nothing';
    throw new CuvetteError(
      'forbidden',
      `This service does not open ${endpoint} for its callers. It admits: ${admitted}. Whoever runs it can admit more with --lab-endpoints (CUVETTE_LAB_ENDPOINTS).`,
    );
  }

  async function enter(caller: string): Promise<Held> {
    const known = held.get(caller);
    if (known) return use(known);
    if (held.size >= most) await closeOne();
    const data = join(options.data, 'callers', createHash('sha256').update(caller).digest('hex').slice(0, 24));
    const one = held.get(caller) ?? {
      labs: createLabs({ ...places, data, check, isShared: true }),
      usedAt: 0,
      calls: 0,
    };
    held.set(caller, one);
    return use(one);
  }

  function use(one: Held): Held {
    one.usedAt = Date.now();
    one.calls += 1;
    return one;
  }

  async function closeOne(): Promise<void> {
    const [oldest] = [...held].filter(([, { calls }]) => calls === 0).sort(([, a], [, b]) => a.usedAt - b.usedAt);
    if (!oldest)
      throw new CuvetteError('rate_limited', `The labs of ${most} callers are at work. Try again soon.`, {
        cause: { retryAfterSeconds: 5 },
      });
    held.delete(oldest[0]);
    await oldest[1].labs.close();
  }

  async function within<T>(caller: string, work: (labs: Labs) => Promise<T>): Promise<T> {
    const one = await enter(caller);
    try {
      return await work(one.labs);
    } finally {
      one.calls -= 1;
    }
  }

  return {
    of: (caller) => ({
      attach: (...args) => within(caller, (labs) => labs.attach(...args)),
      detach: (...args) => within(caller, (labs) => labs.detach(...args)),
      call: (...args) => within(caller, (labs) => labs.call(...args)),
      // To ask opens nothing, and takes nobody's place.
      attached: async () => held.get(caller)?.labs.attached() ?? [],
      close: async () => {},
    }),
    async close() {
      await Promise.all([...held.values()].map(({ labs }) => labs.close()));
      held.clear();
    },
  };
}

/** What callers may attach unless the operator says otherwise: the model that ships, where nobody but this machine calls. */
export function admitted(setting: readonly string[] | undefined, isOpen: boolean): readonly string[] {
  return setting ?? (isOpen ? [DEMO] : []);
}
