/**
 * Serves MCP over Streamable HTTP, in both eras of the protocol: every request has an MCP server of its own, closed with its stream.
 * Access, Host and Origin checks and body limits come before it; `sessionsFor` gives each caller its sessions.
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
import { readJsonBody } from '../../json-body.ts';
import type { Logger } from '../../log.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import type { Tool } from '../../tools/define-tool.ts';
import type { LabListing } from '../../tools/lab.ts';
import type { Principal } from '../caller.ts';
import { declaresApps } from './apps.ts';
import { createMcpServer, type McpLab, type McpOptions } from './server.ts';

export interface McpHttpOptions {
  /** Returns the sessions of a caller; calls that name none use the default one. */
  sessionsFor(principal: Principal): Sessions;
  log: Logger;
  /** The lab's tools, and which callers are shown them. */
  lab?: { tools: readonly Tool[]; listingOf(principal: Principal): LabListing } | undefined;
  /** Options for every MCP server. */
  server?: Pick<McpOptions, 'structured' | 'shellCommand'>;
  /** Makes the MCP server for one request. */
  createServer?: (options: McpOptions) => McpServer;
}

export interface McpHttp {
  fetch(request: Request, principal: Principal): Promise<Response>;
  /** Interrupts running code, waits a moment for its calls to be answered, and closes what is still open. */
  close(): Promise<void>;
}

/** One request that is being answered. */
interface Exchange {
  /** The key by which a later request can cancel this one. */
  cancelKey: string | undefined;
  server: McpServer;
  /** Interrupts its code. */
  stop: AbortController;
  ended: Promise<void>;
}

/** Milliseconds; an interrupt that code ignores takes four seconds. */
const LAST_ANSWERS = 5000;
const SESSION = 'mcp-session-id';
/** The end of the session id of a client that shows apps: in the older era, only its first request says so. */
const WITH_APPS = '.apps';
/** One of the error codes that JSON-RPC leaves to servers; the HTTP status says why. */
const NOT_SERVED = -32_000;

export function createMcpHttp(options: McpHttpOptions): McpHttp {
  const { sessionsFor, log, createServer = createMcpServer } = options;
  const running = new Set<Exchange>();
  // The SDK passes `authInfo` from `fetch` to its factory, so it is the key that finds the server.
  const servers = new WeakMap<AuthInfo, McpServer>();
  let isClosed = false;

  const handler = createMcpHandler(
    ({ authInfo }) => {
      const server = authInfo && servers.get(authInfo);
      if (!server) throw new Error('This request has no server.');
      return server;
    },
    {
      // A stream carries heartbeats from the start, so that no proxy closes the connection while code runs long.
      responseMode: 'sse',
      onerror: (error) => log.debug({ err: error }, 'mcp'),
    },
  );

  async function serve(request: Request, principal: Principal, body: unknown): Promise<Response> {
    const id = isJSONRPCRequest(body) ? body.id : undefined;
    const sessions = open(principal);
    if (sessions instanceof CuvetteError) return jsonRpcError(sessions.status, NOT_SERVED, sessions.message, id);
    const lab = labFor(principal, isJSONRPCRequest(body) && body.method === 'tools/call');
    const showsApps = declaresApps(body) ?? request.headers.get(SESSION)?.endsWith(WITH_APPS) ?? false;
    const of = { sessions, lab, caller: principal.id, hasApps: () => showsApps };
    const exchange = begin(of, cancelKeyOf(request, principal, id));
    const authInfo: AuthInfo = { token: '', clientId: principal.id, scopes: [] };
    servers.set(authInfo, exchange.server);
    const response = await handler.fetch(request, { authInfo, parsedBody: body });
    // A server that was never connected is never closed.
    if (!exchange.server.isConnected()) running.delete(exchange);
    return response;
  }

  function begin(
    of: Pick<McpOptions, 'sessions' | 'lab' | 'caller' | 'hasApps'>,
    cancelKey: string | undefined,
  ): Exchange {
    const stop = new AbortController();
    const server = createServer({ ...options.server, ...of, isShared: true, log, stop: stop.signal });
    const ended = new Promise<void>((resolve) => {
      server.server.onclose = resolve;
    });
    const exchange = { cancelKey, server, stop, ended };
    running.add(exchange);
    void ended.then(() => running.delete(exchange));
    return exchange;
  }

  /** Accepts calls of tools that were not listed, because clients remember a list for longer than a service may run. */
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
   * Cancels a call for a client of the older era, which sends a notification as a request of its own instead of closing the stream.
   * The protocol's session id, which has no other use here, says whose calls the request id belongs to.
   */
  async function cancel(request: Request, principal: Principal, id: unknown): Promise<void> {
    const key = cancelKeyOf(request, principal, id);
    if (key === undefined) return;
    for (const exchange of running) if (exchange.cancelKey === key) await exchange.server.close();
  }

  return {
    async fetch(request, principal) {
      if (isClosed) return jsonRpcError(503, NOT_SERVED, 'The server is stopping. Try again in a moment.');
      if (request.method !== 'POST') return methodNotAllowed();
      if (!isJsonContentType(request.headers.get('content-type'))) return handler.fetch(request);
      const body = await read(request);
      if (body instanceof CuvetteError) return jsonRpcError(body.status, INVALID_REQUEST, body.message);
      if (body === undefined) return jsonRpcError(400, PARSE_ERROR, 'Parse error: the request body is not valid JSON');
      if (isJSONRPCNotification(body) && body.method === 'notifications/cancelled') {
        await cancel(request, principal, body.params?.requestId);
      }
      const response = await serve(request, principal, body);
      if (isInitializeRequest(body) && response.ok)
        response.headers.set(SESSION, nanoid() + (declaresApps(body) ? WITH_APPS : ''));
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

function cancelKeyOf(request: Request, principal: Principal, id: unknown): string | undefined {
  const session = request.headers.get(SESSION);
  return session === null || id === undefined ? undefined : JSON.stringify([principal.id, session, id]);
}

/** Returns the message, undefined if it is not JSON, or the error if it was refused unread. */
async function read(request: Request): Promise<unknown> {
  try {
    return (await readJsonBody(request)).parse();
  } catch (error) {
    return error instanceof CuvetteError ? error : undefined;
  }
}

/** GET and DELETE have no use here: there is no stream outside of a call, and no protocol session to end. */
function methodNotAllowed(): Response {
  const response = jsonRpcError(405, NOT_SERVED, 'Method not allowed: send messages with POST.');
  response.headers.set('allow', 'POST');
  return response;
}

function jsonRpcError(status: number, code: number, message: string, id: string | number | null = null): Response {
  return Response.json({ jsonrpc: '2.0', error: { code, message }, id }, { status });
}
