/**
 * Rejects requests that another site's web page makes through a user's browser: by DNS rebinding, which the Host header shows, and
 * across origins (CSRF), which the Origin header shows. Allowed origins get CORS headers.
 */

import type { MiddlewareHandler } from 'hono';
import { cors } from 'hono/cors';
import type { Config } from '../../config.ts';
import { CuvetteError } from '../../errors.ts';
import { isLoopback } from '../../loopback.ts';
import type { RestEnv } from '../caller.ts';
import { isProtected, isPublic } from './access.ts';

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];
const READING = ['GET', 'HEAD', 'OPTIONS'];
const EXPOSED = ['Content-Disposition', 'Content-Length', 'ETag', 'Mcp-Session-Id', 'Retry-After', 'WWW-Authenticate'];
const PREFLIGHT_AGE = 600;

/** Runs before access control, because a CORS preflight carries no credential. `others` are names to answer to beside this machine's own. */
export function checkHostAndOrigin(config: Config, others: () => string[] = () => []): MiddlewareHandler<RestEnv> {
  const { corsOrigins } = config;
  const isForAll = corsOrigins.includes('*');
  const allow = cors({
    origin: isForAll ? '*' : corsOrigins,
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposeHeaders: EXPOSED,
    maxAge: PREFLIGHT_AGE,
  });
  // DNS rebinding gains a page nothing where callers must show a credential.
  const hosts =
    isLoopback(config.host) && !isProtected(config)
      ? [...new Set([...LOCAL_NAMES, bracketed(config.host)])]
      : undefined;

  return async (c, next) => {
    const host = c.req.header('host') ?? new URL(c.req.url).host;
    const names = hosts && [...hosts, ...others()];
    if (names && !names.includes(nameOf(host))) {
      throw new CuvetteError(
        'forbidden',
        `This service does not answer to the name ${JSON.stringify(host)}, which a web page could have pointed here. ` +
          `Use one of these: ${names.join(', ')}. A proxy in front must send such a Host header.`,
      );
    }
    const origin = c.req.header('origin');
    if (origin === undefined || isOwn(origin, host)) return next();
    if (isForAll || corsOrigins.includes(origin)) return allow(c, next);
    if (READING.includes(c.req.method) && isPublic(c.req.path)) return next();
    throw new CuvetteError(
      'forbidden',
      `A web page of ${JSON.stringify(origin)} may not use this service. ` +
        'To let it, add its origin to --cors-origins (CUVETTE_CORS_ORIGINS).',
    );
  };
}

/** Returns the name in a Host header without the port, or nothing if it is malformed. */
function nameOf(host: string): string {
  return /^(\[[\da-f:.]+\]|[^:@/\s[\]]+)(:\d+)?$/i.exec(host)?.[1]?.toLowerCase() ?? '';
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host.toLowerCase();
}

/** The scheme does not count, because a proxy in front may speak TLS where the service does not. */
function isOwn(origin: string, host: string): boolean {
  if (!/^https?:\/\//.test(origin) || !URL.canParse(origin)) return false;
  const { protocol, host: from } = new URL(origin);
  const here = `${protocol}//${host}`;
  return URL.canParse(here) && new URL(here).host === from;
}
