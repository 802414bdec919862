/** The bridge: a Unix socket that only its owner can reach, for the shell client. Translates; decides nothing. */

import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { nanoid } from 'nanoid';
import * as z from 'zod';
import { CuvetteError, toCuvetteError } from '../../errors.ts';
import { readLines, writeLine } from '../../json-lines.ts';
import type { Logger } from '../../log.ts';
import { privateFolder } from '../../paths.ts';
import { findProcess } from '../../process-tree.ts';
import { lineageOf } from '../../sessions/agent.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { callTool } from '../../tools/call.ts';
import type { Tool } from '../../tools/define-tool.ts';
import { TOOLS } from '../../tools/registry.ts';
import { VERSION } from '../../version.ts';
import { streamExecution } from './execution-stream.ts';
import type { BridgeEvent } from './protocol.ts';
import { type ServerRecord, writeRecord } from './server-record.ts';

export interface Bridge {
  socket: string;
  /** When somebody last asked for something; now, while somebody does. */
  idleSince(): number;
  close(): void;
}

export interface BridgeOptions {
  sessions: Sessions;
  runtime: string;
  kind: ServerRecord['kind'];
  log: Logger;
  /** The lab's: whoever reaches the socket is the user of this machine. */
  labTools?: readonly Tool[];
}

const requests = z.discriminatedUnion('do', [
  z.object({
    do: z.literal('execute'),
    code: z.string(),
    session: z.string().optional(),
    interpreter: z.string().optional(),
    timeout: z.number().min(0).optional(),
  }),
  z.object({ do: z.literal('call'), tool: z.string(), input: z.unknown() }),
]);

export async function openBridge({ sessions, runtime, kind, log, labTools = [] }: BridgeOptions): Promise<Bridge> {
  const tools = [...TOOLS, ...labTools];
  const path = join(privateFolder(join(runtime, 'b')), `${nanoid(10)}.sock`);
  const open = new Set<Socket>();
  let lastUsed = Date.now();

  const server = createServer((socket) => {
    const gone = new AbortController();
    const write = (event: BridgeEvent) => void (socket.writable && writeLine(socket, event));
    open.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      gone.abort();
      open.delete(socket);
      lastUsed = Date.now();
    });
    readLines(socket, (line) => {
      handle(line, write, gone.signal).catch((error: unknown) => {
        const { code, message } = toCuvetteError(error);
        write({ type: 'failed', code, message });
      });
    });
  });

  async function handle(line: string, write: (event: BridgeEvent) => void, signal: AbortSignal): Promise<void> {
    const request = parse(line);
    if (request.do === 'execute') return streamExecution(sessions, { ...request, signal }, write);
    const tool = tools.find(({ name }) => name === request.tool);
    if (!tool) {
      const names = tools.map(({ name }) => name).join(', ');
      throw new CuvetteError('invalid_input', `There is no tool ${request.tool}. There are: ${names}.`);
    }
    const answer = await callTool(tool, request.input, { sessions, signal, progress: () => {} }, log);
    write({ type: 'answer', text: answer.text, structured: answer.structured, isError: answer.isError ?? false });
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  const lineage = kind === 'agent' ? lineageOf(process.pid) : [];
  const removeRecord = writeRecord(runtime, {
    pid: process.pid,
    started: findProcess(process.pid)?.started ?? '',
    version: VERSION,
    kind,
    lineage: lineage.map(({ pid, started }) => ({ pid, started })),
    project: sessions.project,
    socket: path,
  });
  sessions.socketPath = Promise.resolve(path);
  return {
    socket: path,
    idleSince: () => (open.size > 0 ? Date.now() : lastUsed),
    close() {
      removeRecord();
      server.close();
      rmSync(path, { force: true });
    },
  };
}

function parse(line: string): z.infer<typeof requests> {
  let request: unknown;
  try {
    request = JSON.parse(line);
  } catch (error) {
    throw new CuvetteError('invalid_input', 'The request is not JSON.', { cause: error });
  }
  const parsed = requests.safeParse(request);
  if (parsed.success) return parsed.data;
  throw new CuvetteError('invalid_input', z.prettifyError(parsed.error));
}
