/** Defines who calls the service (the principal, set once access is granted) and detects when a caller has disconnected. */

import { ServerResponse } from 'node:http';
import type { Context } from 'hono';
import type { FileUser } from '../files/sharing.ts';
import type { ExecutionOrigin } from '../sessions/execution-record.ts';

/** Sessions and files belong to a principal. */
export interface Principal {
  id: string;
  /** The organisation that a JWT names for its user. */
  tenant?: string;
  kind: 'open' | 'key' | 'path' | 'jwt';
}

/** What every route finds on its context. */
export interface RestEnv {
  Variables: {
    principal: Principal;
    /** Set where the workbench page calls, and its cookie let it in. */
    isPage?: boolean;
  };
}

/** Set by the page on what it sends, and believed of it alone. */
const ORIGIN_HEADER = 'x-cuvette-origin';

export function originOf(c: Context<RestEnv>): ExecutionOrigin {
  return c.get('isPage') && c.req.header(ORIGIN_HEADER) === 'page' ? 'page' : 'rest';
}

export function userOf({ id, tenant }: Principal): FileUser {
  return { owner: id, tenant };
}

/** Returns a signal that is aborted when the connection closes before the answer was sent whole. */
export function goneSignal(c: Context): AbortSignal {
  const outgoing = outgoingOf(c.env);
  // Only in process: reading the signal of a request that came over the network would build a whole web Request first.
  if (!outgoing) return c.req.raw.signal;
  const gone = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** Returns Node's response object; there is none when the app is called in process. */
export function outgoingOf(env: unknown): ServerResponse | undefined {
  if (typeof env !== 'object' || env === null || !('outgoing' in env)) return undefined;
  return env.outgoing instanceof ServerResponse ? env.outgoing : undefined;
}
