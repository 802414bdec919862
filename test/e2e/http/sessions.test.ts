/** Checks which calls share a session, what a session keeps, and how many sessions live at once. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { waitFor } from '../harness.ts';
import { anotherService, type ExecAnswer, ID, ok, type Problem, useService } from './service.ts';

const service = await useService();

describe('calls', () => {
  test('with the same entity_id share variables and a workspace', async () => {
    const first = await service.python('x = 1; open("f", "w").write("f"); None', { entity_id: 'a' });
    const second = await service.python('x += 1; print(x, open("/mnt/data/f").read())', { entity_id: 'a' });
    expect([second.stdout, second.session_id]).toEqual(['2 f\n', first.session_id]);
    const other = await service.python('import os; print("x" in dir(), os.listdir())', { entity_id: 'b' });
    expect(other.stdout).toBe('False []\n');
    expect(other.session_id).not.toBe(first.session_id);
  });

  test('without a name each have a session of their own', async () => {
    const answers = await Promise.all([1, 2].map((n) => service.python(`print("x" in dir()); x = ${n}`)));
    expect(answers.map(({ stdout }) => stdout)).toEqual(['False\n', 'False\n']);
    expect(new Set(answers.map(({ session_id }) => session_id)).size).toBe(2);
  });

  test('in all languages of a session work on the same files', async () => {
    await service.bash('echo from bash > b', { entity_id: 'mixed' });
    const { stdout } = await service.python('print(open("b").read()); open("p", "w").write("from Python")', {
      entity_id: 'mixed',
    });
    expect(stdout).toContain('from bash\n');
    expect((await service.bash('cat p b', { entity_id: 'mixed' })).stdout).toBe('from Pythonfrom bash\n');
  });
});

describe('a call that names a session by id', () => {
  test('continues the session of an earlier answer', async () => {
    const { session_id } = await service.python('x = 1');
    expect((await service.python('print(x)', { session_id })).stdout).toBe('1\n');
  });

  test('continues the session of a shell with its files and without its variables', async () => {
    const { session_id } = await service.bash('x=1; echo kept > f');
    for (const round of [1, 2]) {
      const next = await service.bash(`echo "[$x]"; cat f; x=${round}`, { session_id });
      expect([next.stdout, next.stderr, next.session_id]).toEqual(['[]\nkept\n', '', session_id]);
    }
  });

  test('finds what was uploaded to that session', async () => {
    const { session_id } = await service.upload('sub/up.txt', 'up');
    const answer = await service.python('print(open("sub/up.txt").read())', { session_id });
    expect([answer.stdout, answer.session_id]).toEqual(['up\n', session_id]);
  });

  test('finds what was uploaded while the session lived, in place of what had its name', async () => {
    const entity_id = 'uploads';
    await service.upload('f', 'one', { entity_id });
    expect((await service.python('print(open("f").read())', { entity_id })).stdout).toBe('one\n');
    await service.upload('f', 'two', { entity_id });
    await service.upload('g', 'three', { entity_id });
    expect((await service.python('print(open("f").read(), open("g").read())', { entity_id })).stdout).toBe(
      'two three\n',
    );
    await service.python('open("f", "w").write("by code")', { entity_id });
    expect((await service.python('print(open("f").read())', { entity_id })).stdout).toBe('by code\n');
  });

  test.each(['short', '../../etc', 'x'.repeat(200), 'ünï'])(
    'gets a fresh session for %s, which is no id',
    async (session_id) => {
      const answer = await service.bash('echo fine', { session_id });
      expect(answer.stdout).toBe('fine\n');
      expect(answer.session_id).toMatch(ID);
      expect(answer.session_id).not.toBe(session_id);
    },
  );
});

describe('a session that keeps its shell', () => {
  const runtime_session_hint = 'v2:conversation:0123456789abcdef0123456789abcdef';
  const shell = (code: string) => service.bash(code, { runtime_session_hint });

  test('has its variables, functions, options and folder in the next call', async () => {
    const first = await shell(
      'x=1; a=(1 "2 3"); greet() { echo "hi $1 $x"; }; mkdir -p sub && cd sub; shopt -s nullglob',
    );
    expect(first.runtime_status).toBe('new');
    const second = await shell(`greet you; echo "\${a[1]}"; pwd; echo none*`);
    expect(second.stdout).toBe('hi you 1\n2 3\n/mnt/data/sub\n\n');
    expect(second).toMatchObject({ runtime_status: 'reused', session_id: first.session_id });
    expect(second.runtime_session_id).toBe(first.runtime_session_id);
  });

  test('does not have that state among its files', async () => {
    const answer = await shell('ls -A /mnt/data; ls -A /mnt/data/sub');
    expect([answer.stdout, answer.files]).toEqual(['sub\n', []]);
  });

  test('keeps that state when a call does not parse, is stopped or fails', async () => {
    await shell('kept=yes');
    expect((await shell('kept=no; if')).stderr).toMatch(/syntax error/);
    expect((await shell('echo "$kept"')).stdout).toBe('yes\n');
    expect((await service.bash('sleep 30', { runtime_session_hint, timeout: 200 })).run.status).toBe('TO');
    expect((await shell('exit 7')).run.code).toBe(7);
    expect((await shell('echo "$kept"; greet again')).stdout).toBe('yes\nhi again 1\n');
  });

  test('answers a warming call', async () => {
    const answer = await service.bash('true', { runtime_session_hint: 'v2:conversation:warm' });
    expect(answer).toMatchObject({ stdout: '', stderr: '', runtime_status: 'new' });
  });

  test('may be chosen by name, call by call', async () => {
    await service.bash('x=1', { entity_id: 'stateful', stateful: true });
    expect((await service.bash('echo $x', { entity_id: 'stateful', stateful: true })).stdout).toBe('1\n');
    expect((await service.bash('echo "[$x]"', { entity_id: 'stateful' })).stdout).toBe('[]\n');
  });
});

describe('when the limit of live sessions is reached,', () => {
  test('the least recently used one is evicted, and its files are still there', async () => {
    const few = await anotherService({ home: service.home, env: { MAX_SESSIONS: '2' } });
    const open = (entity_id: string) =>
      few.python(`x = "${entity_id}"; open("f", "w").write(x); None`, { entity_id: `few-${entity_id}` });
    const [, b] = [await open('a'), await open('b')];
    const look = (entity_id: string) =>
      few.python('print(globals().get("x"), open("f").read())', { entity_id: `few-${entity_id}` });
    expect((await look('a')).stdout).toBe('a a\n');
    await open('c');
    expect((await few.get('/health')).json()).toMatchObject({ active_sessions: 2, max_sessions: 2 });
    expect((await look('a')).stdout, 'used after b').toBe('a a\n');
    const [file] = b.files;
    expect(file && (await few.download(file)).toString()).toBe('b');
    const back = await look('b');
    expect([back.stdout, back.session_id]).toEqual(['None b\n', b.session_id]);
    expect((await few.get('/health')).json()).toMatchObject({ active_sessions: 2 });
  });

  test('one that is at work is not evicted, and the caller is told to come again', async () => {
    const one = await anotherService({ home: service.home, args: ['--max-sessions', '1'] });
    const stream = await one.stream({ lang: 'py', code: 'import time; print("x", flush=True); time.sleep(30)' });
    await stream.event('stream');
    const reply = await one.post('/exec', { lang: 'py', code: '1' });
    expect(reply.status).toBe(429);
    expect(reply.json<Problem>()).toMatchObject({ error: 'rate_limited', retry_after_seconds: expect.any(Number) });
    expect(stream.events.some(({ type }) => type === 'done')).toBe(false);
    stream.close();
  });

  test('calls that come at once do not open more', async () => {
    const few = await anotherService({ home: service.home, args: ['--max-sessions', '2'] });
    let most = 0;
    const calls = Promise.all(
      [1, 2, 3, 4, 5, 6].map((n) => few.post('/exec', { lang: 'py', code: 'print(1)', entity_id: `at-once-${n}` })),
    );
    let isDone = false;
    const done = calls.finally(() => {
      isDone = true;
    });
    while (!isDone)
      most = Math.max(most, ok(await few.get('/health')).json<{ active_sessions: number }>().active_sessions);
    for (const { status } of await done) expect([200, 429]).toContain(status);
    expect(most).toBeLessThanOrEqual(2);
  });
});

describe('when the limit of running calls is reached,', () => {
  test('those whose callers disconnected do not count', async () => {
    const single = await anotherService({ home: service.home, args: ['--max-running', '1'] });
    const sleeps = 'import time; print("x", flush=True); time.sleep(30)';
    const stream = await single.stream({ lang: 'py', code: sleeps });
    await stream.event('stream');
    const second = await single.post('/exec', { lang: 'bash', code: 'true' });
    expect([second.status, second.json<Problem>().error]).toEqual([429, 'rate_limited']);
    stream.close();
    await waitFor(
      'there is room',
      async () => (await single.post('/exec', { lang: 'bash', code: 'true' })).status === 200,
    );

    const abort = new AbortController();
    const call = single.exec({ lang: 'bash', code: 'sleep 30' }, { signal: abort.signal });
    setTimeout(() => abort.abort(), 200);
    await expect(call).rejects.toThrow();
    await waitFor(
      'there is room',
      async () => (await single.post('/exec', { lang: 'bash', code: 'true' })).status === 200,
    );
    for (const body of [{ lang: 'cobol', code: '1' }, { lang: 'py' }]) await single.post('/exec', body);
    expect((await single.bash('echo room')).stdout).toBe('room\n');
  });
});

describe('deleting a session', () => {
  test('while code runs and more waits ends what runs, runs nothing of what waits there, and leaves nothing behind', async () => {
    const entity_id = 'deleted';
    const { session_id } = await service.python('1', { entity_id });
    const running = service.python('import time; time.sleep(20)', { entity_id });
    await sleep(200);
    const waiting = service.post('/exec', { lang: 'py', code: 'import os; print(os.getcwd())', entity_id });
    await sleep(200);
    ok(await service.send('DELETE', `/sessions/${session_id}`));
    const { stderr, run } = await running;
    expect(run.code).not.toBe(0);
    expect(stderr).not.toContain('killed from outside');
    const reply = await waiting;
    if (reply.status === 200) expect(reply.json<ExecAnswer>().stdout).toMatch(/^(\/mnt\/data\n)?$/);
    else expect(reply.status).toBe(404);
    expect((await service.python('import os; print(os.getcwd(), os.listdir())', { entity_id })).stdout).toBe(
      '/mnt/data []\n',
    );
  });
});
