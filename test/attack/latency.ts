/** Measures how long another caller waits for its answers while something goes on. */

import { setTimeout as sleep } from 'node:timers/promises';

export interface Latency {
  calls: number;
  /** Milliseconds of each, in ascending order. */
  delays: number[];
  /** Milliseconds that 99 of 100 calls did not exceed. */
  p99: number;
  /** The slowest calls: their milliseconds, and what `during` said when each was made. */
  slowest: { took: number; during: string }[];
}

export interface Caller {
  /** Makes one call, and resolves when it is answered. */
  call(): Promise<unknown>;
  /** Milliseconds from one call to the next. */
  every: number;
}

export interface Delays {
  /** Notes how many milliseconds a call took. Calls that were due while it was held up count as late, too: no hold goes unseen. */
  add(took: number, during: string): void;
  /** Sums up the calls since the beginning, or since the last time this was asked. */
  take(): Latency;
}

const SHOWN = 10;

export function collectDelays(every: number): Delays {
  let delays: number[] = [];
  let calls: Latency['slowest'] = [];
  return {
    add(took, during) {
      calls.push({ took, during });
      for (let delay = took; delay > 0; delay -= every) delays.push(delay);
    },
    take() {
      const times = delays.sort((a, b) => a - b);
      const p99 = times[Math.floor(times.length * 0.99)];
      if (p99 === undefined) throw new Error('Nobody was called meanwhile.');
      const slowest = calls.sort((a, b) => b.took - a.took).slice(0, SHOWN);
      const latency = { calls: calls.length, delays: times, p99, slowest };
      [delays, calls] = [[], []];
      return latency;
    },
  };
}

/** Measures how long a caller waits while the work goes on. */
export async function latencyDuring({ call, every }: Caller, work: () => Promise<unknown>): Promise<Latency> {
  const delays = collectDelays(every);
  let isOver = false;
  const calling = (async () => {
    while (!isOver) {
      const began = performance.now();
      await call();
      const took = performance.now() - began;
      delays.add(took, '');
      await sleep(Math.max(0, every - took));
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await calling;
  }
  return delays.take();
}
