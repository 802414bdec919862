/** Serves the workbench's routes on the bridge's socket, which only its owner can reach: for `cuvette ui`, which serves the page by another process. */

import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import { getRequestListener } from '@hono/node-server';
import { OpenAPIHono } from '@hono/zod-openapi';
import { Hono } from 'hono';
import { openSpills } from '../../files/spill.ts';
import type { Logger } from '../../log.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import type { Tool } from '../../tools/define-tool.ts';
import type { RestEnv } from '../caller.ts';
import { OPEN } from '../rest/access.ts';
import { notFound, onError, refuseInvalid } from '../rest/problem.ts';
import { createWorkbench } from './workbench.ts';

export interface BridgeApp {
  listener: RequestListener;
  close(): void;
}

export interface BridgeAppOptions {
  /** The sessions that a request means, by its header `x-cuvette-of`. */
  sessionsOf(of: string | undefined): Sessions;
  /** The data folder. */
  data: string;
  /** Bytes of a body that is held in memory. */
  maxBody: number;
  tools: readonly Tool[];
  log: Logger;
}

/** Says whose sessions are meant, as `of` does in a request of one line. */
export const OF_HEADER = 'x-cuvette-of';
const SILENCE_MS = 15_000;

export async function createBridgeApp({ sessionsOf, data, maxBody, tools, log }: BridgeAppOptions): Promise<BridgeApp> {
  const owners = new Map<Sessions, string>();
  const ownerOf = (sessions: Sessions) => {
    const owner = owners.get(sessions) ?? String(owners.size);
    owners.set(sessions, owner);
    return owner;
  };
  const workbench = createWorkbench({
    sessionsOf: (c) => sessionsOf(c.req.header(OF_HEADER)),
    ownerOf: (c) => ownerOf(sessionsOf(c.req.header(OF_HEADER))),
    toolsOf: () => tools,
    log,
    spills: await openSpills(join(data, 'spill')),
    uploads: { largest: 0, quota: 0 }, // Its own user's disk is the user's own matter.
    maxBody,
    silence: SILENCE_MS,
  });
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  app.onError(onError(log));
  app.notFound(notFound);
  app.use(async (c, next) => {
    c.set('principal', OPEN);
    c.set('isPage', true); // The page's own server says whether the page asks.
    await next();
  });
  app.route('/', workbench.routes);
  app.route('/v1', new Hono<RestEnv>().route('/', workbench.routes));
  return { listener: getRequestListener(app.fetch), close: workbench.close };
}
