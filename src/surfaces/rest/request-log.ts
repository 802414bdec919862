/** One line a request, if it is wanted: never headers, bodies or secrets. */

import type { Context, MiddlewareHandler } from 'hono';
import type { Logger } from '../../log.ts';
import { outgoingOf } from './caller.ts';
import type { RestEnv } from './principal.ts';
import { hideCredentials, hideSecret } from './secrets.ts';

/** Stands first, so that it sees every answer. Lines come whatever the log's own level is: they were asked for. */
export function requestLog(log: Logger, pathSecret?: string): MiddlewareHandler<RestEnv> {
  const lines = log.child({}, { level: 'info' });
  return async (c, next) => {
    const started = performance.now();
    const outgoing = outgoingOf(c.env);
    const socket = outgoing?.socket;
    const written = socket?.bytesWritten ?? 0;
    const write = (bytes: number | null) =>
      lines.info(
        {
          method: c.req.method,
          path: hideSecret(pathOf(c), pathSecret),
          status: c.res.status,
          ms: Math.round((performance.now() - started) * 10) / 10,
          bytes,
          principal: c.get('principal')?.id ?? null,
        },
        'request',
      );
    // A stream goes on after its answer has begun: the line comes when the last byte is out.
    outgoing?.once('close', () => write(socket ? socket.bytesWritten - written : null));
    await next();
    if (!outgoing) write(lengthOf(c.res));
  };
}

function pathOf(c: Context): string {
  const { search } = new URL(c.req.url);
  return c.req.path + hideCredentials(search);
}

function lengthOf(response: Response): number | null {
  const length = response.headers.get('content-length');
  return length === null ? null : Number(length);
}
