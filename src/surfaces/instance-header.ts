/** Names this process in every answer, so that a client knows whether the server that answers now is the one that it sent a call to. */

import { randomUUID } from 'node:crypto';
import type { MiddlewareHandler } from 'hono';

export function instanceHeader(header: string): MiddlewareHandler {
  const instance = randomUUID();
  return async (c, next) => {
    await next();
    c.header(header, instance);
  };
}
