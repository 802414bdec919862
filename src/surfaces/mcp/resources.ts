/** Serves what answers only link to as MCP resources: the whole text of an execution, and pictures at their full size. */

import { type McpServer, ResourceNotFoundError, ResourceTemplate } from '@modelcontextprotocol/server';
import { CuvetteError } from '../../errors.ts';
import { imageIn } from '../../sessions/output-text.ts';
import { readPage } from '../../sessions/paging.ts';
import type { Sessions } from '../../sessions/sessions.ts';

const LARGEST_TEXT = 5_000_000;
const TEXT = new ResourceTemplate('cuvette://sessions/{session}/executions/{number}/text', { list: undefined });
const OUTPUT = new ResourceTemplate('cuvette://sessions/{session}/executions/{number}/outputs/{index}', {
  list: undefined,
});

export function registerResources(server: McpServer, sessions: () => Promise<Sessions>): void {
  server.registerResource(
    'execution-text',
    TEXT,
    { title: 'Output of an execution', description: 'The whole text that an execution gave.', mimeType: 'text/plain' },
    async (uri, { session, number }) => {
      const { transcript } = await find(await sessions(), uri, session, number);
      const page = await readPage(transcript, { by: 'offset', offset: 0, limit: LARGEST_TEXT });
      return { contents: [{ uri: uri.href, mimeType: 'text/plain', text: page.text }] };
    },
  );
  server.registerResource(
    'execution-output',
    OUTPUT,
    { title: 'Picture of an execution', description: 'A picture that an execution showed, at its full size.' },
    async (uri, { session, number, index }) => {
      const { transcript } = await find(await sessions(), uri, session, number);
      const output = transcript.outputs[Number(index)];
      const image = output && 'data' in output ? imageIn(output.data) : undefined;
      if (!image) throw new ResourceNotFoundError(uri.href);
      return { contents: [{ uri: uri.href, mimeType: image.mimeType, blob: image.base64 }] };
    },
  );
}

async function find(sessions: Sessions, uri: URL, id: unknown, number: unknown) {
  try {
    return await sessions.use(String(id), (session) => session.execution(Number(number)));
  } catch (error) {
    if (error instanceof CuvetteError) throw new ResourceNotFoundError(uri.href);
    throw error;
  }
}
