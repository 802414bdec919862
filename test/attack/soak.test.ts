/**
 * Makes thousands of calls of all kinds at once, with faults among them, to a service that must evict sessions all the time.
 * Every answer must be right, every session must have its own variables or be told that they are lost, and nothing may pile up.
 * CUVETTE_SOAK sets the number of calls; CUVETTE_SEED repeats a run.
 */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ok } from '../e2e/http/service.ts';
import { KEY, SMALL_LIMITS, useTarget } from './attack.ts';
import { inventoryOf, quietMemoryOf, surplusOf } from './inventory.ts';
import { createLuck, seedOf } from './luck.ts';
import { createSoaker, MARK, type Soaker, type Soaking } from './soaker.ts';

const CALLS = Number(process.env.CUVETTE_SOAK ?? 2000);
const WARM_UP = 500;
const CALLERS = 8;
const SHOWN = 30;
const MIB = 2 ** 20;
const seed = seedOf(process.env.CUVETTE_SEED);

const service = await useTarget({
  hasBystander: false,
  args: ['--sandbox', 'on'],
  env: {
    ...SMALL_LIMITS,
    CUVETTE_MAX_SESSIONS: '12',
    CUVETTE_SESSION_MEMORY: '384MiB',
    CUVETTE_SESSION_PROCESSES: '32',
    CUVETTE_SESSION_QUOTA: '32MiB',
    CUVETTE_MAX_OUTPUT: '100000',
  },
});
const caller = service.as({ 'x-api-key': KEY });

test('a service under long mixed load answers every call correctly and leaves nothing behind', {
  // Ends one that hangs: it tells of every hundred calls.
  timeout: CALLS * 5000,
}, async () => {
  console.log(`soak: seed ${seed}`);
  await expectLimits();
  const soaking: Soaking = { caller, calls: 0, faults: 0, losses: 0, leftovers: new Set(), log: [] };
  const soakers = Array.from({ length: CALLERS }, (_, number) =>
    createSoaker(soaking, number, createLuck(seed + number)),
  );

  await soak(soaking, soakers, Math.min(WARM_UP, CALLS / 2));
  const before = await inventoryOf(service);
  const memoryBefore = await quietMemoryOf(service.pid);
  await soak(soaking, soakers, CALLS);
  expect(await surplusOf(service, before), 'what has piled up').toEqual([]);
  const memoryAfter = await quietMemoryOf(service.pid);

  for (const folder of ['/tmp', '/dev/shm', '/var/tmp', '/home'])
    expect(readdirSync(folder).filter((name) => name.startsWith(MARK))).toEqual([]);
  expect(readdirSync(join(service.home.data, 'sessions'))).toEqual([]);
  const { calls, faults, losses } = soaking;
  const figures = `${Math.round(memoryBefore / MIB)} MiB, then ${Math.round(memoryAfter / MIB)} MiB`;
  console.log(`soak: ${calls} calls, ${faults} faults, ${losses} sessions told of lost variables, memory ${figures}`);
  expect(memoryAfter).toBeLessThan(1.5 * memoryBefore + 40 * MIB);
  expect(service.stderr()).toBe('');
});

/** Calls until there have been so many, then ends all sessions. */
async function soak(soaking: Soaking, soakers: Soaker[], calls: number): Promise<void> {
  const failures: string[] = [];
  const work = soakers.map(async (soaker, number) => {
    try {
      while (soaking.calls < calls && failures.length === 0) await soaker.step();
    } catch (error) {
      failures.push(`${number}: ${error}`);
    }
  });
  await Promise.all(work);
  if (failures.length > 0) console.log(`The last requests:\n${soaking.log.slice(-SHOWN).join('\n')}`);
  expect(failures, `CUVETTE_SEED=${seed}`).toEqual([]);
  for (const soaker of soakers) await soaker.end();
  for (const id of soaking.leftovers) ok(await caller.send('DELETE', `/sessions/${id}`));
  soaking.leftovers.clear();
}

/** No bomb is set off where it is not known to be contained. */
async function expectLimits(): Promise<void> {
  const { sandbox } = ok(await caller.get('/health')).json<{ sandbox: string }>();
  expect(sandbox).toMatch(/^on\b/);
  const code = `import subprocess
started = []
try:
    while len(started) < 100: started.append(subprocess.Popen(["sleep", "30"]))
except OSError: pass
for one in started: one.kill(); one.wait()
print(len(started))`;
  const { stdout, session_id } = await caller.python(code);
  expect(Number(stdout)).toBeLessThan(32);
  ok(await caller.send('DELETE', `/sessions/${session_id}`));
}
