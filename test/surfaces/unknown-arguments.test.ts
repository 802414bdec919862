/** Every surface refuses a mistyped argument by name: what is called is `execute`, and a tool with nested arguments. */

import { request } from 'node:http';
import { Client, InMemoryTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { describe, expect, onTestFinished, test } from 'vitest';
import * as z from 'zod';
import { createLog } from '../../src/log.ts';
import type { Sessions } from '../../src/sessions/sessions.ts';
import { callBridge } from '../../src/surfaces/bridge/client.ts';
import { openBridge } from '../../src/surfaces/bridge/listen.ts';
import { createMcpHttp } from '../../src/surfaces/mcp/http.ts';
import { createMcpServer } from '../../src/surfaces/mcp/server.ts';
import { defineTool, READS } from '../../src/tools/define-tool.ts';
import { createLabListing } from '../../src/tools/lab.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const log = createLog('silent');
const REFUSED =
  /^Unknown argument timout; did you mean timeout\? execute takes: code, interpreter, session, timeout, background\.$/;
const REFUSED_NESTED = /^Unknown argument probe\.layr; did you mean layer\? probe takes: layer\.$/;

/** Nothing gets as far as a session. */
const sessions = { project: '/nowhere' } as Sessions;
const nested = defineTool({
  name: 'nested',
  title: 'Nested',
  description: 'Has an argument that is an object.',
  input: z.object({ probe: z.object({ layer: z.number().optional() }) }),
  output: z.object({}),
  lab: 'inside',
  annotations: READS,
  handler: async () => ({ text: 'called', structured: {} }),
});
const lab = { tools: [nested], listing: createLabListing('all') };

async function textOver(client: Client, name: string, args: Record<string, unknown>): Promise<string> {
  onTestFinished(() => client.close());
  const { content, isError } = await client.callTool({ name, arguments: args });
  const [first] = content;
  return isError && first?.type === 'text' ? first.text : 'not refused';
}

async function overMcp(name: string, args: Record<string, unknown>): Promise<string> {
  const [near, far] = InMemoryTransport.createLinkedPair();
  const client = new Client({ name: 'test', version: '1' });
  await Promise.all([createMcpServer({ sessions, log, lab }).connect(far), client.connect(near)]);
  return textOver(client, name, args);
}

async function overMcpHttp(name: string, args: Record<string, unknown>): Promise<string> {
  const http = createMcpHttp({
    sessionsFor: () => sessions,
    log,
    lab: { tools: lab.tools, listingOf: () => lab.listing },
  });
  onTestFinished(() => http.close());
  const client = new Client({ name: 'test', version: '1' });
  const fetch = (url: string | URL, init?: RequestInit) =>
    http.fetch(new Request(url, init), { id: 'ada', kind: 'key' });
  await client.connect(new StreamableHTTPClientTransport(new URL('http://127.0.0.1/mcp'), { fetch }));
  return textOver(client, name, args);
}

async function open(): Promise<string> {
  const bridge = await openBridge({ sessions, runtime: temporaryFolder(), kind: 'service', log, labTools: [nested] });
  onTestFinished(() => bridge.close());
  return bridge.socket;
}

async function overBridge(tool: string, input: Record<string, unknown>): Promise<string> {
  let text = 'no answer';
  await callBridge(await open(), { do: 'call', tool, input }, (event) => {
    if (event.type === 'answer') text = event.isError ? event.text : 'not refused';
  });
  return text;
}

async function overBridgeHttp(body: object): Promise<{ status: number | undefined; detail: string }> {
  const socketPath = await open();
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, path: '/execute', method: 'POST' }, async (response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of response) chunks.push(chunk as Buffer);
      resolve({ status: response.statusCode, detail: JSON.parse(Buffer.concat(chunks).toString()).detail });
    });
    sent.once('error', reject);
    sent.end(JSON.stringify(body));
  });
}

describe.each([
  ['MCP', overMcp],
  ['MCP over HTTP', overMcpHttp],
  ['cuvette call', overBridge],
])('%s', (_, call) => {
  test('refuses an unknown argument of a tool and names the nearest known one', async () => {
    expect(await call('execute', { code: '1', timout: 5 })).toMatch(REFUSED);
  });

  test('refuses an unknown key of an argument that is an object', async () => {
    expect(await call('nested', { probe: { layr: 3 } })).toMatch(REFUSED_NESTED);
  });
});

test("the bridge's HTTP refuses an unknown argument with 400 and names the nearest known one", async () => {
  expect(await overBridgeHttp({ code: '1', timout: 5 })).toEqual({
    status: 400,
    detail: expect.stringMatching(REFUSED),
  });
});

test('the bridge refuses a request of cuvette run with an unknown key', async () => {
  const request = { do: 'execute' as const, code: '1', timout: 5 };
  await expect(callBridge(await open(), request, () => {})).rejects.toThrow(
    /^Unknown argument timout; did you mean timeout\? the request takes: of, do, code, session, interpreter, timeout\.$/,
  );
});
