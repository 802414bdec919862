/** Opens the bridge: a Unix socket that only its owner can reach, for the shell client and for programs that speak HTTP. It only translates. */

import { rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { nanoid } from 'nanoid';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { parseGuarded } from '../../json-guard.ts';
import type { Logger } from '../../log.ts';
import { privateFolder } from '../../paths.ts';
import { findProcess } from '../../process-tree.ts';
import { ancestorsUpToAgent } from '../../sessions/find-agent.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { callTool } from '../../tools/call.ts';
import type { Tool, ToolAnswer } from '../../tools/define-tool.ts';
import { TOOLS } from '../../tools/registry.ts';
import { refuseUnknownArguments } from '../../tools/unknown-arguments.ts';
import { VERSION } from '../../version.ts';
import type { BridgeApp } from '../workbench/bridge-app.ts';
import { type BridgeConnection, openBridgeConnection, type RequestLimits, type WriteEvent } from './connection.ts';
import { streamExecution } from './execution-stream.ts';
import { createBridgeHttp } from './http.ts';
import { type BridgeRequest, bridgeRequest, whoseSessions } from './protocol.ts';
import { type ServerRecord, writeRecord } from './server-record.ts';

export interface Bridge {
  socket: string;
  /** Returns when the last connection closed; now, while one is open. */
  idleSince(): number;
  close(): void;
}

export interface BridgeOptions {
  sessions: Sessions;
  runtime: string;
  kind: ServerRecord['kind'];
  log: Logger;
  /** The URL that agents reach over HTTP, and their sessions, which their shells share. */
  agents?: { url: string; sessions: Sessions; isUsed(): boolean } | undefined;
  /** The lab's tools; whoever reaches the socket is the user of this machine. */
  labTools?: readonly Tool[];
  limits?: RequestLimits;
  /** The data folder, for the workbench's routes; without it, there are none. */
  data?: string;
}

const LIMITS: RequestLimits = { mostBytes: 64 * 1024 * 1024, deadline: 30_000 };

export async function openBridge(options: BridgeOptions): Promise<Bridge> {
  const { sessions: own, runtime, kind, log, agents, labTools = [], limits = LIMITS } = options;
  const tools = [...TOOLS, ...labTools];
  const path = join(privateFolder(join(runtime, 'b')), `${nanoid(10)}.sock`);
  const open = new Map<Socket, BridgeConnection>();
  let lastUsed = Date.now();
  let app: Promise<BridgeApp> | undefined;

  const http = createBridgeHttp({
    mostBytes: limits.mostBytes,
    connectionOf: ({ socket }) => open.get(socket),
    execute: (input, signal) => call('execute', input, own, signal),
    others: options.data === undefined ? undefined : async () => (await openApp(options.data ?? '')).listener,
  });
  const server = createServer((socket) => {
    open.set(socket, openBridgeConnection(socket, { line: handle, http }, limits));
    socket.once('close', () => {
      open.delete(socket);
      lastUsed = Date.now();
    });
  });

  /** Loaded when it is first needed: most servers are never looked at. */
  function openApp(data: string): Promise<BridgeApp> {
    app ??= import('../workbench/bridge-app.ts').then(({ createBridgeApp }) =>
      createBridgeApp({
        sessionsOf: (of) => sessionsOf(whoseSessions.parse(of)),
        data,
        maxBody: limits.mostBytes,
        tools,
        log,
      }),
    );
    return app;
  }

  async function handle(line: string, write: WriteEvent, { gone }: BridgeConnection): Promise<void> {
    const request = parse(line);
    const sessions = sessionsOf(request.of);
    if (request.do === 'execute') return streamExecution(sessions, { ...request, signal: gone }, write);
    const answer = await call(request.tool, request.input, sessions, gone);
    write({ type: 'answer', text: answer.text, structured: answer.structured, isError: answer.isError ?? false });
  }

  function sessionsOf(whose: BridgeRequest['of']): Sessions {
    return agents && (whose === 'agents' || (whose === 'agents if any' && agents.isUsed())) ? agents.sessions : own;
  }

  async function call(name: string, input: unknown, sessions: Sessions, signal: AbortSignal): Promise<ToolAnswer> {
    const tool = tools.find((known) => known.name === name);
    if (tool) return callTool(tool, input, { sessions, origin: 'shell', signal, progress: () => {} }, log);
    const names = tools.map((known) => known.name).join(', ');
    throw new CuvetteError('invalid_input', `There is no tool ${name}. There are: ${names}.`);
  }

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(path, resolve);
  });
  const lineage = kind === 'agent' ? ancestorsUpToAgent(process.pid) : [];
  const removeRecord = writeRecord(runtime, {
    pid: process.pid,
    started: findProcess(process.pid)?.started ?? '',
    version: VERSION,
    kind,
    lineage: lineage.map(({ pid, started }) => ({ pid, started })),
    project: own.project,
    ...(agents && { url: agents.url }),
    socket: path,
  });
  own.socketPath = Promise.resolve(path);
  return {
    socket: path,
    idleSince: () => (open.size > 0 ? Date.now() : lastUsed),
    close() {
      removeRecord();
      app?.then((opened) => opened.close()).catch(() => {});
      server.close();
      rmSync(path, { force: true });
    },
  };
}

function parse(line: string): BridgeRequest {
  let request: unknown;
  try {
    request = parseGuarded(line);
  } catch (error) {
    if (error instanceof CuvetteError) throw error;
    throw new CuvetteError('invalid_input', 'The request is not JSON.', { cause: error });
  }
  refuseUnknownArguments({ name: 'the request', input: bridgeRequest }, request);
  const parsed = bridgeRequest.safeParse(request);
  if (parsed.success) return parsed.data;
  throw new CuvetteError('invalid_input', z.prettifyError(parsed.error));
}
