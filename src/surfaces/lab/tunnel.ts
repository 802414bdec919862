/** Keeps a tunnel to a lab open: when its program ends, that is told, and it is started again. */

import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../../errors.ts';
import type { TunnelClient } from './tunnel-clients.ts';
import { startTunnelProcess } from './tunnel-process.ts';

export interface TunnelOptions {
  client: TunnelClient;
  /** To which it leads, as 127.0.0.1:8787. */
  address: string;
  /** A new address, in place of the one before. */
  onAddress(url: string): void;
  onTrouble(message: string): void;
  signal: AbortSignal;
  /** Milliseconds until it must have told its address. */
  patience?: number;
  /** Milliseconds before the first new start; twice as long before each next. */
  pause?: number;
}

export interface Tunnel {
  /** Where it begins; nothing while there is none. */
  url(): string | undefined;
  close(): Promise<void>;
}

const PATIENCE = 60_000;
const PAUSE = 1000;
const LONGEST_PAUSE = 60_000;
/** Milliseconds; one that was open for so long has had an accident of its own. */
const STEADY = 60_000;

export async function openTunnel(options: TunnelOptions): Promise<Tunnel> {
  const { client, address, onAddress, onTrouble, patience = PATIENCE, pause = PAUSE } = options;
  const stop = new AbortController();
  const signal = AbortSignal.any([options.signal, stop.signal]);
  const start = () => {
    const tunnel = startTunnelProcess(client, address, patience);
    signal.addEventListener('abort', () => void tunnel.close(), { once: true });
    return tunnel;
  };

  let current = start();
  let url = await current.url;
  if (url === undefined) {
    const why = await current.ended;
    options.signal.throwIfAborted();
    throw new CuvetteError('lab_unreachable', `There is no tunnel: ${why}\n${ADVICE}`);
  }
  const kept = keep();

  async function keep(): Promise<void> {
    let next = pause;
    while (!signal.aborted) {
      const since = Date.now();
      const why = await current.ended;
      url = undefined;
      if (signal.aborted) return;
      if (Date.now() - since > STEADY) next = pause;
      onTrouble(`The tunnel is gone: ${why}\nIt is opened again in ${next / 1000} s; the lab goes on meanwhile.`);
      await sleep(next, undefined, { signal }).catch(() => {});
      next = Math.min(next * 2, LONGEST_PAUSE);
      if (signal.aborted) return;
      current = start();
      url = await current.url;
      if (url !== undefined) onAddress(url);
    }
  }

  return {
    url: () => url,
    async close() {
      stop.abort();
      await current.close();
      await kept;
    },
  };
}

const ADVICE = 'See what it says when you call it yourself, use the other --tunnel, or reach the lab by ssh -L.';
