/** Code at a remote Cuvette, run from a session of this server: it passes the limits, the queue and the history that all executions pass. */

import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { createLabInterpreters } from '../../../src/lab/labs/lab-interpreters.ts';
import { createLabs } from '../../../src/lab/labs/labs.ts';
import { type AdmissionOptions, createAdmission } from '../../../src/sessions/admission.ts';
import type { ExecutionRecord } from '../../../src/sessions/execution-record.ts';
import { createSessions } from '../../../src/sessions/sessions.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { createFakeLabWithPython } from '../fake-lab.ts';
import { serveLab, TOKEN } from '../served.ts';

const ENDING = { status: 'ok', wall: 1, cpu: 0.5, peak: 7, ended: [] };

/** Sessions of a server that has a remote lab attached, whose Python is the test itself. */
async function open(limits: Partial<AdmissionOptions> = {}) {
  const fake = createFakeLabWithPython();
  const { url } = await serveLab(fake.lab);
  const folder = temporaryFolder();
  const data = join(folder, 'data');
  const labs = createLabs({ data, cache: join(folder, 'cache'), project: folder });
  await labs.attach('default', url, TOKEN, { signal: new AbortController().signal, progress: () => {} });
  const counted: ExecutionRecord[] = [];
  const admission = createAdmission({
    rateLimit: 0,
    maxRunning: 0,
    onEnded: (record) => counted.push(record),
    ...limits,
  });
  const sessions = createSessions({
    config: readConfig({}, {}),
    paths: { data, cache: join(folder, 'cache'), runtime: join(folder, 'run') },
    project: folder,
    admission,
    labInterpreters: createLabInterpreters(labs),
  });
  onTestFinished(async () => {
    await sessions.close();
    await labs.close();
  });
  const start = (code: string) => sessions.start({ code, interpreter: 'colab' });
  return { ...fake, start, counted };
}

test('code at a remote Cuvette counts against the limit of executions at once', async () => {
  const { start, started, calls } = await open({ maxRunning: 1 });
  const first = await start('a');
  const there = await started(0);
  await expect(start('b')).rejects.toMatchObject({ code: 'rate_limited' });
  there.answer({ ending: ENDING, life: 1 });
  await first.finished;
  await expect.poll(() => start('c').then(Boolean, () => false)).toBe(true);
  expect((await started(1)).args).toMatchObject({ code: 'c' });
  expect(calls).toHaveLength(2);
});

test('code at a remote Cuvette counts against the limit of executions in a minute', async () => {
  const { start, started } = await open({ rateLimit: 1 });
  const { finished } = await start('a');
  (await started(0)).answer({ ending: ENDING, life: 1 });
  await finished;
  await expect(start('b')).rejects.toMatchObject({ code: 'rate_limited' });
});

test("code at a remote Cuvette waits for its turn in its session's queue", async () => {
  const { start, started, calls } = await open();
  const first = await start('a');
  const second = await start('b');
  const there = await started(0);
  expect(second.execution.record.state).toBe('queued');
  there.answer({ ending: ENDING, life: 1 });
  await first.finished;
  const next = await started(1);
  expect(next.args).toMatchObject({ code: 'b' });
  next.answer({ ending: ENDING, life: 1 });
  await second.finished;
  expect(calls).toHaveLength(2);
});

test('code at a remote Cuvette is counted in the metrics and kept in the history of its session', async () => {
  const { start, started, counted } = await open();
  const { session, execution, finished } = await start('print(1)');
  const there = await started(0);
  there.context.output?.({ type: 'stream', name: 'stdout', text: '1\n' });
  there.answer({
    ending: { ...ENDING, status: 'death', death: { exit: null, signal: 'SIGSEGV', oom: false } },
    life: 1,
  });
  await finished;
  await expect.poll(() => counted).toHaveLength(1);
  expect(counted[0]).toMatchObject({ interpreter: 'colab', outcome: 'died', wall: 1 });
  expect(session.history()).toMatchObject([
    {
      number: execution.record.number,
      interpreter: 'colab',
      code: 'print(1)',
      text: '1\n',
      reason: { code: 'signal' },
      signal: 'SIGSEGV',
      peak: 7,
    },
  ]);
});
