import { existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, inject, it, onTestFinished } from 'vitest';
import { createZygotes, type Zygotes } from '../../../../src/interpreters/python/zygotes.ts';
import { createCodeRunner } from '../../../../src/lab/engines/torch/code-runner.ts';
import { createTorchInterpreter } from '../../../../src/lab/engines/torch/torch-interpreter.ts';

const OPTIONS = { timeout: null, limit: 1000, cell: 1, signal: new AbortController().signal, onOutput: () => {} };
const NEVER_BEGAN = { ending: { stopped: { why: 'cancelled' }, wall: 0 } };

/** Code without a model: nothing is loaded first. */
function openRunner(slowly = (zygotes: Zygotes): Zygotes => zygotes) {
  const project = realpathSync(mkdtempSync(join(tmpdir(), 'cv-')));
  const runtime = join(project, 'r');
  const zygotes = createZygotes(runtime);
  const python = inject('torchPython');
  const interpreter = createTorchInterpreter({ python, zygotes: slowly(zygotes), runtime, project, startup: '' });
  onTestFinished(async () => {
    await interpreter.close();
    await zygotes.dismiss(true);
    rmSync(project, { recursive: true, force: true });
  });
  return { runner: createCodeRunner(interpreter), project };
}

it('a run that is interrupted while Python starts never begins', async () => {
  const { runner, project } = openRunner((zygotes) => ({
    ...zygotes,
    spawn: async (...given) => {
      await sleep(300);
      return zygotes.spawn(...given);
    },
  }));
  const run = runner.run('open("begun", "w").close()', { ...OPTIONS, run: 'a' });
  await sleep(50);
  runner.interrupt('a');
  expect(await run).toMatchObject(NEVER_BEGAN);
  await runner.run('None', { ...OPTIONS, run: 'b' });
  expect(existsSync(join(project, 'begun'))).toBe(false);
});

it('a run that is interrupted in the queue ends at once, and the run before it goes on', async () => {
  const { runner, project } = openRunner();
  await runner.run('import time', { ...OPTIONS, run: 'a' });
  const ended: string[] = [];
  const note = (name: string) => () => ended.push(name);
  const before = runner.run('time.sleep(1.5)', { ...OPTIONS, run: 'b' });
  const waiting = runner.run('open("begun", "w").close()', { ...OPTIONS, run: 'c' });
  const behind = runner.run('None', { ...OPTIONS, run: 'd' });
  void before.then(note('before'));
  void waiting.then(note('waiting'));
  void behind.then(note('behind'));
  runner.interrupt('c');
  expect(await waiting).toMatchObject(NEVER_BEGAN);
  expect(await before).toMatchObject({ ending: { status: 'ok' } });
  await behind;
  expect(ended).toEqual(['waiting', 'before', 'behind']);
  expect(existsSync(join(project, 'begun'))).toBe(false);
});

it('two code runners have no life number in common', async () => {
  const lives = await Promise.all([1, 2].map(async () => (await openRunner().runner.describe()).life));
  expect(new Set(lives).size).toBe(2);
});

it('a reset increases the life number of a code runner', async () => {
  const { runner } = openRunner();
  const { life } = await runner.describe();
  await runner.reset();
  expect((await runner.describe()).life).toBe(life + 1);
});
