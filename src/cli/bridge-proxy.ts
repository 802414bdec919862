/** Passes requests on to a server's bridge, as streams in both directions; the server may be another one each time. */

import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import type { Context } from 'hono';
import { CuvetteError, messageOf } from '../errors.ts';
import { goneSignal, type RestEnv } from '../surfaces/caller.ts';
import { OF_HEADER } from '../surfaces/workbench/bridge-app.ts';
import type { FoundServer } from './find-server.ts';

/** Of one connection, or of who may come in: nothing for the other side. */
const NOT_PASSED = [
  'connection',
  'keep-alive',
  'transfer-encoding',
  'upgrade',
  'host',
  'cookie',
  'authorization',
  'x-api-key',
];

export async function passOn(c: Context<RestEnv>, server: FoundServer): Promise<Response> {
  const url = new URL(c.req.url);
  const headers: Record<string, string> = {};
  for (const [name, value] of c.req.raw.headers)
    if (!NOT_PASSED.includes(name) && name !== OF_HEADER) headers[name] = value;
  if (server.of) headers[OF_HEADER] = server.of;
  const { body } = c.req.raw;
  const request = httpRequest({
    socketPath: server.socket,
    path: `${url.pathname}${url.search}`,
    method: c.req.method,
    headers: { ...headers, host: 'localhost' },
    signal: goneSignal(c),
    agent: false,
  });
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', resolve);
    request.once('error', reject);
  }).catch((error: unknown) => {
    throw new CuvetteError('no_server', `The server of this folder does not answer: ${messageOf(error)}. Try again.`, {
      cause: error,
    });
  });
  if (body)
    Readable.from(body)
      .on('error', () => request.destroy())
      .pipe(request);
  else request.end();
  return toResponse(await answered);
}

function toResponse(answer: IncomingMessage): Response {
  const status = answer.statusCode ?? 502;
  const hasBody = status !== 204 && status !== 304;
  if (!hasBody) answer.resume();
  return new Response(hasBody ? bytesOf(answer) : null, { status, headers: headersOf(answer.headers) });
}

/** A server that dies in the middle ends the stream; the page connects again. */
function bytesOf(answer: IncomingMessage): ReadableStream<Uint8Array> {
  const chunks: AsyncIterator<Uint8Array> = answer[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await chunks.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: () => void answer.destroy(),
  });
}

function headersOf(given: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || NOT_PASSED.includes(name)) continue;
    for (const one of Array.isArray(value) ? value : [value]) headers.append(name, one);
  }
  return headers;
}
