/** Checks what calls find once the managed environment is ready, whatever was started before. */

import { mkdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { withLock } from '../../../src/file-lock.ts';
import { linkTree } from '../../link-tree.ts';
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
    linkTree(made, join(environments, basename(made)));
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

describe.each(['on', 'off'] as const)('with the sandbox %s,', (sandbox) => {
  const [program, python] = [{ entity_id: 'before-and-after' }, { entity_id: 'python' }];
  let ready: Awaited<ReturnType<typeof whenReady>>;
  beforeAll(async () => {
    ready = await whenReady(sandbox, async (early) => {
      expect((await early.bash(LOOK)).stdout).toBe(PLAIN);
      expect((await early.bash(`${LOOK}; kept=1`, program)).stdout).toBe(PLAIN);
      expect((await early.python('x = 41; print("plain")', python)).stdout).toBe('plain\n');
    });
  });
  afterAll(() => ready.end());

  test('every bash call finds the packages of the environment once it is reported ready', async () => {
    const { service } = ready;
    // More than are made ahead.
    for (let call = 0; call < 6; call += 1) expect((await service.bash(LOOK)).stdout).toBe('pandas\n');
    const { stdout, stderr, run } = await service.bash(LOOK, program);
    expect({ stdout, stderr, code: run.code }).toEqual({ stdout: 'pandas\n', stderr: '', code: 0 });
  });

  test('a Python session that began before keeps its variables and imports the packages', async () => {
    const { stdout, stderr } = await ready.service.python('import pandas; print(x + 1)', python);
    expect([stdout, stderr]).toEqual(['42\n', '']);
  });
});
