/** Another caller of the service that is attacked: its variables must survive, and its every answer must come. With CUVETTE_LATENCIES, a file, how long it waits is written there. */

import { appendFileSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import type { Caller } from '../e2e/http/service.ts';
import { type Measurement, measureLatency } from './latency.ts';

const latencies = process.env.CUVETTE_LATENCIES;
/** Milliseconds for which it is called while nothing else goes on, where that is asked for. */
const QUIET = 10_000;
const EVERY = 100;

export const isLatencyAsked = latencies !== undefined;

export interface Bystander {
  /** Calls it again and again from here on. */
  begin(): Promise<void>;
  /** What it was answered wrongly since the last time this was asked. */
  takeFailures(): string[];
  stop(): Promise<void>;
}

/** A session with variables, that is called from `begin` to `stop`. */
export async function createBystander(caller: Caller): Promise<Bystander> {
  const entity_id = 'bystander';
  const mark = crypto.randomUUID();
  await caller.python(`mark = "${mark}"; count = 0`, { entity_id });
  const failures: string[] = [];
  let calls = 0;

  async function call(): Promise<void> {
    try {
      const { stdout, stderr } = await caller.python('count += 1; print(mark, count)', { entity_id });
      calls += 1;
      const expected = `${mark} ${calls}\n`;
      if (stdout !== expected) failures.push(`${JSON.stringify(stdout)} for ${JSON.stringify(expected)} ${stderr}`);
    } catch (error) {
      failures.push(String(error));
    }
  }

  const { testPath = '' } = expect.getState();
  let measurement: Measurement | undefined;
  let quiet = Number.NaN;
  return {
    takeFailures: () => failures.splice(0),
    async begin() {
      const during = () => expect.getState().currentTestName ?? 'the start';
      measurement = measureLatency({ call, every: EVERY, during });
      if (!isLatencyAsked) return;
      await sleep(QUIET);
      quiet = measurement.take().p99;
    },
    async stop() {
      if (!measurement) return;
      const { calls, p99, worst, worstDuring } = await measurement.stop();
      const [most, slowest] = [Math.round(p99), Math.round(worst)];
      console.log(
        `bystander: ${calls} calls answered, 99 % of them within ${most} ms, the slowest in ${slowest} ms, during: ${worstDuring}`,
      );
      const row = { file: basename(testPath), quiet, during: p99, calls, worst, worstDuring };
      if (latencies) appendFileSync(latencies, `${JSON.stringify(row)}\n`);
    },
  };
}
