/** The limits and the metrics of a service hold for its executions together, whether they come over REST, over MCP or from a shell. */

import { describe, expect, test } from 'vitest';
import { runCli, waitFor } from '../harness.ts';
import { connectMcp } from './mcp-client.ts';
import { anotherService, type Service, useService } from './service.ts';

const service = await useService({ preload: 'none' });
const SLOW = 'import time\nprint("begun", flush=True)\ntime.sleep(120)';

const limited = (...args: string[]) => anotherService({ home: service.home, args });

/** Executions that `/metrics` has counted, by language and outcome. */
async function counted(at: Service): Promise<Record<string, number>> {
  const { text } = await at.get('/metrics');
  const found = text.matchAll(/^cuvette_executions_total\{language="(\w+)",outcome="(\w+)"\} (\d+)$/gm);
  return Object.fromEntries(
    [...found].map(([, language, outcome, count]) => [`${language} ${outcome}`, Number(count)]),
  );
}

describe('--rate-limit', () => {
  test('refuses an execution over MCP with how long to wait, and counts REST and MCP together', async () => {
    const at = await limited('--rate-limit', '3');
    const { execute, call } = await connectMcp(at);
    expect((await execute('1')).isError).toBe(false);
    expect((await execute('2', { background: true })).isError).toBe(false);
    expect((await at.python('3')).run.code).toBe(0);
    const refused = await execute('4');
    expect(refused.isError).toBe(true);
    expect(refused.text).toMatch(/^At most 3 executions may start in a minute\. Try again in \d+ s\.$/);
    expect((await at.post('/exec', { lang: 'py', code: '5' })).status).toBe(429);
    expect((await call('list_vars')).isError, 'what runs no code is not an execution').toBe(false);
  });
});

describe('--max-running', () => {
  test('refuses a second execution over MCP while one runs on either surface', async () => {
    const at = await limited('--max-running', '1');
    const { execute, call } = await connectMcp(at);
    expect((await execute(SLOW, { background: true })).isError).toBe(false);
    expect(await execute('1', { session: 'new' })).toMatchObject({ isError: true });
    expect((await at.post('/exec', { lang: 'py', code: '1' })).status).toBe(429);
    await call('interrupt');
    await waitFor('the next one is admitted', async () => !(await execute('1')).isError || undefined);
  });
});

describe('--max-sessions', () => {
  test('evicts the least recently used session when MCP opens more sessions', async () => {
    const at = await limited('--max-sessions', '2');
    const { execute, call } = await connectMcp(at);
    const ids = [];
    for (let i = 0; i < 4; i++) {
      const { session } = await sessionOf(call, 'new');
      ids.push(session);
      await execute(`mark = ${i}`, { session });
    }
    expect((await at.get('/health')).json()).toMatchObject({ active_sessions: 2 });
    expect((await execute('mark', { session: ids[3] })).text).toBe('3');
    const evicted = await execute('"mark" in dir()', { session: ids[0] });
    expect(evicted.text).toContain('False');
    expect((await at.get('/health')).json()).toMatchObject({ active_sessions: 2 });
  });

  test('refuses another session while all are at work and does not end them', async () => {
    const at = await limited('--max-sessions', '2');
    const { execute, call } = await connectMcp(at);
    for (const session of ['new', undefined]) await execute(SLOW, { session, background: true });
    const refused = await call('get_session_info', { session: 'new' });
    expect(refused).toMatchObject({ isError: true });
    expect(refused.text).toMatch(/^All 2 sessions of this server are at work/);
    expect(await execute('1', { session: 'new' })).toMatchObject({ isError: true });
    expect((await at.post('/exec', { lang: 'py', code: '1' })).status).toBe(429);
  });

  test('holds while many sessions are asked for at once', async () => {
    const at = await limited('--max-sessions', '3');
    const { call } = await connectMcp(at);
    const most = { seen: 0 };
    const watch = setInterval(async () => {
      const reply = await at.get('/health').catch(() => undefined);
      most.seen = Math.max(most.seen, Number(reply?.json().active_sessions ?? 0));
    }, 20);
    await Promise.all(Array.from({ length: 30 }, () => call('get_session_info', { session: 'new' })));
    clearInterval(watch);
    expect(most.seen).toBeLessThanOrEqual(3);
    expect((await at.get('/health')).json()).toMatchObject({ active_sessions: 3 });
  });
});

describe('/metrics', () => {
  test('counts the executions of every surface', async () => {
    const cwd = service.home.project();
    const at = await anotherService({ home: service.home, cwd });
    const { execute } = await connectMcp(at);
    await at.python('1');
    await execute('2');
    await execute('echo 3', { interpreter: 'bash' });
    await execute('1/0');
    await (await at.stream({ lang: 'py', code: '4' })).event('done');
    const shell = await runCli(['run', '-c', 'print(5)'], { home: service.home, cwd });
    expect(shell.code).toBe(0);
    await waitFor('all are counted', async () => (await counted(at))['builtin ok'] === 4 || undefined);
    expect(await counted(at)).toEqual({ 'builtin ok': 4, 'bash ok': 1, 'builtin error': 1 });
  });
});

describe('files', () => {
  test('that a call over MCP writes are credited to that call, not to the next one over REST', async () => {
    const at = await limited();
    const { execute, call } = await connectMcp(at);
    const { session } = await sessionOf(call);
    await execute('open("by-mcp.txt", "w").write("x")');
    const answer = await at.python('open("by-rest.txt", "w").write("y")', { session_id: session });
    expect(answer.files.map(({ name }) => name)).toEqual(['by-rest.txt']);
    const listed = (await at.get(`/files/${session}?detail=full`)).text;
    for (const name of ['by-mcp.txt', 'by-rest.txt']) expect(listed, 'each is kept').toContain(name);
  });
});

async function sessionOf(
  call: Awaited<ReturnType<typeof connectMcp>>['call'],
  session?: string,
): Promise<{ session: string }> {
  const { text } = await call('get_session_info', session === undefined ? {} : { session });
  return { session: /^session: (\S+)$/m.exec(text)?.[1] ?? '' };
}
