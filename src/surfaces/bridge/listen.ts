/** The bridge: HTTP on a Unix socket that only its owner can reach, for the shell client. Translates; decides nothing. */

import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { join } from 'node:path';
import { nanoid } from 'nanoid';
import * as z from 'zod';
import { CuvetteError, toCuvetteError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { privateFolder } from '../../paths.ts';
import { findProcess } from '../../process-tree.ts';
import { lineageOf } from '../../sessions/agent.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { callTool } from '../../tools/call.ts';
import { TOOLS } from '../../tools/registry.ts';
import { VERSION } from '../../version.ts';
import { streamExecution } from './execution-stream.ts';
import { type ServerRecord, writeRecord } from './server-record.ts';

const LARGEST_BODY = 64 << 20;

export interface Bridge {
  socket: string;
  /** When somebody last asked for something; 0 while a request is open. */
  idleSince(): number;
  close(): void;
}

export interface BridgeOptions {
  sessions: Sessions;
  runtime: string;
  kind: ServerRecord['kind'];
  log: Logger;
}

const executeBody = z.object({
  code: z.string(),
  session: z.string().optional(),
  interpreter: z.string().optional(),
  timeout: z.number().min(0).optional(),
});

export async function openBridge({ sessions, runtime, kind, log }: BridgeOptions): Promise<Bridge> {
  const socket = join(privateFolder(join(runtime, 'b')), `${nanoid(10)}.sock`);
  let open = 0;
  let lastUsed = Date.now();

  const server = createServer((request, response) => {
    open += 1;
    response.once('close', () => {
      open -= 1;
      lastUsed = Date.now();
    });
    handle(request, response).catch((error: unknown) => fail(response, error));
  });

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, first = '', second = ''] = (request.url ?? '').split('/');
    const route = `${request.method} /${first}`;
    if (route === 'GET /')
      return send(response, 200, { name: 'cuvette', version: VERSION, project: sessions.project, pid: process.pid });
    if (route === 'POST /execute') {
      const body = parse(executeBody, await readBody(request));
      return streamExecution(sessions.get(body.session), body, response);
    }
    if (route === 'POST /tools') {
      const tool = TOOLS.find(({ name }) => name === second);
      if (!tool)
        throw new CuvetteError(
          'invalid_input',
          `There is no tool ${second}. There are: ${TOOLS.map(({ name }) => name).join(', ')}.`,
        );
      const gone = new AbortController();
      response.once('close', () => gone.abort());
      const answer = await callTool(
        tool,
        await readBody(request),
        { sessions, signal: gone.signal, progress: () => {} },
        log,
      );
      return send(response, 200, answer);
    }
    throw new CuvetteError('invalid_input', `The bridge has no ${route}.`);
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(socket, resolve);
  });
  server.unref();
  const lineage = kind === 'agent' ? lineageOf(process.pid) : [];
  const removeRecord = writeRecord(runtime, {
    pid: process.pid,
    started: findProcess(process.pid)?.started ?? '',
    version: VERSION,
    kind,
    lineage: lineage.map(({ pid, started }) => ({ pid, started })),
    project: sessions.project,
    socket,
  });
  sessions.socketPath = socket;
  return {
    socket,
    idleSince: () => (open > 0 ? Date.now() : lastUsed),
    close() {
      removeRecord();
      server.close();
      rmSync(socket, { force: true });
    },
  };
}

async function readBody(request: IncomingMessage): Promise<unknown> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += (chunk as Buffer).length;
    if (size > LARGEST_BODY) throw new CuvetteError('invalid_input', 'The request is larger than 64 MB.');
    chunks.push(chunk as Buffer);
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8') || '{}');
  } catch (error) {
    throw new CuvetteError('invalid_input', 'The request is not JSON.', { cause: error });
  }
}

function parse<T extends z.ZodType>(schema: T, value: unknown): z.infer<T> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new CuvetteError('invalid_input', z.prettifyError(parsed.error));
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function fail(response: ServerResponse, error: unknown): void {
  const known = toCuvetteError(error);
  if (response.headersSent) return void response.destroy();
  send(response, known.status, { error: { code: known.code, message: known.message, exitCode: known.exitCode } });
}
