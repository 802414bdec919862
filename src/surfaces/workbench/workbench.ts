/**
 * Puts together the routes by which the workbench page, or any program, looks into sessions and works in them. They are written against
 * `Sessions`, and so serve the callers of a service and the agent's own sessions of a folder alike.
 */

import { OpenAPIHono } from '@hono/zod-openapi';
import type { Context } from 'hono';
import type { Spills } from '../../files/spill.ts';
import type { Logger } from '../../log.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import type { Tool } from '../../tools/define-tool.ts';
import type { RestEnv } from '../caller.ts';
import { refuseInvalid } from '../rest/problem.ts';
import { guardJson, limitBody } from '../rest/request-body.ts';
import { eventRoutes } from './event-routes.ts';
import { executionRoutes } from './execution-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { toolRoutes } from './tool-routes.ts';
import { variableRoutes } from './variable-routes.ts';
import { createWatches } from './watches.ts';
import { workspaceRoutes } from './workspace-routes.ts';

export interface WorkbenchOptions {
  /** The sessions of who asks. */
  sessionsOf(c: Context<RestEnv>): Sessions;
  /** Whose they are: two callers never share a stream of events. */
  ownerOf(c: Context<RestEnv>): string;
  /** The tools that who asks may use. */
  toolsOf(c: Context<RestEnv>): readonly Tool[];
  log: Logger;
  spills: Spills;
  /** Bytes, and 0 for no limit: of a file that is written into a workspace, and of all files in it. */
  uploads: { largest: number; quota: number };
  /** Bytes of a body that is held in memory. */
  maxBody: number;
  /** Milliseconds without an event after which a stream is sent a sign of life. */
  silence: number;
}

export interface Workbench {
  routes: OpenAPIHono<RestEnv>;
  /** Ends the streams of events. */
  close(): void;
}

export function createWorkbench(options: WorkbenchOptions): Workbench {
  const watches = createWatches(options.spills);
  const routes = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  for (const path of ['/sessions/:session/executions', '/sessions/:session/interpreters/*', '/tools/*'])
    routes.use(path, limitBody(options.maxBody), guardJson());
  routes.route('/', sessionRoutes(options));
  routes.route('/', executionRoutes(options));
  routes.route('/', workspaceRoutes(options));
  routes.route('/', eventRoutes(options, watches));
  routes.route('/', variableRoutes(options));
  routes.route('/', toolRoutes(options));
  return { routes, close: watches.close };
}
