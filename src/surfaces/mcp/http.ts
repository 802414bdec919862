/**
 * MCP over Streamable HTTP, in both eras: every request has an MCP server of its own, and ends it when its stream is closed.
 * Access, guards and body limits come before it; which sessions a caller has is decided by `sessionsFor`.
 */

import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AuthInfo,
  createMcpHandler,
  INVALID_REQUEST,
  isInitializeRequest,
  isJSONRPCNotification,
  isJSONRPCRequest,
  isJsonContentType,
  type McpServer,
  PARSE_ERROR,
} from '@modelcontextprotocol/server';
import { nanoid } from 'nanoid';
import { CuvetteError, toCuvetteError } from '../../errors.ts';
import { readJsonBody } from '../../json-guard.ts';
import type { Logger } from '../../log.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import type { Tool } from '../../tools/define-tool.ts';
import type { LabListing } from '../../tools/lab-listing.ts';
import type { Principal } from '../rest/caller.ts';
import { createMcpServer, type McpLab, type McpOptions } from './server.ts';

export interface McpHttpOptions {
  /** The sessions of a caller; its default one is for calls that name none. */
  sessionsFor(principal: Principal): Sessions;
  log: Logger;
  /** Of the lab, where callers have one: its tools, and which callers are shown them. */
  lab?: { tools: readonly Tool[]; listingOf(principal: Principal): LabListing } | undefined;
  /** As for any server of MCP. */
  server?: Pick<McpOptions, 'structured' | 'shellCommand'>;
  /** Makes the MCP server for one request. */
  createServer?: (options: McpOptions) => McpServer;
}

export interface McpHttp {
  fetch(request: Request, principal: Principal): Promise<Response>;
  /** Interrupts the code that runs, lets its calls be answered, and closes what is still open then. */
  close(): Promise<void>;
}

/** One request that is being answered. */
interface Exchange {
  /** How a later request can name this one in order to cancel it. */
  name: string | undefined;
  server: McpServer;
  /** Interrupts its code. */
  stop: AbortController;
  ended: Promise<void>;
}

/** Milliseconds; an interrupt that code ignores takes four seconds. */
const LAST_ANSWERS = 5000;
const SESSION = 'mcp-session-id';
/** Of the codes that JSON-RPC leaves to servers: the HTTP status says why. */
const NOT_SERVED = -32_000;

export function createMcpHttp(options: McpHttpOptions): McpHttp {
  const { sessionsFor, log, createServer = createMcpServer } = options;
  const running = new Set<Exchange>();
  // Access is what the SDK passes on from `fetch` to its factory, so a server is found by it.
  const servers = new WeakMap<AuthInfo, McpServer>();
  let isClosed = false;

  const handler = createMcpHandler(
    ({ authInfo }) => {
      const server = authInfo && servers.get(authInfo);
      if (!server) throw new Error('This request has no server.');
      return server;
    },
    {
      // A stream has signs of life in it from the start, so that no proxy takes code that runs long for a dead connection.
      responseMode: 'sse',
      onerror: (error) => log.debug({ err: error }, 'mcp'),
    },
  );

  async function serve(request: Request, principal: Principal, body: unknown): Promise<Response> {
    const id = isJSONRPCRequest(body) ? body.id : undefined;
    const sessions = open(principal);
    if (sessions instanceof CuvetteError) return refusal(sessions.status, NOT_SERVED, sessions.message, id);
    const lab = labFor(principal, isJSONRPCRequest(body) && body.method === 'tools/call');
    const exchange = begin({ sessions, lab, caller: principal.id }, nameOf(request, principal, id));
    const authInfo: AuthInfo = { token: '', clientId: principal.id, scopes: [] };
    servers.set(authInfo, exchange.server);
    const response = await handler.fetch(request, { authInfo, parsedBody: body });
    // One that was refused before it was connected is never closed.
    if (!exchange.server.isConnected()) running.delete(exchange);
    return response;
  }

  function begin(of: Pick<McpOptions, 'sessions' | 'lab' | 'caller'>, name: string | undefined): Exchange {
    const stop = new AbortController();
    const server = createServer({ ...options.server, ...of, isShared: true, log, stop: stop.signal });
    const ended = new Promise<void>((resolve) => {
      server.server.onclose = resolve;
    });
    const exchange = { name, server, stop, ended };
    running.add(exchange);
    void ended.then(() => running.delete(exchange));
    return exchange;
  }

  /** A tool can be called by who has not been shown it: clients remember a list for longer than a service may run. */
  function labFor(principal: Principal, isCall: boolean): McpLab | undefined {
    if (!options.lab) return undefined;
    const listing = options.lab.listingOf(principal);
    return {
      tools: options.lab.tools,
      listing: isCall ? { isOpen: () => true, open: listing.open } : listing,
      onListed: () => handler.notify.toolsChanged(),
    };
  }

  function open(principal: Principal): Sessions | CuvetteError {
    try {
      return sessionsFor(principal);
    } catch (error) {
      const known = toCuvetteError(error);
      if (known.code === 'internal') log.error({ err: error }, 'mcp');
      return known;
    }
  }

  /**
   * A client of the older era that cancels a call does not close its stream: it sends a notification, as a request of its own.
   * The session id, which stands for nothing else here, tells whose calls the number in it belongs to.
   */
  async function cancel(request: Request, principal: Principal, id: unknown): Promise<void> {
    const name = nameOf(request, principal, id);
    if (name === undefined) return;
    for (const exchange of running) if (exchange.name === name) await exchange.server.close();
  }

  return {
    async fetch(request, principal) {
      if (isClosed) return refusal(503, NOT_SERVED, 'The server is stopping. Try again in a moment.');
      if (request.method !== 'POST') return methodNotAllowed();
      if (!isJsonContentType(request.headers.get('content-type'))) return handler.fetch(request);
      const body = await read(request);
      if (body instanceof CuvetteError) return refusal(body.status, INVALID_REQUEST, body.message);
      if (body === undefined) return refusal(400, PARSE_ERROR, 'Parse error: the request body is not valid JSON');
      if (isJSONRPCNotification(body) && body.method === 'notifications/cancelled') {
        await cancel(request, principal, body.params?.requestId);
      }
      const response = await serve(request, principal, body);
      if (isInitializeRequest(body) && response.ok) response.headers.set(SESSION, nanoid());
      return response;
    },
    async close() {
      isClosed = true;
      for (const { stop } of running) stop.abort();
      const answered = Promise.all([...running].map(({ ended }) => ended));
      await Promise.race([answered, sleep(LAST_ANSWERS, undefined, { ref: false })]);
      await Promise.all([...running].map(({ server }) => server.close()));
      await handler.close();
    },
  };
}

function nameOf(request: Request, principal: Principal, id: unknown): string | undefined {
  const session = request.headers.get(SESSION);
  return session === null || id === undefined ? undefined : JSON.stringify([principal.id, session, id]);
}

/** The message, nothing if it is not JSON, or why it is not read. */
async function read(request: Request): Promise<unknown> {
  try {
    return JSON.parse(await readJsonBody(request));
  } catch (error) {
    return error instanceof CuvetteError ? error : undefined;
  }
}

/** There is no stream to open outside of a call, and no session of the protocol to end. */
function methodNotAllowed(): Response {
  const response = refusal(405, NOT_SERVED, 'Method not allowed: send messages with POST.');
  response.headers.set('allow', 'POST');
  return response;
}

function refusal(status: number, code: number, message: string, id: string | number | null = null): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id }, { status });
}
