/** Connects a real MCP client to /mcp of a service, for one test. */

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { onTestFinished } from 'vitest';
import { HANGS_AFTER } from '../harness.ts';
import type { Service } from './service.ts';

export async function connectMcp({ url }: Service, path = '/mcp', headers: Record<string, string> = {}) {
  const client = new Client({ name: 'e2e', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}${path}`), { requestInit: { headers } }));
  onTestFinished(() => client.close());

  async function call(name: string, given: Record<string, unknown> = {}) {
    const result = await client.callTool(
      { name, arguments: given, _meta: { 'cuvette/structured': true } },
      { timeout: HANGS_AFTER },
    );
    const texts = result.content.flatMap((part) => (part.type === 'text' ? [part.text] : []));
    const { content, structuredContent: structured, isError = false } = result;
    return { text: texts.join('\n'), content, structured, isError };
  }

  return {
    client,
    call,
    execute: (code: string, more: Record<string, unknown> = {}) => call('execute', { code, ...more }),
  };
}
