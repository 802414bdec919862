/** Routes of sessions: which there are, what one is, a new one, one less, and one as a notebook or a script. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import { toNotebook, toScript } from '../../sessions/notebook.ts';
import { NEW } from '../../sessions/sessions.ts';
import type { RestEnv } from '../caller.ts';
import { refuseInvalid } from '../rest/problem.ts';
import { idIn, interpretersOf, seenSession, sessionDetails, sessionInfo, toSessionInfo } from './session-info.ts';
import type { WorkbenchOptions } from './workbench.ts';

export const sessionParam = z.object({
  session: z.string().max(64).openapi({ description: 'An id; `default`: the session of calls that name none.' }),
});

export function jsonAnswer<Schema extends z.ZodType>(description: string, schema: Schema) {
  return { description, content: { 'application/json': { schema } } };
}

const listing = createRoute({
  method: 'get',
  path: '/sessions',
  operationId: 'listSessions',
  summary: 'Your sessions, the last used first',
  responses: { 200: jsonAnswer('Open or stored; 500 at most.', z.object({ sessions: z.array(sessionInfo) })) },
});

const details = createRoute({
  method: 'get',
  path: '/sessions/{session}',
  operationId: 'getSession',
  summary: 'A session, its interpreters and its limits',
  request: { params: sessionParam },
  responses: { 200: jsonAnswer('It is opened, if it was not.', sessionDetails) },
});

const creation = createRoute({
  method: 'post',
  path: '/sessions',
  operationId: 'createSession',
  summary: 'A new session',
  responses: { 201: jsonAnswer('It has nothing in it.', sessionInfo) },
});

const removal = createRoute({
  method: 'delete',
  path: '/sessions/{session}',
  operationId: 'deleteSession',
  summary: 'End a session, and forget all of it',
  request: { params: z.object({ session: z.string() }) },
  responses: {
    200: jsonAnswer('Its variables, files and history are gone.', z.object({ status: z.literal('deleted') })),
  },
});

const exporting = createRoute({
  method: 'get',
  path: '/sessions/{session}/export',
  operationId: 'exportSession',
  summary: 'A session as a notebook or a script',
  request: { params: sessionParam, query: z.object({ format: z.enum(['ipynb', 'py']).default('ipynb') }) },
  responses: {
    200: {
      description: 'A file: a Jupyter notebook with its outputs, or the code alone.',
      content: { 'application/x-ipynb+json': { schema: z.string() }, 'text/x-python': { schema: z.string() } },
    },
  },
});

export function sessionRoutes({ sessionsOf }: WorkbenchOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  app.openapi(listing, (c) => c.json({ sessions: sessionsOf(c).list().map(toSessionInfo) }, 200));
  app.openapi(details, async (c) => {
    const { session: path } = c.req.valid('param');
    const sessions = sessionsOf(c);
    if (idIn(path) !== undefined) seenSession(sessions, path);
    const { id, limits, interpreters } = await sessions.use(idIn(path), async (session) => ({
      id: session.id,
      limits: { timeout: session.limits.timeout, max_output: session.limits.maxOutput },
      interpreters: await interpretersOf(session),
    }));
    const seen = seenSession(sessions, id);
    const { sandbox } = sessions;
    return c.json({ ...toSessionInfo(seen), interpreters, limits, sandbox, workspace: seen.workspace.seen }, 200);
  });
  app.openapi(creation, async (c) => {
    const sessions = sessionsOf(c);
    const id = await sessions.use(NEW, (session) => session.id);
    return c.json(toSessionInfo(seenSession(sessions, id)), 201);
  });
  app.openapi(removal, async (c) => {
    const { session } = c.req.valid('param');
    if (await sessionsOf(c).remove(session)) return c.json({ status: 'deleted' as const }, 200);
    throw new CuvetteError('unknown_session', `There is no session ${session}.`);
  });
  app.openapi(exporting, async (c) => {
    const sessions = sessionsOf(c);
    const { id, history } = seenSession(sessions, c.req.valid('param').session);
    const { format } = c.req.valid('query');
    const state = await sessions.environment.state().catch(() => undefined);
    const version = state?.phase === 'ready' ? state.python.version : (state?.base.version ?? '3');
    const isNotebook = format === 'ipynb';
    const text = isNotebook
      ? `${JSON.stringify(toNotebook(history.ended(), version), null, 1)}\n`
      : toScript(history.ended());
    return new Response(text, {
      headers: {
        'content-type': isNotebook ? 'application/x-ipynb+json' : 'text/x-python; charset=utf-8',
        'content-disposition': `attachment; filename="session-${id}.${format}"`,
        'content-security-policy': 'sandbox',
        'x-content-type-options': 'nosniff',
      },
    });
  });
  return app;
}
