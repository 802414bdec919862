/** Logs one line for each request, with the beginning of a JSON body, but never headers or secrets. */

import type { Context, MiddlewareHandler } from 'hono';
import type { Config } from '../../config.ts';
import { beginningOf } from '../../json-body.ts';
import type { Logger } from '../../log.ts';
import { outgoingOf, type RestEnv } from '../caller.ts';
import { hidePathSecret, hideQueryCredentials, hideSecretsInText } from './redaction.ts';

type Secrets = Pick<Partial<Config>, 'apiKey' | 'pathSecret'>;

const LONGEST_PREVIEW = 500;

/** Must be the first middleware, to see every answer. Logs whatever the log's level is, because it was asked for. */
export function requestLog(log: Logger, { apiKey, pathSecret }: Secrets = {}): MiddlewareHandler<RestEnv> {
  const secrets = [apiKey, pathSecret].filter((secret) => secret !== undefined);
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
          path: hidePathSecret(pathOf(c), pathSecret),
          status: c.res.status,
          ms: Math.round((performance.now() - started) * 10) / 10,
          bytes,
          principal: c.get('principal')?.id ?? null,
          body: previewOf(c.req.raw, secrets),
        },
        'request',
      );
    // The line of a stream is written when its last byte is sent.
    outgoing?.once('close', () => write(socket ? socket.bytesWritten - written : null));
    await next();
    if (!outgoing) write(lengthOf(c.res));
  };
}

/** Redacts secrets before cutting, because half of a secret is one, too. */
function previewOf(request: Request, secrets: string[]): string | undefined {
  const hidden = hideSecretsInText(beginningOf(request) ?? '', secrets);
  if (hidden === '') return undefined;
  return hidden.length > LONGEST_PREVIEW ? `${hidden.slice(0, LONGEST_PREVIEW)}…` : hidden;
}

function pathOf(c: Context): string {
  const { search } = new URL(c.req.url);
  return c.req.path + hideQueryCredentials(search);
}

function lengthOf(response: Response): number | null {
  const length = response.headers.get('content-length');
  return length === null ? null : Number(length);
}
