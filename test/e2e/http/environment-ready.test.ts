/** What calls find from the moment on at which the managed environment is ready, whatever was started before. */

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { withLock } from '../../../src/file-lock.ts';
import { createHome, waitFor } from '../harness.ts';
import { endHome, type Service, startService } from './service.ts';

const LOOK = `python3 -c 'import pandas; print("pandas")' 2>&1 | tail -n 1`;
const PLAIN = "ModuleNotFoundError: No module named 'pandas'\n";

/** A service whose environment becomes ready when `before` has ended: it waits for the lock of whoever is making it. */
async function whenReady(sandbox: 'on' | 'off', before: (service: Service) => Promise<void>) {
  const home = createHome();
  const made = dirname(dirname(inject('managedPython')));
  const cache = join(home.root, 'cache');
  const environments = join(cache, 'cuvette', 'python');
  mkdirSync(environments, { recursive: true, mode: 0o700 });
  const service = await withLock(join(environments, `${basename(made)}.lock`), undefined, async () => {
    const started = await startService({
      home,
      args: ['--sandbox', sandbox],
      env: { XDG_CACHE_HOME: cache },
    });
    await before(started);
    execFileSync('cp', ['-a', made, environments]);
    return started;
  });
  await waitFor('the line that says so', () => /^Environment: ready$/m.test(service.stdout()));
  return {
    service,
    async end() {
      await service.stop();
      await endHome(home);
    },
  };
}

describe.each(['on', 'off'] as const)('with the sandbox %s', (sandbox) => {
  test('every call of bash finds the packages of the environment once it is said to be ready', async () => {
    const entity_id = 'before-and-after';
    const { service, end } = await whenReady(sandbox, async (early) => {
      expect((await early.bash(LOOK)).stdout).toBe(PLAIN);
      expect((await early.bash(`${LOOK}; kept=1`, { entity_id })).stdout).toBe(PLAIN);
    });
    try {
      // More than are made ahead.
      for (let call = 0; call < 6; call += 1) expect((await service.bash(LOOK)).stdout).toBe('pandas\n');
      const { stdout, stderr, run } = await service.bash(LOOK, { entity_id });
      expect({ stdout, stderr, code: run.code }).toEqual({ stdout: 'pandas\n', stderr: '', code: 0 });
    } finally {
      await end();
    }
  });

  test('a session of Python that has begun before keeps its variables, and imports them', async () => {
    const entity_id = 'python';
    const { service, end } = await whenReady(sandbox, async (early) => {
      expect((await early.python('x = 41; print("plain")', { entity_id })).stdout).toBe('plain\n');
    });
    try {
      const { stdout, stderr } = await service.python('import pandas; print(x + 1)', { entity_id });
      expect([stdout, stderr]).toEqual(['42\n', '']);
    } finally {
      await end();
    }
  });
});
