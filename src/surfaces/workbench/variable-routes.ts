/** Routes of an interpreter's variables: which there are, what one looks like, completion by them, and a fresh start without them. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { completionSchema, type LookRequest, valueViewSchema, variableSchema } from '../../interpreters/interpreter.ts';
import type { Session } from '../../sessions/session.ts';
import type { Sessions } from '../../sessions/sessions.ts';
import { goneSignal, type RestEnv } from '../caller.ts';
import { refuseInvalid } from '../rest/problem.ts';
import { seenSession } from './session-info.ts';
import { jsonAnswer, sessionParam } from './session-routes.ts';
import type { WorkbenchOptions } from './workbench.ts';

const LONGEST = 1000;
const MOST_ROWS = 1000;
const LONGEST_WAIT = 60;
const PATIENCE = 2;

const interpreterParam = sessionParam.extend({
  name: z.string().max(200).openapi({ description: 'Of the interpreter.', example: 'builtin' }),
});
const wait = z.coerce.number().min(0).max(LONGEST_WAIT).default(PATIENCE).openapi({
  description: 'Seconds to wait for code that runs.',
});
const count = z.coerce.number().int().min(0);
const busy = { 409: { description: 'Code runs: `execution` is its number. Or the interpreter is to be restarted.' } };

const listing = createRoute({
  method: 'get',
  path: '/sessions/{session}/interpreters/{name}/variables',
  operationId: 'listVariables',
  summary: "An interpreter's variables",
  request: { params: interpreterParam, query: z.object({ wait }) },
  responses: {
    200: jsonAnswer(
      'By name; none of an interpreter that does not run.',
      z.object({ variables: z.array(variableSchema) }),
    ),
    ...busy,
  },
});

const looking = createRoute({
  method: 'get',
  path: '/sessions/{session}/interpreters/{name}/variables/{path}',
  operationId: 'getVariable',
  summary: 'What a value looks like, without running code',
  request: {
    params: interpreterParam.extend({
      path: z.string().min(1).max(LONGEST).openapi({
        description: "A name, and steps from there, as in config['layers'][3].weights; URL-encoded.",
      }),
    }),
    query: z.object({
      offset: count.default(0).openapi({ description: 'The first row or item.' }),
      limit: count.max(MOST_ROWS).default(100),
      columns: z
        .string()
        .regex(/^\d{1,9}:\d{1,9}$/, 'as in 0:50')
        .default('0:50')
        .openapi({ description: 'The first column, and the one after the last; 200 at most.' }),
      sort: z.string().max(LONGEST).optional().openapi({ description: 'The name of a column.' }),
      desc: z.enum(['0', '1', 'false', 'true']).default('0').openapi({ description: 'The largest first.' }),
      filter: z.string().max(LONGEST).optional().openapi({ description: 'A text that rows show.' }),
      wait,
    }),
  },
  responses: {
    200: jsonAnswer('A table, a tree or a text, or the part of it that was asked for.', valueViewSchema),
    404: { description: 'There is no such value.' },
    422: { description: 'It cannot be shown, or not in time.' },
    ...busy,
  },
});

const restarting = createRoute({
  method: 'post',
  path: '/sessions/{session}/interpreters/{name}/restart',
  operationId: 'restartInterpreter',
  summary: 'Start an interpreter afresh',
  request: { params: interpreterParam },
  responses: { 204: { description: 'Its variables are gone, and what ran is ended.' } },
});

const completing = createRoute({
  method: 'post',
  path: '/sessions/{session}/interpreters/{name}/complete',
  operationId: 'completeCode',
  summary: 'How code can go on at the cursor',
  request: {
    params: interpreterParam,
    query: z.object({ wait }),
    body: {
      content: { 'application/json': { schema: z.object({ code: z.string().max(1_000_000), cursor: count }) } },
      required: true,
    },
  },
  responses: {
    200: jsonAnswer('What may stand from start to end; positions count UTF-16 units.', completionSchema),
    ...busy,
  },
});

export function variableRoutes(options: Pick<WorkbenchOptions, 'sessionsOf'>): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const { sessionsOf } = options;

  app.openapi(listing, async (c) => {
    const { session, name } = c.req.valid('param');
    const waiting = { ...c.req.valid('query'), signal: goneSignal(c) };
    const variables = await inSession(sessionsOf(c), session, (found) => found.runningVariables(name, waiting));
    return c.json({ variables }, 200);
  });
  app.openapi(looking, async (c) => {
    const { session, name, path } = c.req.valid('param');
    const { wait, columns, desc, ...window } = c.req.valid('query');
    const [first = 0, last = 0] = columns.split(':').map(Number);
    const isDescending = desc === '1' || desc === 'true';
    const request: LookRequest = { path, ...window, columns: [first, last], desc: isDescending };
    const waiting = { wait, signal: goneSignal(c) };
    const view = await inSession(sessionsOf(c), session, (found) => found.look(name, request, waiting));
    return c.json(view, 200);
  });
  app.openapi(restarting, async (c) => {
    const { session, name } = c.req.valid('param');
    await inSession(sessionsOf(c), session, (found) => found.reset(name));
    return c.body(null, 204);
  });
  app.openapi(completing, async (c) => {
    const { session, name } = c.req.valid('param');
    const { code, cursor } = c.req.valid('json');
    const waiting = { ...c.req.valid('query'), signal: goneSignal(c) };
    const found = await inSession(sessionsOf(c), session, (open) => open.complete(name, code, cursor, waiting));
    return c.json(found, 200);
  });
  return app;
}

/** Opens a session that is there: a look makes none. */
function inSession<T>(sessions: Sessions, path: string, work: (session: Session) => Promise<T>): Promise<T> {
  return sessions.use(seenSession(sessions, path).id, work);
}
