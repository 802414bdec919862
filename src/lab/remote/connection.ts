/** Sends requests to a remote Cuvette with its token, notices when it falls silent, and turns refusals into errors. Trying again is left to others. */

import { CuvetteError } from '../../errors.ts';
import { isLoopback } from '../../loopback.ts';
import { readServerSentEvents, type ServerSentEvent } from '../../server-sent-events.ts';
import { linesIn, readJsonLines } from './event-reader.ts';
import { EVENTS as JSON_LINES } from './lab-protocol.ts';
import { lostBy, notCuvette, type Remote, refusal } from './remote-errors.ts';

export interface RemoteRequest {
  method: 'GET' | 'POST' | 'DELETE';
  path: string;
  headers?: Record<string, string>;
  /** Sent as JSON. */
  body?: unknown;
}

export interface Connection {
  readonly remote: Remote;
  /** The name of the process that answered last. */
  readonly instance: string | undefined;
  /** Gives the answer, if it is a good one. */
  send(request: RemoteRequest, signal: AbortSignal): Promise<Response>;
  /** The events of the answer. Whoever asks for them reads some. */
  open(request: RemoteRequest, signal: AbortSignal): Promise<AsyncIterable<ServerSentEvent>>;
}

export interface ConnectionOptions {
  remote: Remote;
  token: string | undefined;
  /** The header in which it names its process. */
  instanceHeader: string;
  /** Milliseconds without even a heartbeat, after which a connection is dead: a cable that was pulled says nothing. */
  silence: number;
}

const SERVER_SENT_EVENTS = 'text/event-stream';
/** Bytes a millisecond: a line that takes a request more slowly is taken for dead. */
const SLOWEST = 20;

export function createConnection({ remote, token, instanceHeader, silence }: ConnectionOptions): Connection {
  const base = parseEndpoint(remote.endpoint);
  let instance: string | undefined;

  async function send({ method, path, headers, body }: RemoteRequest, signal: AbortSignal): Promise<Response> {
    const response = await fetch(`${base}${path}`, {
      method,
      headers: {
        accept: `application/json, ${SERVER_SENT_EVENTS}`,
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // A token must not be sent to another address.
      redirect: 'manual',
      signal,
    }).catch((error: unknown) => {
      throw lostBy(error);
    });
    instance = response.headers.get(instanceHeader) ?? instance;
    if (response.ok) return response;
    throw await refusal(response, remote);
  }

  return {
    remote,
    get instance() {
      return instance;
    },
    send,
    async open(request, signal) {
      const silent = new AbortController();
      const wait = (milliseconds: number) =>
        setTimeout(() => silent.abort(new Error('nothing came from it any more')), milliseconds);
      let timer = wait(silence + JSON.stringify(request.body ?? '').length / SLOWEST);
      const isAlive = () => {
        clearTimeout(timer);
        timer = wait(silence);
      };
      try {
        const response = await send(request, AbortSignal.any([signal, silent.signal]));
        const type = response.headers.get('content-type') ?? 'no content type';
        const isJsonLines = type.includes(JSON_LINES);
        if (!response.body || !(isJsonLines || type.includes(SERVER_SENT_EVENTS)))
          throw notCuvette(remote, `it answered with status ${response.status} and ${type}`);
        isAlive();
        const lines = linesIn(response.body, isAlive);
        return untilLost(isJsonLines ? readJsonLines(lines) : readServerSentEvents(lines), () => clearTimeout(timer));
      } catch (error) {
        clearTimeout(timer);
        throw error;
      }
    },
  };
}

async function* untilLost(events: AsyncIterable<ServerSentEvent>, close: () => void): AsyncGenerator<ServerSentEvent> {
  try {
    yield* events;
  } catch (error) {
    throw lostBy(error);
  } finally {
    close();
  }
}

/** Without a slash at its end. A token that goes over a network in the clear is anybody's. */
function parseEndpoint(endpoint: string): string {
  if (!URL.canParse(endpoint))
    throw new CuvetteError('invalid_input', `${endpoint} is no address. Give one as in https://host:8787.`);
  const url = new URL(endpoint);
  if (url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[(.*)\]$/, '$1')))
    throw new CuvetteError(
      'invalid_input',
      `${endpoint} is not encrypted, so that others could read the token. Use https, or a tunnel that ends on this machine: ssh -L 8787:127.0.0.1:8787 HOST`,
    );
  if (url.username || url.password || url.search || url.hash)
    throw new CuvetteError('invalid_input', `Give the address alone, as in https://host:8787, and the token as token.`);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
