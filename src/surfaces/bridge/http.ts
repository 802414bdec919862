/** Serves HTTP on the bridge's socket: `POST /execute` takes the arguments of the tool `execute` and answers { result }; the rest is the workbench's. */

import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from 'node:http';
import * as z from 'zod';
import { CuvetteError, ERROR_CODES, toCuvetteError } from '../../errors.ts';
import { parseGuarded } from '../../json-guard.ts';
import type { ToolAnswer } from '../../tools/define-tool.ts';
import { type BridgeConnection, requestTooLarge } from './connection.ts';

interface BridgeHttpOptions {
  /** Of a body. */
  mostBytes: number;
  connectionOf(request: IncomingMessage): BridgeConnection | undefined;
  /** Calls the tool `execute`. */
  execute(input: unknown, signal: AbortSignal): Promise<ToolAnswer>;
  /** Answers what is asked for at another path. */
  others?: (() => Promise<RequestListener>) | undefined;
}

const failure = z.object({ error: z.object({ code: z.enum(ERROR_CODES), message: z.string() }) });

/** Creates a server that never listens: the bridge hands connections to it. */
export function createBridgeHttp({ mostBytes, connectionOf, execute, others }: BridgeHttpOptions): Server {
  return createServer((request, response) => {
    const path = request.url?.split('?')[0];
    if (path !== '/execute' && others) return passOn(request, response, others);
    if (request.method !== 'POST' || path !== '/execute')
      return send(response, 404, {
        detail: `There is no ${request.method} ${path} here. Send POST /execute with {"code": "…"}; for the other tools: cuvette call.`,
      });
    answer(request)
      .then((result) => send(response, 200, { result }))
      .catch((error: unknown) => {
        const { status, message } = toCuvetteError(error);
        send(response, status, { detail: message });
      });
  });

  function passOn(request: IncomingMessage, response: ServerResponse, listener: () => Promise<RequestListener>): void {
    connectionOf(request)?.arrived();
    listener()
      .then((listen) => listen(request, response))
      .catch((error: unknown) => send(response, 500, { detail: toCuvetteError(error).message }));
  }

  async function answer(request: IncomingMessage): Promise<string> {
    const connection = connectionOf(request);
    if (!connection)
      throw new CuvetteError('internal', 'The request came by a connection that the bridge does not know.');
    const body = await read(request, mostBytes);
    connection.arrived();
    const { text, structured } = await execute(parse(body), connection.gone);
    const { data: failed } = failure.safeParse(structured);
    if (failed) throw new CuvetteError(failed.error.code, failed.error.message);
    return text;
  }
}

/** Discards the rest of a body that is too large, so that the client comes to read the answer. */
function read(request: IncomingMessage, mostBytes: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    request.on('data', (chunk: Buffer) => {
      size += chunk.length;
      chunks.push(chunk);
      if (size <= mostBytes) return;
      chunks.length = 0;
      reject(requestTooLarge(mostBytes));
    });
    request.once('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
    request.once('error', reject);
  });
}

function parse(body: string): unknown {
  try {
    return parseGuarded(body);
  } catch (error) {
    if (error instanceof CuvetteError) throw error;
    throw new CuvetteError('invalid_input', 'The body is not JSON. Send {"code": "…"}.', { cause: error });
  }
}

/** Closes the connection after the answer, so that none stays open without use. */
function send(response: ServerResponse, status: number, body: object): void {
  const text = `${JSON.stringify(body)}\n`;
  response
    .writeHead(status, {
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(text),
      connection: 'close',
    })
    .end(text);
}
