/** Watches another caller of the service that is attacked: its variables must survive, and its every answer must come. With CUVETTE_LATENCIES, a file, how long it waits is written there. */

import { once } from 'node:events';
import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { expect } from 'vitest';
import { ok, type Service } from '../e2e/http/service.ts';
import { collectDelays } from './latency.ts';

const latencies = process.env.CUVETTE_LATENCIES;
/** Milliseconds for which it is called while nothing else goes on, where that is asked for, and those before in which nothing counts: its code is still being compiled. */
const QUIET = 10_000;
const WARM_UP = 2000;
const EVERY = 100;
const ENTITY = 'bystander';

export const isLatencyAsked = latencies !== undefined;

export interface Bystander {
  /** Calls it again and again from here on. */
  begin(): Promise<void>;
  /** Gives what it was answered wrongly since the last time this was asked. */
  takeFailures(): string[];
  stop(): Promise<void>;
}

/** Makes a session with variables, that is called from `begin` to `stop`, in a thread: what the tests themselves do does not hold it up. */
export async function createBystander({ service, key }: { service: Service; key: string }): Promise<Bystander> {
  const mark = crypto.randomUUID();
  const body = { lang: 'py', code: `mark = "${mark}"; count = 0`, entity_id: ENTITY };
  ok(await service.as({ 'x-api-key': key }).post('/exec', body));
  const failures: string[] = [];
  const delays = collectDelays(EVERY);
  const { testPath = '' } = expect.getState();
  let worker: Worker | undefined;
  let quiet: number[] = [];
  return {
    takeFailures: () => failures.splice(0),
    async begin() {
      const workerData = { url: `${service.url}/exec`, key, entity_id: ENTITY, mark, every: EVERY };
      worker = new Worker(new URL('./bystander-calls.mjs', import.meta.url), { workerData });
      worker.on('message', ({ took, failure }: { took: number; failure?: string }) => {
        delays.add(took, expect.getState().currentTestName ?? 'the start');
        if (failure !== undefined) failures.push(failure);
      });
      if (!isLatencyAsked) return;
      await sleep(WARM_UP);
      delays.take();
      await sleep(QUIET);
      quiet = delays.take().delays;
    },
    async stop() {
      if (!worker) return;
      worker.postMessage('stop');
      await once(worker, 'exit');
      const { calls, delays: during, p99, slowest } = delays.take();
      const [most, worst] = [Math.round(p99), Math.round(slowest[0]?.took ?? 0)];
      console.log(
        `bystander: ${calls} calls answered, 99 % of them within ${most} ms, the slowest in ${worst} ms, during: ${slowest[0]?.during}`,
      );
      const row = { file: basename(testPath), quiet, during, slowest };
      if (latencies) appendFileSync(latencies, `${JSON.stringify(row)}\n`);
    },
  };
}
