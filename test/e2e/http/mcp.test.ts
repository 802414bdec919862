/** Connects a real client to MCP at /mcp of the service: it has the same tools as over stdio, and access is checked as for all else. */

import { expect, test } from 'vitest';
import { connectMcp } from './mcp-client.ts';
import { ok, useService } from './service.ts';

const KEY = 'mcp-key-0123456789';
const service = await useService({ env: { CUVETTE_API_KEY: KEY } });

const connect = (path?: string, headers: Record<string, string> = { 'x-api-key': KEY }) =>
  connectMcp(service, path, headers);

test('over MCP, Python runs and keeps its variables across connections', async () => {
  const first = await connect();
  expect((await first.execute('x = 40; x + 2')).text).toBe('42');
  const second = await connect('/v1/mcp', { authorization: `Bearer ${KEY}` });
  expect((await second.execute('x')).text).toBe('40');
  const other = await second.execute('"x" in dir()', { session: 'new' });
  expect(other.text).toContain('False');
});

test('over MCP, bash runs and keeps its variables and its folder', async () => {
  const { execute } = await connect();
  await execute('y=1; mkdir -p sub; cd sub', { interpreter: 'bash' });
  const { text, isError } = await execute('echo "$y"; pwd', { interpreter: 'bash' });
  expect([text, isError]).toEqual(['1\n/mnt/data/sub', false]);
});

test('over MCP, files of one language are there in the other', async () => {
  const { execute } = await connect();
  await execute('open("/mnt/data/shared.txt", "w").write("from Python")');
  expect((await execute('cat /mnt/data/shared.txt', { interpreter: 'bash' })).text).toBe('from Python');
});

test('over MCP, the other languages run', async () => {
  const { execute } = await connect();
  expect((await execute('console.log(1 + 1)', { interpreter: 'node' })).text).toBe('2');
  expect((await execute('enum E { A = 3 }\nconsole.log(E.A)', { interpreter: 'typescript' })).text).toBe('3');
});

test('over MCP, a figure comes as an image', async () => {
  const { execute } = await connect();
  const { content } = await execute('import matplotlib.pyplot as plt; plt.plot([1, 3, 2]); plt.show()', {
    session: 'new',
  });
  const image = content.find((part) => part.type === 'image');
  expect(image?.type === 'image' && image.mimeType).toBe('image/png');
  expect(image?.type === 'image' && Buffer.from(image.data, 'base64').subarray(1, 4).toString()).toBe('PNG');
});

test.each([
  ['saved, then shown', 'plt.savefig("p.png"); plt.show()'],
  ['shown, then saved', 'plt.show(); fig.savefig("p.png")'],
  ['saved', 'plt.savefig("p.png"); plt.savefig("p.pdf")'],
])('over MCP, a figure that is %s comes as an image once', async (_, code) => {
  const { execute } = await connect();
  const { content } = await execute(`import matplotlib.pyplot as plt; fig = plt.figure(); plt.plot([1, 3]); ${code}`, {
    session: 'new',
  });
  expect(content.filter(({ type }) => type !== 'text').map(({ type }) => type)).toEqual(['image']);
});

test('over MCP, an error is reported as one, with its reason', async () => {
  const { execute } = await connect();
  const { isError, structured, text } = await execute('1/0');
  expect(isError).toBe(true);
  expect(structured).toMatchObject({ outcome: 'error', reason: { code: 'exception' } });
  expect(text).toContain('ZeroDivisionError');
});

test('over MCP, the tools are listed with descriptions', async () => {
  const { client } = await connect();
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  expect(names).toEqual(expect.arrayContaining(['execute', 'get_output', 'interrupt', 'list_interpreters']));
  for (const { description } of tools) expect(description).toBeTruthy();
});

test('over MCP, nobody connects without a credential', async () => {
  await expect(connect('/mcp', {})).rejects.toThrow();
  await expect(connect('/mcp', { 'x-api-key': 'wrong' })).rejects.toThrow();
});

test('over MCP, the sessions of tools are counted by the service', async () => {
  const { execute } = await connect();
  await execute('1');
  const health = ok(await service.as({ 'x-api-key': KEY }).get('/health')).json<{ active_sessions: number }>();
  expect(health.active_sessions).toBeGreaterThanOrEqual(1);
});
