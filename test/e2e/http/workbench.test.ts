/** The workbench's API of a real service: a reader of events sees what agents and programs run, whatever becomes of it or of the server. */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { describe, expect, test } from 'vitest';
import { kill, waitFor } from '../harness.ts';
import { isDone, textTold, told } from '../watching.ts';
import { connectMcp } from './mcp-client.ts';
import { anotherService, ok, startService, useService } from './service.ts';

const service = await useService({ args: ['--max-sessions', '3'] });
const DEFAULT = '/sessions/default/events';
const BROWSER = { 'sec-fetch-site': 'same-origin', 'sec-fetch-mode': 'cors' };
const NAVIGATION = { accept: 'text/html', 'sec-fetch-site': 'none', 'sec-fetch-dest': 'document' };

const tokenOf = (said: string) => /^Workbench: http:\/\/127\.0\.0\.1:\d+\/\?token=([\w-]+)$/m.exec(said)?.[1] ?? '';

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return String(port);
}

/** The cookie of a browser that was given the address of the banner. */
async function openPage(of: typeof service): Promise<string> {
  const token = await waitFor('the banner', () => tokenOf(of.stdout()));
  const answer = await of.get(`/?token=${token}`, NAVIGATION);
  expect([answer.status, answer.headers.location]).toEqual([303, '/']);
  return answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
}

describe('who watches a session', () => {
  test('sees what an agent runs over MCP and a program over REST, as it happens, like every other reader', async () => {
    const agent = await connectMcp(service);
    await agent.execute('x = 1');
    const readers = [await service.watch(DEFAULT), await service.watch(DEFAULT)];
    for (const reader of readers) await told(reader, ({ type }) => type === 'snapshot');
    const figure = `import time
for i in range(3): print('line', i, flush=True); time.sleep(0.2)
from IPython.display import display, HTML
display(HTML('<b>' + 'h' * 20000 + '</b>'))
1 / 0`;
    const answer = await agent.execute(figure);
    expect(answer.isError).toBe(true);
    for (const reader of readers) {
      const done = await told(reader, isDone(2));
      expect(done.execution).toMatchObject({ origin: 'agent', outcome: 'error', reason: { code: 'exception' } });
      const outputs = reader.events.filter(({ type }) => type === 'output').length;
      expect(outputs, 'as it happens').toBeGreaterThan(3);
    }
    const [one, two] = readers.map(({ events }) => events.map(({ at, ...event }) => event));
    expect(one).toEqual(two);
    const { executions } = ok(await service.get('/sessions/default/executions')).json<{
      executions: { outputs: { index: number; large?: object }[] }[];
    }>();
    const shown = executions.at(-1)?.outputs.find(({ large }) => large && 'text/html' in large);
    const part = ok(await service.get(`/v1/sessions/default/executions/2/outputs/${shown?.index}/text%2Fhtml`));
    expect(part.text).toHaveLength(20_007);

    const started = await service.post('/sessions/default/executions', { code: 'print(x)' });
    expect([started.status, started.json()]).toEqual([202, { execution: 3 }]);
    for (const reader of readers) {
      expect((await told(reader, isDone(3))).execution.origin).toBe('rest');
      expect(textTold(reader, 3)).toBe('1\n');
      reader.close();
    }
  });

  test('is told that it was evicted, and sees it go on', async () => {
    const { session_id: id } = await service.python('y = 5');
    const reader = await service.watch(`/sessions/${id}/events`);
    await told(reader, ({ type }) => type === 'snapshot');
    for (let count = 0; count < 3; count += 1) await service.post('/sessions', {});
    expect(await told(reader, ({ type }) => type === 'closed')).toMatchObject({ reason: 'evicted' });
    await service.python('print("again")', { session_id: id });
    await told(reader, isDone(2));
    expect(textTold(reader, 2)).toBe('again\n');
    reader.close();
  });

  test('never holds code up by reading slowly, and finds what it missed on the disk', async () => {
    const { id } = (await service.post('/sessions', {})).json<{ id: string }>();
    const path = `/sessions/${id}`;
    const slow = await service.watch(`${path}/events`);
    await told(slow, ({ type }) => type === 'snapshot');
    slow.pause();
    const code = `for i in range(300):
    print(('%06d ' % i) + 'x' * 99992)`;
    await service.post(`${path}/executions`, { code });
    await waitFor('the code ends', async () => (await service.get(`${path}/executions/1`)).json().state === 'done');
    slow.resume();
    const done = await told(slow, (event) => isDone(1)(event) || event.executions?.[0]?.state === 'done');
    expect((done.execution ?? done.executions[0]).text_length).toBe(30_000_000);
    const read = async (query: string) => (await service.get(`${path}/executions/1/output?${query}`)).json();
    expect(await read('offset=29900000&limit=7')).toMatchObject({ text: '000299 ', length: 30_000_000 });
    expect(await read('search=000150')).toMatchObject({ matches: [{ offset: 15_000_000 }] });
    slow.close();
  });
});

test('a reader goes on when the server is killed and started again: a snapshot, then the rest', async () => {
  const { home } = service;
  const port = await freePort();
  const first = await startService({ home, args: ['--port', port] });
  const cookie = await openPage(first);
  const page = { ...BROWSER, cookie, 'x-cuvette-origin': 'page' };
  const { id } = (await first.post('/sessions', {})).json<{ id: string }>();
  const code = `import time, os
for i in range(10000):
    print(i, flush=True); time.sleep(0.05)
    if os.path.exists('/mnt/data/stop'): break`;
  expect((await first.post(`/sessions/${id}/executions`, { code }, { headers: page })).status).toBe(202);
  const before = await first.watch(`/sessions/${id}/events`, page);
  await waitFor('some lines', () => (textTold(before, 1) ?? '').split('\n').length > 5);
  kill(first.pid);
  await before.ended;
  const seen = textTold(before, 1) ?? '';

  const next = await anotherService({ home, args: ['--port', port] });
  const last = before.events.at(-1)?.eventId ?? '';
  const after = await next.watch(`/sessions/${id}/events?after=${last}`, page);
  await waitFor('more lines', () => (textTold(after, 1) ?? '').length > seen.length + 20);
  const put = await next.send('PUT', `/sessions/${id}/workspace/file?path=stop`, { headers: page, body: 'x' });
  expect(put.status).toBe(201);
  const done = await told(after, isDone(1));
  expect(done.execution).toMatchObject({ outcome: 'ok', origin: 'page' });
  const lines = (textTold(after, 1) ?? '').trimEnd().split('\n');
  expect(lines).toEqual(lines.map((_, index) => String(index)));
  expect(tokenOf(next.stdout()), 'the same as before').toBe(tokenOf(first.stdout()));
  after.close();
  await first.stop('SIGKILL');
});

describe('a browser', () => {
  test('is let in by the address of the banner, and by nothing less', async () => {
    const cookie = await openPage(service);
    const page = await service.get('/', NAVIGATION);
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect((await service.get('/')).json()).toMatchObject({ name: 'Cuvette' });
    expect((await service.get('/sessions', { ...BROWSER, cookie })).status).toBe(200);
    expect((await service.get('/?token=wrong', NAVIGATION)).headers['set-cookie']).toBeUndefined();
    for (const headers of [
      BROWSER,
      { ...BROWSER, cookie: 'cuvette-1=x' },
      { 'sec-fetch-site': 'cross-site', cookie },
    ]) {
      expect((await service.get('/sessions', headers)).status).toBe(401);
      expect((await service.post('/exec', { lang: 'py', code: '1' }, { headers })).status).toBe(401);
    }
  });

  test('signs in with the key where there is one', async () => {
    const locked = await anotherService({ home: service.home, args: ['--api-key', 'a-key-of-the-house'] });
    await waitFor('the banner', () => locked.stdout().includes('Ctrl-C stops it.'));
    expect(locked.stdout()).toContain(`Workbench: ${locked.url}/ (sign in with the key)`);
    expect((await locked.get('/', NAVIGATION)).status).toBe(200);
    expect((await locked.get('/sessions', BROWSER)).status).toBe(401);
    const login = (credential: string) =>
      locked.send('POST', '/login', { headers: { ...BROWSER, authorization: `Bearer ${credential}` } });
    expect((await login('wrong')).status).toBe(401);
    const answer = await login('a-key-of-the-house');
    const cookie = answer.headers['set-cookie']?.[0]?.split(';')[0] ?? '';
    expect((await locked.get('/sessions', { ...BROWSER, cookie })).status).toBe(200);
  });
});
