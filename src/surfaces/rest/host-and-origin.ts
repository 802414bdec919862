/** What keeps web pages of others from using a service on this machine through its user's browser; and the limits of a body. */

import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { cors } from 'hono/cors';
import type { Config } from '../../config.ts';
import { CuvetteError } from '../../errors.ts';
import { readJsonBody } from '../../json-guard.ts';
import { isLoopback } from '../../loopback.ts';
import { isProtected, isPublic } from './access.ts';
import type { RestEnv } from './caller.ts';

const LOCAL_NAMES = ['localhost', '127.0.0.1', '[::1]'];
const READING = ['GET', 'HEAD', 'OPTIONS'];
const EXPOSED = ['Content-Disposition', 'Content-Length', 'ETag', 'Mcp-Session-Id', 'Retry-After', 'WWW-Authenticate'];
const PREFLIGHT_AGE = 600;

/** Stands before access: a browser asks for leave without a credential. Beside this machine's names, `others` are answered to. */
export function createGuards(config: Config, others: () => string[] = () => []): MiddlewareHandler<RestEnv> {
  const { corsOrigins } = config;
  const isForAll = corsOrigins.includes('*');
  const allow = cors({
    origin: isForAll ? '*' : corsOrigins,
    allowMethods: ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE'],
    exposeHeaders: EXPOSED,
    maxAge: PREFLIGHT_AGE,
  });
  // With a credential to show, a page that points a name of its own here gains nothing.
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

/** For requests that are held in memory; an upload has limits of its own. */
export function limitBody(maxSize: number): MiddlewareHandler {
  const refuse = () => {
    throw new CuvetteError(
      'too_large',
      `The body of the request is larger than ${maxSize} bytes. Send less, upload it as a file, or raise --max-body (CUVETTE_MAX_BODY).`,
    );
  };
  const count = bodyLimit({ maxSize, onError: refuse });
  return (c, next) => {
    const length = c.req.header('content-length');
    // To count, Node's request must be made into a web request as a whole; a length that is told is one that Node sees kept.
    if (length === undefined) return count(c, next);
    return Number(length) > maxSize ? refuse() : next();
  };
}

/** A body that says it is JSON is looked at before any route parses it. */
export function guardJson(): MiddlewareHandler {
  return async (c, next) => {
    if (!/json/i.test(c.req.header('content-type') ?? '')) return next();
    const text = await readJsonBody(c.req.raw);
    c.req.json = async () => JSON.parse(text);
    return next();
  };
}

/** The name in a Host header, without the port; empty for what is none. */
function nameOf(host: string): string {
  return /^(\[[\da-f:.]+\]|[^:@/\s[\]]+)(:\d+)?$/i.exec(host)?.[1]?.toLowerCase() ?? '';
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host.toLowerCase();
}

/** A proxy in front may speak TLS where the service does not, so the scheme does not count. */
function isOwn(origin: string, host: string): boolean {
  if (!/^https?:\/\//.test(origin) || !URL.canParse(origin)) return false;
  const { protocol, host: from } = new URL(origin);
  const here = `${protocol}//${host}`;
  return URL.canParse(here) && new URL(here).host === from;
}
