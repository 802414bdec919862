/** Connects code that may reach some hosts only: an HTTP proxy on a Unix socket, which asks the allow-list before it connects. */

import { lookup as lookUp } from 'node:dns/promises';
import { once } from 'node:events';
import { chmodSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { connect, isIP, isIPv6, type Socket } from 'node:net';
import { networkInterfaces } from 'node:os';
import { type Duplex, pipeline } from 'node:stream';
import { messageOf } from '../errors.ts';
import { type AllowList, allows, isPublicAddress, namesAddress, normalHost, splitPort } from './allow-list.ts';

export interface Proxy {
  close(): Promise<void>;
}

export interface ProxyOptions {
  /** In a folder that only this user can enter. What is left there of an earlier proxy is replaced. */
  socket: string;
  allow: AllowList;
  /** Told of everything that was refused or failed. */
  log?: (line: string) => void;
  lookup?: (host: string) => Promise<{ address: string }[]>;
  limits?: Partial<typeof LIMITS>;
}

interface Target {
  host: string;
  port: number;
}

interface Reached {
  target: Target;
  upstream: Socket;
}

/** An answer of the proxy itself: one sentence, in the body and in the status line, because many clients show only that. */
interface Refusal {
  status: number;
  text: string;
}

const LIMITS = {
  connections: 256,
  /** Milliseconds to find the address and to connect. */
  connect: 10_000,
  /** Milliseconds in which nothing moves. */
  idle: 300_000,
};

/** Headers that concern one connection only, or that the proxy has answered itself. */
const NOT_PASSED_ON = [
  'connection',
  'expect',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

export async function openProxy({ socket, allow, log, ...options }: ProxyOptions): Promise<Proxy> {
  const limits = { ...LIMITS, ...options.limits };
  const lookup = options.lookup ?? ((host: string) => lookUp(host, { all: true }));
  const clients = new Set<Duplex>();
  const surplus = new WeakSet<Duplex>();

  const server = createServer({ requireHostHeader: false });
  server.timeout = limits.idle;
  server.requestTimeout = 0; // A large upload over a slow line takes its time; headers do not.
  server.maxConnections = limits.connections * 2; // There is no telling everybody that there are too many.

  server.on('connection', (client) => {
    if (clients.size >= limits.connections) surplus.add(client);
    clients.add(client);
    client.once('close', () => clients.delete(client));
  });

  server.on('connect', async (asked, client, head) => {
    client.on('error', () => {}); // It is closed then, which is what counts.
    const reached = await reach(readTarget(asked.url ?? ''), client);
    if ('status' in reached) {
      client.end(inFull(reached), () => client.destroy());
      return;
    }
    client.write('HTTP/1.1 200 Connection established\r\n\r\n');
    reached.upstream.write(head);
    join(client, reached.upstream);
  });

  server.on('request', async (asked, answer) => {
    const [, authority = '', path = ''] = /^http:\/\/([^/?#]*)([^#]*)/i.exec(asked.url ?? '') ?? [];
    const reached = await reach(readTarget(authority, 80), asked.socket);
    if ('status' in reached) return refuse(answer, reached);
    const failed = (error: unknown) => {
      const isOver = answer.writableEnded || answer.destroyed;
      if (!isOver) refuse(answer, noted(failure(reached.target, error)));
    };
    forward(asked, answer, path, reached, failed);
  });

  /** A connection to the target for this client, or why there is none to be had. */
  async function reach(target: Target | undefined, client: Duplex): Promise<Reached | Refusal> {
    if (surplus.has(client)) {
      return noted({ status: 503, text: `There are ${limits.connections} connections already: try again later.` });
    }
    if (!target) {
      return noted({ status: 400, text: 'This proxy takes CONNECT host:port and http://host/path, nothing else.' });
    }
    if (allows(allow, target.host, target.port) === 'no') {
      return noted(forbidden(target, 'it is not among the hosts of --network (CUVETTE_NETWORK)'));
    }
    const attempt = new AbortController();
    const timer = setTimeout(() => attempt.abort(tooLate()), limits.connect);
    const leave = () => attempt.abort(new Error('the client has gone'));
    client.once('close', leave);
    try {
      const found = await addressesOf(target.host, attempt.signal);
      const usable = found.filter((address) => isUsable(address, target.port));
      if (usable.length === 0) {
        const why = `it is at ${found[0]}, which is this machine or not on the public internet, and --network (CUVETTE_NETWORK) does not name that address`;
        return noted(forbidden(target, why));
      }
      const upstream = await connectToFirst(usable, target.port, limits.connect / usable.length, attempt.signal);
      upstream.setTimeout(limits.idle);
      if (client.destroyed) upstream.destroy();
      return { target, upstream };
    } catch (error) {
      return noted(failure(target, error));
    } finally {
      clearTimeout(timer);
      client.off('close', leave);
    }
  }

  async function addressesOf(host: string, signal: AbortSignal): Promise<string[]> {
    if (isIP(host)) return [host];
    const found = await unless(signal, () => lookup(host));
    if (found.length === 0) throw new Error('it has no address');
    return found.map(({ address }) => address);
  }

  function isUsable(address: string, port: number): boolean {
    return namesAddress(allow, address, port) || (isPublicAddress(address) && !isOwnAddress(address));
  }

  function failure(target: Target, error: unknown): Refusal {
    const isLate = error instanceof Error && 'code' in error && error.code === 'ETIMEDOUT';
    return { status: isLate ? 504 : 502, text: `${authorityOf(target)} cannot be reached: ${messageOf(error)}.` };
  }

  function noted(refusal: Refusal): Refusal {
    log?.(`${refusal.status} ${refusal.text}`);
    return refusal;
  }

  rmSync(socket, { force: true });
  await once(server.listen(socket), 'listening');
  chmodSync(socket, 0o600);
  server.on('error', (error) => log?.(messageOf(error)));

  return {
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      for (const client of clients) client.destroy();
      return closed;
    },
  };
}

function readTarget(authority: string, usualPort?: number): Target | undefined {
  const split = splitPort(authority);
  const host = split && normalHost(split.host);
  const port = split?.port ?? usualPort;
  return host === undefined || port === undefined ? undefined : { host, port };
}

function authorityOf({ host, port }: Target, usualPort?: number): string {
  const name = isIPv6(host) ? `[${host}]` : host;
  return port === usualPort ? name : `${name}:${port}`;
}

/** A public address may still be this machine's, where a firewall lets in what comes from inside. */
function isOwnAddress(address: string): boolean {
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return own.some((one) => normalHost(one.address) === normalHost(address));
}

/** Tries one address after the other, each for its share of the time. */
async function connectToFirst(hosts: string[], port: number, share: number, signal: AbortSignal): Promise<Socket> {
  let problem: unknown;
  for (const host of hosts) {
    const upstream = connect({ host, port, allowHalfOpen: true, noDelay: true });
    upstream.on('error', () => {}); // It is closed then, which is what counts.
    upstream.setTimeout(share, () => upstream.destroy(tooLate()));
    try {
      await unless(signal, () => once(upstream, 'connect'));
      return upstream;
    } catch (error) {
      upstream.destroy();
      signal.throwIfAborted();
      problem = error;
    }
  }
  throw problem;
}

/** What the work gives, unless the signal comes first. */
async function unless<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const done = new AbortController();
  const stopped = once(signal, 'abort', { signal: done.signal }).then(() => Promise.reject(signal.reason));
  try {
    return await Promise.race([work(), stopped]);
  } finally {
    done.abort();
  }
}

/** Passes bytes both ways. Either side may end its half; when one is gone, the other goes too, after it has sent what it was given. */
function join(client: Duplex, upstream: Socket): void {
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.pipe(other);
    one.once('close', () => {
      if (!other.writableEnded || !other.readableEnded) other.destroy();
    });
  }
}

/** Sends a request on, and its answer back. The connection is for this one only. */
function forward(
  asked: IncomingMessage,
  answer: ServerResponse,
  path: string,
  { target, upstream }: Reached,
  failed: (error: unknown) => void,
): void {
  answer.once('close', () => {
    asked.unpipe();
    asked.resume(); // So that the client's next request is read, even if this one was answered early.
    upstream.destroy();
  });
  try {
    const passed = request({
      createConnection: () => upstream,
      method: asked.method,
      path: path.startsWith('/') ? path : `/${path}`,
    });
    passed.on('error', failed);
    passed.on('upgrade', () => failed(new Error('it changes the protocol unasked')));
    passed.on('response', (got) => {
      try {
        answer.writeHead(got.statusCode ?? 502, got.statusMessage, passedOn(got).flat());
        pipeline(got, answer, () => {});
      } catch (error) {
        failed(error); // Node reads some headers that it does not write.
      }
    });
    for (const [name, value] of passedOn(asked)) passed.appendHeader(name, value);
    passed.setHeader('host', authorityOf(target, 80));
    const { 'transfer-encoding': coding, 'content-length': length } = asked.headers;
    if (coding) passed.setHeader('transfer-encoding', coding);
    if (coding || length) passed.flushHeaders(); // The body may be long in coming.
    asked.pipe(passed);
  } catch (error) {
    failed(error);
  }
}

/** The headers that the next one is to see. */
function passedOn({ headers, rawHeaders }: IncomingMessage): [string, string][] {
  const named = (headers.connection ?? '').toLowerCase().split(/[\s,]+/);
  const dropped = new Set([...NOT_PASSED_ON, ...named]);
  dropped.delete('content-length'); // Without it the body's end could be anywhere.
  const kept: [string, string][] = [];
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const [name = '', value = ''] = rawHeaders.slice(index, index + 2);
    if (!dropped.has(name.toLowerCase())) kept.push([name, value]);
  }
  return kept;
}

function forbidden(target: Target, why: string): Refusal {
  return { status: 403, text: `Code may not reach ${authorityOf(target)}: ${why}.` };
}

function refuse(answer: ServerResponse, { status, text }: Refusal): void {
  if (answer.headersSent) {
    answer.destroy(); // The client sees that the rest is missing.
    return;
  }
  answer.writeHead(status, printable(text), refusalHeaders(text)).end(`${text}\n`);
}

/** The same answer where Node has handed over the bare connection. */
function inFull({ status, text }: Refusal): string {
  const headers = Object.entries(refusalHeaders(text)).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} ${printable(text)}`, ...headers, '', `${text}\n`].join('\r\n');
}

function refusalHeaders(text: string): Record<string, string> {
  return {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': String(Buffer.byteLength(text) + 1),
    connection: 'close',
  };
}

function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]+/g, ' ');
}

function tooLate(): Error {
  return Object.assign(new Error('it did not answer in time'), { code: 'ETIMEDOUT' });
}
