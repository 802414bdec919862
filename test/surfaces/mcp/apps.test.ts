import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { createLog } from '../../../src/log.ts';
import { createSessions } from '../../../src/sessions/sessions.ts';
import { createMcpHttp } from '../../../src/surfaces/mcp/http.ts';
import { fakeResources, fakeZygotes } from '../../sessions/fake-keepers.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const APPS = { extensions: { 'io.modelcontextprotocol/ui': { mimeTypes: ['text/html;profile=mcp-app'] } } };
const OTHERS = { extensions: { 'io.example/other': {} }, roots: {} };

/** A client that speaks the protocol itself, so that a test sees every byte of an answer. */
async function connect(era: 'legacy' | 'modern', capabilities: object) {
  const root = temporaryFolder();
  const zygotes = fakeZygotes();
  zygotes.onSpawn = (keeper) => {
    keeper.onExecute = () => {
      keeper.show({
        type: 'result',
        data: { 'text/plain': '   a\n0  1', 'text/html': '<table></table>' },
        metadata: {},
      });
      keeper.finish();
    };
  };
  const resources = fakeResources(root, zygotes);
  const sessions = createSessions({
    config: readConfig({}, {}),
    paths: resources.paths,
    project: join(root),
    resources,
  });
  const http = createMcpHttp({ sessionsFor: () => sessions, log: createLog('silent') });
  const client = { name: 'test', version: '1' };
  const version = era === 'legacy' ? '2025-06-18' : '2026-07-28';
  const envelope = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': client,
    'io.modelcontextprotocol/clientCapabilities': capabilities,
  };
  let session: string | null = null;

  async function send(method: string, params: object = {}) {
    const given = era === 'legacy' ? params : { ...params, _meta: envelope };
    const headers = new Headers({
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': version,
    });
    if (era === 'modern') headers.set('mcp-method', method);
    if (era === 'modern' && 'name' in params) headers.set('mcp-name', String(params.name));
    if (era === 'modern' && 'uri' in params) headers.set('mcp-name', String(params.uri));
    if (session !== null) headers.set('mcp-session-id', session);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: given });
    const request = new Request('http://127.0.0.1/mcp', { method: 'POST', headers, body });
    const response = await http.fetch(request, { id: 'me', kind: 'open' });
    session = response.headers.get('mcp-session-id') ?? session;
    const text = await response.text();
    return text.match(/^data: (\{.*)$/m)?.[1] ?? text;
  }
  if (era === 'legacy') await send('initialize', { protocolVersion: version, clientInfo: client, capabilities });
  const ask = async (method: string, params?: object) => JSON.parse(await send(method, params));
  return { send, ask };
}

describe.each(['legacy', 'modern'] as const)('in the %s protocol, a host that shows apps', (era) => {
  it('is told of a view for each tool that has one, and can read it', async () => {
    const { ask } = await connect(era, APPS);
    const { tools } = (await ask('tools/list')).result;
    const withView = tools.filter((tool: object) => '_meta' in tool);
    expect(withView).toMatchObject([{ name: 'execute', _meta: { ui: { resourceUri: 'ui://cuvette/execution' } } }]);
    const { resources } = (await ask('resources/list')).result;
    expect(resources.map(({ uri, mimeType }: { uri: string; mimeType: string }) => [uri, mimeType])).toEqual([
      ['ui://cuvette/execution', 'text/html;profile=mcp-app'],
      ['ui://cuvette/verdict', 'text/html;profile=mcp-app'],
    ]);
    const [page] = (await ask('resources/read', { uri: 'ui://cuvette/execution' })).result.contents;
    expect(page).toMatchObject({ uri: 'ui://cuvette/execution', mimeType: 'text/html;profile=mcp-app' });
    expect(page.text).toMatch(/^<!doctype html>/i);
  });

  it('has the fields of an answer and the tables beside it, where its model does not read them', async () => {
    const { ask } = await connect(era, APPS);
    const { result } = await ask('tools/call', { name: 'execute', arguments: { code: 'df' } });
    expect(result.content).toEqual([{ type: 'text', text: '   a\n0  1' }]);
    expect(result.structuredContent).toBeUndefined();
    expect(result._meta['cuvette/view']).toMatchObject({ outcome: 'ok', execution: 1, html: ['<table></table>'] });
    const { result: listed } = await ask('tools/call', { name: 'list_vars', arguments: {} });
    expect(listed._meta?.['cuvette/view']).toBeUndefined();
  });
});

describe.each(['legacy', 'modern'] as const)('in the %s protocol, a host that shows no apps', (era) => {
  it('is sent nothing of views, byte for byte, whatever else it declares', async () => {
    const [plain, other, apps] = await Promise.all([{}, OTHERS, APPS].map((given) => connect(era, given)));
    if (!plain || !other || !apps) throw new Error('not connected');
    const list = await plain.send('tools/list');
    expect(list).toBe(await other.send('tools/list'));
    expect(list).not.toContain('ui://');
    const withApps = JSON.parse(await apps.send('tools/list'));
    for (const tool of withApps.result.tools) delete tool._meta;
    expect(list).toBe(JSON.stringify(withApps));
    expect((await plain.ask('resources/list')).result.resources).toEqual([]);
    expect(await plain.ask('resources/read', { uri: 'ui://cuvette/execution' })).toHaveProperty('error');
    const { result } = await plain.ask('tools/call', { name: 'execute', arguments: { code: 'df' } });
    expect(JSON.stringify(result)).not.toContain('cuvette/view');
  });
});
