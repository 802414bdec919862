/** How long another caller waits for its answers while something goes on. */

import { setTimeout as sleep } from 'node:timers/promises';
import { type Caller, ok } from '../e2e/http/service.ts';

const EVERY = 25;

export interface Latency {
  calls: number;
  /** Milliseconds that 99 of 100 calls did not exceed. */
  p99: number;
}

/** Calls come at their times, whether or not those before have been answered: no hold goes unseen. */
export async function latencyDuring(caller: Caller, work: () => Promise<unknown>): Promise<Latency> {
  const answered: Promise<number>[] = [];
  let isOver = false;
  const callOnce = async () => {
    const began = performance.now();
    ok(await caller.get('/'));
    return performance.now() - began;
  };
  const calling = (async () => {
    while (!isOver) {
      answered.push(callOnce());
      await sleep(EVERY);
    }
  })();
  try {
    await work();
  } finally {
    isOver = true;
    await calling;
  }
  const times = (await Promise.all(answered)).sort((a, b) => a - b);
  const p99 = times[Math.floor(times.length * 0.99)];
  if (p99 === undefined) throw new Error('Nobody was called meanwhile.');
  return { calls: times.length, p99 };
}
