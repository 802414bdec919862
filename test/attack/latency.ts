/** Measures how long another caller waits for its answers while something goes on. */

import { setTimeout as sleep } from 'node:timers/promises';

export interface Latency {
  calls: number;
  /** Milliseconds that 99 of 100 calls did not exceed. */
  p99: number;
  /** Milliseconds of the slowest call, and what `during` said when it was made. */
  worst: number;
  worstDuring: string;
}

export interface Caller {
  /** Makes one call, and resolves when it is answered. */
  call(): Promise<unknown>;
  /** Milliseconds from one call to the next. */
  every: number;
  /** What goes on at the moment. */
  during?(): string;
}

export interface Measurement {
  /** Of the calls since the beginning, or since the last time this was asked. */
  take(): Latency;
  stop(): Promise<Latency>;
}

/** Makes a call at each of its times until it is stopped. Calls that were due while another was held up count as late, too: no hold goes unseen. */
export function measureLatency({ call, every, during = () => '' }: Caller): Measurement {
  let delays: number[] = [];
  let worst = { worst: 0, worstDuring: '' };
  let calls = 0;
  let isOver = false;
  const loop = (async () => {
    while (!isOver) {
      const worstDuring = during();
      const began = performance.now();
      await call();
      const took = performance.now() - began;
      calls += 1;
      for (let delay = took; delay > 0; delay -= every) delays.push(delay);
      if (took > worst.worst) worst = { worst: took, worstDuring };
      await sleep(Math.max(0, every - took));
    }
  })();

  function take(): Latency {
    const times = delays.sort((a, b) => a - b);
    const p99 = times[Math.floor(times.length * 0.99)];
    if (p99 === undefined) throw new Error('Nobody was called meanwhile.');
    const latency = { calls, p99, ...worst };
    [delays, worst, calls] = [[], { worst: 0, worstDuring: '' }, 0];
    return latency;
  }

  return {
    take,
    async stop() {
      isOver = true;
      await loop;
      return take();
    },
  };
}

/** How long a caller waits while the work goes on. */
export async function latencyDuring(caller: Caller, work: () => Promise<unknown>): Promise<Latency> {
  const measurement = measureLatency(caller);
  try {
    await work();
  } catch (error) {
    await measurement.stop();
    throw error;
  }
  return measurement.stop();
}
