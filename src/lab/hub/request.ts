/** Sends requests to the hub, with retries. Redirects never carry the token to another host. SessionQueue refusals into errors. */

import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError, messageOf } from '../../errors.ts';
import { isLoopback } from '../../loopback.ts';
import type { Repository } from './names.ts';

const ENDPOINT = 'https://huggingface.co';
const TRIES = 5;
/** Milliseconds before the first retry, and until a silent connection times out. */
const PAUSE = 1000;
const PATIENCE = 60_000;
const HOPS = 10;

/** Errors that mean that the hub is unreachable, and that a retry a second later would not change. */
const NOT_THERE = new Set([
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
]);

export interface Hub {
  /** Without a slash at its end. */
  endpoint: string;
  token: string | undefined;
  fetch: typeof fetch;
  /** Milliseconds before the second try; each further one waits twice as long. */
  pause: number;
  /** Milliseconds without a byte after which a connection counts as cut. */
  patience: number;
}

export interface HubOptions {
  /** Sent to the hub's own host alone; HF_TOKEN by default. */
  token?: string;
  env?: NodeJS.ProcessEnv;
  fetch?: typeof fetch;
  pause?: number;
  patience?: number;
}

export interface HubRequest {
  method?: 'GET' | 'HEAD';
  headers?: Record<string, string>;
  /** Does not follow redirects to other hosts. */
  stay?: boolean;
  signal: AbortSignal;
}

type Reply = { kind: 'answer'; response: Response } | { kind: 'unreachable'; why: string };

export function openHub(options: HubOptions): Hub {
  const env = options.env ?? process.env;
  const given = env.HF_ENDPOINT || ENDPOINT;
  const endpoint = URL.canParse(given) ? new URL(given) : undefined;
  if (!endpoint || !/^https?:$/.test(endpoint.protocol)) {
    throw new CuvetteError(
      'invalid_input',
      `HF_ENDPOINT is ${JSON.stringify(given)}, which is no address. Set it to one as ${ENDPOINT}, or unset it.`,
    );
  }
  return {
    endpoint: endpoint.href.replace(/\/+$/, ''),
    token: isPrivate(endpoint) ? options.token || env.HF_TOKEN || undefined : undefined,
    fetch: options.fetch ?? fetch,
    pause: options.pause ?? PAUSE,
    patience: options.patience ?? PATIENCE,
  };
}

/** Retries until there is an answer that another try would not change. */
export async function ask(hub: Hub, url: string, request: HubRequest): Promise<Reply> {
  let why = '';
  for (let tries = 0; tries < TRIES; tries++) {
    if (tries > 0) await sleep(hub.pause * 2 ** (tries - 1), undefined, { signal: request.signal });
    try {
      const response = await send(hub, url, request);
      if (!isTransient(response.status)) return { kind: 'answer', response };
      await response.body?.cancel();
      why = `it answered ${response.status}`;
    } catch (error) {
      request.signal.throwIfAborted();
      if (error instanceof CuvetteError) throw error;
      why = fetchFailure(error);
      if (isNobodyThere(error)) break;
    }
  }
  return { kind: 'unreachable', why };
}

/** One try. Fails if the connection does. */
export async function send(hub: Hub, url: string, request: HubRequest): Promise<Response> {
  let target = new URL(url);
  for (let hops = 0; hops < HOPS; hops++) {
    const isHub = target.origin === new URL(hub.endpoint).origin;
    const headers = new Headers({ 'accept-encoding': 'identity', 'user-agent': 'cuvette', ...request.headers });
    if (isHub && hub.token) headers.set('authorization', `Bearer ${hub.token}`);
    const { method = 'GET', signal } = request;
    const response = await hub.fetch(target, { method, headers, redirect: 'manual', signal });
    const location = response.headers.get('location');
    if (response.status < 300 || response.status > 399 || location === null) return response;
    const next = new URL(location, target);
    const isOtherOrigin = next.origin !== target.origin;
    if (request.stay && isOtherOrigin) return response;
    await response.body?.cancel();
    if (next.protocol !== 'https:' && (next.protocol !== 'http:' || target.protocol === 'https:')) {
      throw new CuvetteError(
        'download_failed',
        `${target.origin} redirects to ${next.protocol}//${next.host}, which is not safe to follow.`,
      );
    }
    target = next;
  }
  throw new CuvetteError('download_failed', `${url} redirects more than ${HOPS} times.`);
}

export function isTransient(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}

/** SessionQueue a refusal of the hub into an error that says what to do. */
export function refusedByHub(hub: Hub, repository: Repository, revision: string, response: Response): CuvetteError {
  const { host } = new URL(hub.endpoint);
  const page = `${hub.endpoint}/${repository.id}`;
  const code = response.headers.get('x-error-code');
  const isRefused = response.status === 401 || response.status === 403;
  if (code === 'RevisionNotFound') {
    const message = `${repository.id} has no revision ${revision} on ${host}. See its branches and tags at ${page}.`;
    return new CuvetteError('unknown_model', message);
  }
  if (code === 'GatedRepo') {
    const next = hub.token
      ? 'with the account that the token in HF_TOKEN belongs to, then try again'
      : 'then set HF_TOKEN to a token from https://huggingface.co/settings/tokens';
    return new CuvetteError(
      'download_failed',
      `${host} gives ${repository.id} only to those who have accepted its terms. Accept them at ${page}, ${next}.`,
    );
  }
  if (isRefused && hub.token && code === null) {
    return new CuvetteError(
      'download_failed',
      `${host} did not accept the token in HF_TOKEN. Make another at https://huggingface.co/settings/tokens; public models need none.`,
    );
  }
  if (isRefused || (response.status === 404 && code !== 'EntryNotFound')) {
    return new CuvetteError(
      'unknown_model',
      `There is no ${repository.id} on ${host}, or it is private. Check the id at ${page}; for a private one, set HF_TOKEN to a token of yours.`,
    );
  }
  const told = response.headers.get('x-error-message');
  return new CuvetteError(
    'download_failed',
    `${host} answered ${response.status} when asked for ${repository.id}${told ? `: ${told.slice(0, 200)}` : ''}. Try again later.`,
  );
}

/** Why fetch failed, which is in its cause, perhaps as a list of all addresses that were tried. */
export function fetchFailure(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  if (cause instanceof AggregateError && cause.errors.length > 0) return messageOf(cause.errors[0]);
  return messageOf(cause ?? error);
}

function isNobodyThere(error: unknown): boolean {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error && 'code' in cause && NOT_THERE.has(String(cause.code));
}

/** Whether a token can be sent: encrypted, or on this machine. */
function isPrivate(url: URL): boolean {
  return url.protocol === 'https:' || isLoopback(url.hostname.replace(/^\[|\]$/g, ''));
}
