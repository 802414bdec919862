/** What is said of code whose connection is lost before anything was heard of it, by a service that stands for the real one. */

import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { createServiceClient } from '../../../src/lab/remote/resumable-calls.ts';
import { serveOther } from '../served.ts';

const SESSION = { session: 'a-session', executions: 3 };
const { signal } = new AbortController();

type Answer = (response: ServerResponse) => void;

const hangUp: Answer = (response) => response.destroy();
const refuse: Answer = (response) => response.writeHead(401).end();
const counting =
  (executions: number): Answer =>
  (response) => {
    const structuredContent = { ...SESSION, executions };
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: 1, result: { structuredContent } })}\n\n`);
  };

/** Runs code whose request is hung up on; the state of the session is then asked for as often as there are answers. */
async function runAgainst(...answers: Answer[]) {
  const asked: string[] = [];
  const { url } = await serveOther((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    const answer = request.url === '/mcp' ? answers.shift() : hangUp;
    request.resume().on('end', () => (answer ?? hangUp)(response));
  });
  const client = createServiceClient({ endpoint: url, token: undefined, waits: [0, 0] });
  const ran = client.run(SESSION, { lang: 'py', code: '1' }, signal).next();
  return {
    asked,
    error: await ran.then(
      () => undefined,
      (error: Error) => error,
    ),
  };
}

test('a service that stays away may run it, and that is said', async () => {
  const { asked, error } = await runAgainst(hangUp, hangUp);
  expect(error).toMatchObject({
    code: 'lab_unreachable',
    message: expect.stringMatching(/may have run there, or still run.*list_vars.*cannot be reached/s),
  });
  expect(asked).toEqual(['POST /exec/stream', 'POST /mcp', 'POST /mcp']);
});

test('a service that comes back without having counted it has not run it', async () => {
  const { asked, error } = await runAgainst(hangUp, counting(3));
  expect(error).toMatchObject({ code: 'lab_unreachable', message: expect.stringMatching(/has not run. Run it again/) });
  expect(asked).toEqual(['POST /exec/stream', 'POST /mcp', 'POST /mcp']);
});

test('a service that refuses to say is not asked again, and may run it', async () => {
  const { asked, error } = await runAgainst(refuse);
  expect(error?.message).toMatch(/may have run there.*does not know this key/s);
  expect(asked).toEqual(['POST /exec/stream', 'POST /mcp']);
});

test('a service that has counted it is joined, and not sent it again', async () => {
  const { asked } = await runAgainst(hangUp, counting(4));
  expect(asked.slice(2)).toEqual(['POST /mcp', 'GET /exec/stream', 'GET /exec/stream']);
});
