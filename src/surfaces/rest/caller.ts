/** Whether the caller is still there. */

import { ServerResponse } from 'node:http';
import type { Context } from 'hono';

/** Aborted when the connection ends before the answer does. */
export function goneSignal(c: Context): AbortSignal {
  const outgoing = outgoingOf(c.env);
  // Only in process: to ask the request itself, Node's would first have to be made into a web request as a whole.
  if (!outgoing) return c.req.raw.signal;
  const gone = new AbortController();
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort();
  });
  return gone.signal;
}

/** Node's side of the request; there is none when the app is called in process. */
export function outgoingOf(env: unknown): ServerResponse | undefined {
  if (typeof env !== 'object' || env === null || !('outgoing' in env)) return undefined;
  return env.outgoing instanceof ServerResponse ? env.outgoing : undefined;
}
