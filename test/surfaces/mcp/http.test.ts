/** MCP over HTTP: real clients of both eras on a real socket, with real Python behind it. */

import { realpathSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createAdaptorServer } from '@hono/node-server';
import { Client, type RequestOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Hono } from 'hono';
import { pino } from 'pino';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { CuvetteError } from '../../../src/errors.ts';
import type { ExecutionRecord } from '../../../src/sessions/execution-record.ts';
import { createSessions, type Sessions } from '../../../src/sessions/sessions.ts';
import type { Principal } from '../../../src/surfaces/caller.ts';
import { createMcpHttp, type McpHttp } from '../../../src/surfaces/mcp/http.ts';
import { TOOLS } from '../../../src/tools/registry.ts';
import { ROOT, type Structured, useHome, waitFor } from '../../e2e/harness.ts';

const ERAS = ['legacy', 'modern'] as const;
type Era = (typeof ERAS)[number];
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const FOREVER = 'import time\nprint("begun", flush=True)\nwhile True: time.sleep(0.05)';

const home = useHome({ preload: 'none' });
const log = pino({ level: 'silent' });
const people = new Map<string, Sessions>();

/** Everybody has sessions in a project of their own. */
function sessionsFor({ id }: Principal): Sessions {
  if (id === 'nobody') throw new CuvetteError('rate_limited', 'Too many sessions. Try again in a minute.');
  const known = people.get(id);
  if (known) return known;
  const cache = join(realpathSync(join(ROOT, 'node_modules')), '.cache', 'cuvette-test', 'cache', 'cuvette');
  const paths = { cache, data: home.data, runtime: home.runtime };
  const sessions = createSessions({ config: readConfig({}, {}), paths, project: home.project(id) });
  people.set(id, sessions);
  return sessions;
}

// -- the server and its clients ---------------------------------------------------------------------

interface Service {
  http: McpHttp;
  url: URL;
  close(): Promise<void>;
}

async function startService(): Promise<Service> {
  const http = createMcpHttp({ sessionsFor, log });
  const app = new Hono();
  app.all('/mcp', (c) => http.fetch(c.req.raw, { id: c.req.header('x-caller') ?? 'ada', kind: 'key' }));
  const server = createAdaptorServer({ fetch: app.fetch });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    http,
    url: new URL(`http://127.0.0.1:${port}/mcp`),
    async close() {
      await http.close();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

let service: Service;

beforeAll(async () => {
  service = await startService();
});

afterAll(async () => {
  await service.close();
  for (const sessions of people.values()) {
    await Promise.all(sessions.all().map((session) => session.stop()));
    await sessions.close();
  }
});

async function connect(era: Era, caller = 'ada', { url } = service) {
  const client = new Client(
    { name: 'test', version: '1' },
    era === 'modern' ? { versionNegotiation: { mode: { pin: '2026-07-28' } } } : {},
  );
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: { 'x-caller': caller } } }));
  onTestFinished(() => client.close());
  return {
    client,
    async call(name: string, args: Record<string, unknown> = {}, options: RequestOptions = {}) {
      const result = await client.callTool({ name, arguments: args, _meta: { 'cuvette/structured': true } }, options);
      const [first] = result.content;
      return {
        text: first?.type === 'text' ? first.text : '',
        content: result.content,
        structured: result.structuredContent as Structured,
        isError: result.isError ?? false,
      };
    },
  };
}

/** A message as it goes over the wire. */
function post(body: unknown, headers: Record<string, string> = {}, signal: AbortSignal | null = null) {
  return fetch(service.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal,
  });
}

/** The same call in the words of either era. */
function callMessage(era: Era, name: string, args: Record<string, unknown>) {
  if (era === 'legacy') {
    const headers = { 'mcp-protocol-version': '2025-11-25' };
    return [{ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: args } }, headers] as const;
  }
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  };
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name };
  return [{ jsonrpc: '2.0', id: 7, method: 'tools/call', params: { name, arguments: args, _meta } }, headers] as const;
}

/** The one that a caller's first call without a name has opened. */
const defaultOf = (caller: string) => people.get(caller)?.all()[0];

const lastOf = (caller: string): ExecutionRecord | undefined => defaultOf(caller)?.history().at(-1);

const begun = (caller = 'ada') =>
  waitFor('the code runs', () => {
    const running = defaultOf(caller)?.pending().at(-1);
    return running?.transcript.tail(100).includes('begun') ? running : undefined;
  });

// -- what both eras can do ----------------------------------------------------------------------------

describe.each(ERAS)('a client of the %s era', (era) => {
  test('speaks the revision that it wants, and learns what there is', async () => {
    const { client } = await connect(era);
    expect(client.getNegotiatedProtocolVersion()).toBe(era === 'modern' ? '2026-07-28' : '2025-11-25');
    expect(client.getServerVersion()).toMatchObject({ name: 'cuvette' });
    expect(client.getInstructions()).toMatch(/^Live sessions/);
    expect(client.getInstructions(), 'there is no shell beside it').not.toContain('shell');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(TOOLS.map(({ name }) => name));
    const execute = tools.find(({ name }) => name === 'execute');
    expect(execute?.inputSchema).toMatchObject({ properties: { code: { type: 'string' } }, required: ['code'] });
    expect(execute?.outputSchema, 'clients would show its fields in place of the text').toBeUndefined();
  });

  test('keeps its variables between calls, and between connections', async () => {
    const first = await connect(era);
    expect((await first.call('execute', { code: `x_${era} = 40` })).isError).toBe(false);
    expect((await first.call('execute', { code: `x_${era} + 2` })).text).toBe('42');
    const second = await connect(era);
    const answer = await second.call('execute', { code: `x_${era} + 3` });
    expect(answer.structured).toMatchObject({ outcome: 'ok', output: '43\n', session: defaultOf('ada')?.id });
  });

  test('has another session by naming it', async () => {
    const { call } = await connect(era);
    await call('execute', { code: 'place = "default"' });
    const { structured } = await call('execute', { code: 'place = "other"', session: 'new' });
    expect((await call('execute', { code: 'place', session: structured.session })).text).toBe("'other'");
    expect((await call('execute', { code: 'place' })).text).toBe("'default'");
    expect(await call('execute', { code: '1', session: 'no-such' })).toMatchObject({
      isError: true,
      structured: { error: { code: 'unknown_session' } },
    });
  });

  test('has sessions of its own, apart from those of other callers', async () => {
    const ada = await connect(era, 'ada');
    const bob = await connect(era, 'bob');
    await ada.call('execute', { code: 'secret = 1' });
    expect((await bob.call('execute', { code: '"secret" in globals()' })).text).toBe('False');
  });

  test('sees what the code prints while it runs', async () => {
    const { call } = await connect(era);
    const messages: (string | undefined)[] = [];
    const answer = await call(
      'execute',
      { code: 'import time\nprint("half way", flush=True)\ntime.sleep(1.5)\nprint("done")' },
      { onprogress: ({ message }) => void messages.push(message) },
    );
    expect(messages).toContain('half way');
    expect(answer.structured.output).toBe('half way\ndone\n');
  });

  test('interrupts the code by cancelling its call; variables survive', async () => {
    const { call } = await connect(era);
    await call('execute', { code: 'kept = 1' });
    const cancelling = new AbortController();
    const cancelled = expect(call('execute', { code: FOREVER }, { signal: cancelling.signal })).rejects.toThrow();
    const { done } = await begun();
    cancelling.abort();
    await cancelled;
    await done;
    expect(lastOf('ada')).toMatchObject({ outcome: 'cancelled', variablesSurvived: true });
    expect((await call('execute', { code: 'kept' })).text).toBe('1');
  });

  test('interrupts the code by going away', async () => {
    const { client, call } = await connect(era);
    const failed = expect(call('execute', { code: FOREVER })).rejects.toThrow();
    const { done } = await begun();
    await client.close();
    await failed;
    await done;
    expect(lastOf('ada')).toMatchObject({ outcome: 'cancelled', variablesSurvived: true });
  });

  test('interrupts the code by closing the stream of the answer, whether or not it asked for progress', async () => {
    for (const _meta of [{}, { progressToken: 1 }]) {
      const [message, headers] = callMessage(era, 'execute', { code: FOREVER });
      Object.assign(message.params, {
        _meta: { ...('_meta' in message.params ? message.params._meta : {}), ..._meta },
      });
      const closing = new AbortController();
      const response = await post(message, headers, closing.signal);
      expect(response.headers.get('content-type'), 'it is open before the code ends').toBe('text/event-stream');
      const { done } = await begun();
      closing.abort();
      await done;
      expect(lastOf('ada')).toMatchObject({ outcome: 'cancelled' });
    }
  });

  test('interrupts the code of another call with the tool for it', async () => {
    const { call } = await connect(era);
    const answer = call('execute', { code: FOREVER });
    await begun();
    expect((await call('interrupt')).structured.outcome).toBe('cancelled');
    expect((await answer).structured.outcome).toBe('cancelled');
  });

  test('is shown pictures', async () => {
    const { call } = await connect(era);
    const code = `import base64\nclass Picture:\n    def _repr_png_(self): return base64.b64decode("${PIXEL}")\nPicture()`;
    const { content } = await call('execute', { code });
    expect(content).toContainEqual({ type: 'image', mimeType: 'image/png', data: PIXEL });
  });

  test('reads the whole of a long output from the resource that the answer links to', async () => {
    const { client, call } = await connect(era);
    const { content } = await call('execute', { code: 'print("line of text\\n" * 10_000)' });
    const link = content.find((block) => block.type === 'resource_link');
    const { contents } = await client.readResource({ uri: link?.uri ?? '' });
    expect(contents[0]).toMatchObject({ mimeType: 'text/plain', text: `${'line of text\n'.repeat(10_000)}\n` });
    await expect(client.readResource({ uri: `${link?.uri}x` })).rejects.toMatchObject({ code: -32602 });
  });

  test('is told of a tool that does not exist, and of arguments that are wrong', async () => {
    const { call } = await connect(era);
    await expect(call('no_such_tool')).rejects.toMatchObject({ code: -32602 });
    expect(await call('execute', { code: 1 })).toMatchObject({
      isError: true,
      structured: { error: { code: 'invalid_input' } },
    });
  });

  test('is refused in the words of the protocol when it may have no sessions', async () => {
    const [message, headers] = callMessage(era, 'list_vars', {});
    const response = await post(message, { ...headers, 'x-caller': 'nobody' });
    expect(response.status).toBe(429);
    expect(await response.json()).toEqual({
      jsonrpc: '2.0',
      id: 7,
      error: { code: -32000, message: 'Too many sessions. Try again in a minute.' },
    });
  });

  test('is answered when the service stops, and its code is interrupted', async () => {
    const other = await startService();
    const { call } = await connect(era, 'ada', other);
    const answer = call('execute', { code: FOREVER });
    await begun();
    await other.http.close();
    expect((await answer).structured).toMatchObject({
      outcome: 'cancelled',
      output: expect.stringMatching(/^begun\n/),
    });
    const response = await other.http.fetch(new Request(other.url, { method: 'POST' }), { id: 'ada', kind: 'key' });
    expect([response.status, await response.json()]).toMatchObject([503, { jsonrpc: '2.0', error: { code: -32000 } }]);
    await other.close();
  });
});

// -- cancelling by notification -----------------------------------------------------------------------

test('a notification cancels only the calls of the client that sends it', async () => {
  const initialize = {
    jsonrpc: '2.0',
    id: 0,
    method: 'initialize',
    params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  };
  const sessionOf = async () => (await post(initialize)).headers.get('mcp-session-id') ?? '';
  const [mine, others] = [await sessionOf(), await sessionOf()];
  expect(mine).toMatch(/^[\x21-\x7e]{21}$/);
  const [message, headers] = callMessage('legacy', 'execute', { code: FOREVER });
  const call = await post(message, { ...headers, 'mcp-session-id': mine });
  const { done, record } = await begun();

  const cancel = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 7 } };
  const cancelAs = async (more: Record<string, string>) => (await post(cancel, { ...headers, ...more })).status;
  expect(await cancelAs({})).toBe(202);
  expect(await cancelAs({ 'mcp-session-id': others })).toBe(202);
  expect(await cancelAs({ 'mcp-session-id': mine, 'x-caller': 'bob' })).toBe(202);
  await post({ ...cancel, params: { requestId: '7' } }, { ...headers, 'mcp-session-id': mine });
  await sleep(300);
  expect(record.state).toBe('running');
  expect(await cancelAs({ 'mcp-session-id': mine })).toBe(202);
  await done;
  expect(lastOf('ada')).toMatchObject({ outcome: 'cancelled' });
  expect(await call.text(), 'a cancelled call has no answer').not.toContain('result');
});

test('a call needs no handshake with this very service: it may have been restarted since', async () => {
  const [message] = callMessage('legacy', 'execute', { code: '40 + 2' });
  for (const headers of [{}, { 'mcp-session-id': 'of-an-earlier-one' }]) {
    const response = await post(message, headers);
    expect([response.status, await response.text()]).toEqual([200, expect.stringContaining('"text":"42"')]);
  }
});

// -- the wire -----------------------------------------------------------------------------------------

describe('an HTTP request to /mcp that is no MCP message', () => {
  test.each(['GET', 'DELETE', 'PUT'])('by %s is answered with 405', async (method) => {
    const response = await fetch(service.url, { method, headers: { accept: 'text/event-stream' } });
    expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', id: null, error: { code: -32000 } });
  });

  test.each([
    ['{"jsonrpc": "2.0", "id": 1,', -32700],
    ['', -32700],
    ['null', -32600],
    ['42', -32600],
    ['{"id": 1}', -32600],
    ['[]', -32600],
    ['{"jsonrpc": "2.0", "id": {}, "method": "tools/list"}', -32600],
  ])('with the body %s is refused with a JSON-RPC error', async (body, code) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code } });
  });

  test('with another content type is refused', async () => {
    const response = await post('code=1', { 'content-type': 'application/x-www-form-urlencoded' });
    expect(response.status).toBe(415);
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code: -32000 } });
  });
});
