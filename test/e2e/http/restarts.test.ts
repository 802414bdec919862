/** Checks what outlives the service (sessions with their variables, and files), and what does not when it is told to end. */

import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allGone, nameOf, processesOf, useHome, waitFor } from '../harness.ts';
import { startService, unusedMark } from './service.ts';

const home = useHome({ preload: 'none' });
/** The processes that run the Python of a session. */
const workersOf = (session: string) =>
  processesOf(session).flatMap(({ pid }) => (nameOf(pid) === 'cuvette-python' ? [pid] : []));

test.each(['SIGTERM', 'SIGKILL'] as const)(
  'after %s, the next service has the sessions and the files',
  async (signal) => {
    const entity_id = signal.toLowerCase();
    const hint = `v2:conversation:${entity_id}`;
    const before = await startService({ home });
    const uploaded = await before.upload('up.txt', 'uploaded', { entity_id });
    const python = await before.python('x = [1]; open("f.txt", "w").write("f"); None', { entity_id });
    const shell = await before.bash('y=2; cd /tmp; f() { echo "f $y"; }; echo s > /mnt/data/s.txt', {
      runtime_session_hint: hint,
    });
    const workers = workersOf(python.session_id);
    expect(workers).toHaveLength(1);
    const ended = await before.stop(signal);
    expect(ended.code).toBe(signal === 'SIGTERM' ? 0 : null);
    expect(ended.stderr).toBe('');
    expect(workersOf(python.session_id), 'the interpreter waits').toEqual(workers);

    const after = await startService({ home });
    const again = await after.python('print(x, open("f.txt").read(), open("up.txt").read())', { entity_id });
    expect([again.session_id, again.stdout, again.stderr]).toEqual([python.session_id, '[1] f uploaded\n', '']);
    expect(workersOf(python.session_id)).toEqual(workers);
    const byId = await after.python('x.append(2); print(x)', { session_id: python.session_id });
    expect(byId.stdout).toBe('[1, 2]\n');
    const back = await after.bash('f; pwd; cat /mnt/data/s.txt', { runtime_session_hint: hint });
    expect([back.stdout, back.session_id]).toEqual(['f 2\n/tmp\ns\n', shell.session_id]);
    expect(back.runtime_status).toBe('reused');

    const files = [
      ...python.files,
      ...shell.files,
      { id: uploaded.files[0]?.id ?? '', session_id: uploaded.session_id },
    ];
    const contents = await Promise.all(files.map(async (file) => (await after.download(file)).toString()));
    expect(contents).toEqual(['f', 's\n', 'uploaded']);
    const last = await after.stop('SIGINT');
    expect([last.code, last.stderr]).toEqual([0, '']);
    for (const { session_id } of [python, shell]) await allGone(session_id);
  },
);

test('after SIGINT, variables are gone and files are there', async () => {
  const before = await startService({ home });
  const first = await before.python('x = 1; open("f.txt", "w").write("f"); None', { entity_id: 'interrupted' });
  expect(workersOf(first.session_id)).toHaveLength(1);
  expect((await before.stop('SIGINT')).code).toBe(0);
  await allGone(first.session_id);

  const after = await startService({ home });
  const again = await after.python('print("x" in dir(), open("f.txt").read())', { entity_id: 'interrupted' });
  expect([again.session_id, again.stdout]).toEqual([first.session_id, 'False f\n']);
  const [file] = first.files;
  expect(file && (await after.download(file)).toString()).toBe('f');
  await after.stop();
});

test('code that runs when the service is killed goes on, and the next call comes after it', async () => {
  const before = await startService({ home });
  const stream = await before.stream({
    lang: 'py',
    entity_id: 'goes-on',
    code: 'import time\nprint("begun", flush=True)\ntime.sleep(1.5)\nlate = "set"\nopen("late.txt", "w").write("late")',
  });
  await stream.event('stream');
  await before.stop('SIGKILL');
  const after = await startService({ home });
  const next = await after.python('print(late, open("late.txt").read())', { entity_id: 'goes-on' });
  expect([next.stdout, next.stderr]).toEqual(['set late\n', '']);
  await after.stop();
});

test.each([
  ['js', 'console.log("begun"); setTimeout(() => console.log("ended"), 1500)'],
  ['bash', 'echo begun; sleep 1.5; echo ended'],
])('a program in %s that runs when the service is killed leaves nothing of the service behind', async (lang, code) => {
  const entity_id = `killed-${lang}`;
  const before = await startService({ home });
  const stream = await before.stream({ lang, code, entity_id, stateful: true });
  await stream.event('stream');
  await before.stop('SIGKILL');
  const after = await startService({ home });
  const next = await after.exec({ lang, code: lang === 'js' ? 'console.log("next")' : 'echo next', entity_id });
  expect([next.stdout, next.stderr]).toEqual(['next\n', '']);
  expect((await after.bash('ls -A', { entity_id })).stdout).toBe('');
  const folder = join(home.data, 'sessions', next.session_id, 'programs');
  await waitFor('the folders of its programs are gone', () => readdirSync(folder).length === 0);
  await after.stop();
});

test('a call that runs when the service is told to end is still answered', async () => {
  const service = await startService({ home });
  await service.python('1', { entity_id: 'last' });
  const [python, bash] = [unusedMark(home), unusedMark(home)];
  const calls = [
    service.python(`import time; open("${python.path}", "w").close(); time.sleep(1); print("answered")`, {
      entity_id: 'last',
    }),
    service.bash(`touch ${bash.path}; sleep 1; echo answered`),
  ];
  await waitFor('both run', () => python.isThere() && bash.isThere());
  const ended = service.stop('SIGTERM');
  for (const { stdout, stderr } of await Promise.all(calls)) expect([stdout, stderr]).toEqual(['answered\n', '']);
  expect((await ended).code).toBe(0);
});

test('a call that runs for too long to wait for does not hold up the end of the service', async () => {
  const service = await startService({ home });
  const call = service.bash('sleep 600').then(
    () => 'answered',
    () => 'cut off',
  );
  await waitFor('it runs', () => processesOf(home.root, 'sleep 600').length > 0);
  expect((await service.stop('SIGINT')).code).toBe(0);
  await call;
});

test('two services of one home both work, and neither takes the other’s session', async () => {
  const [one, two] = [await startService({ home }), await startService({ home })];
  const first = await one.python('z = 1', { entity_id: 'shared' });
  const second = await two.python('print("z" in dir())', { entity_id: 'shared' });
  expect(second.stderr).toBe('');
  const again = await one.python('print(z)', { entity_id: 'shared' });
  expect([again.stdout, again.session_id]).toEqual(['1\n', first.session_id]);
  await Promise.all([one.stop(), two.stop()]);
});
