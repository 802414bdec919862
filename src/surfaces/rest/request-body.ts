/** Limits the size of request bodies and checks JSON before a route parses it. */

import type { MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { CuvetteError } from '../../errors.ts';
import { readJsonBody } from '../../json-body.ts';

/** Limits requests that are held in memory; uploads have limits of their own. */
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
    // Counting would build a whole web Request; a declared length is one that Node enforces.
    if (length === undefined) return count(c, next);
    return Number(length) > maxSize ? refuse() : next();
  };
}

/** Checks a JSON body for excessive depth and size before any route parses it. */
export function guardJson(): MiddlewareHandler {
  return async (c, next) => {
    if (!/json/i.test(c.req.header('content-type') ?? '')) return next();
    const body = await readJsonBody(c.req.raw);
    c.req.json = async <T>() => body.parse() as T;
    return next();
  };
}
