/** Routes of events: what happens in a session, and to the sessions of a caller, as server-sent events that can be resumed. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { goneSignal, type RestEnv } from '../caller.ts';
import { eventStream } from '../event-stream.ts';
import { refuseInvalid } from '../rest/problem.ts';
import { sessionParam } from './session-routes.ts';
import { watchCaller, watchSession } from './session-watch.ts';
import { takeUpInterrupted } from './take-up.ts';
import type { Watches, WatchReader } from './watches.ts';
import type { WorkbenchOptions } from './workbench.ts';

const place = {
  headers: z.object({ 'last-event-id': z.string().max(100).optional() }),
  query: z.object({ after: z.string().max(100).optional().openapi({ description: 'As Last-Event-ID.' }) }),
};
const stream = (description: string) => ({
  200: { description, content: { 'text/event-stream': { schema: z.string() } } },
});

const ofCaller = createRoute({
  method: 'get',
  path: '/events',
  operationId: 'watchSessions',
  summary: 'What happens to your sessions, as it happens',
  request: place,
  responses: stream('Events: sessions, once; then session and session-removed.'),
});

const ofSession = createRoute({
  method: 'get',
  path: '/sessions/{session}/events',
  operationId: 'watchSession',
  summary: 'What happens in a session, as it happens, whoever runs code in it',
  request: { params: sessionParam, ...place },
  responses: stream('Events: snapshot, once; then execution, output, update, skipped, variables, files and closed.'),
});

export function eventRoutes(options: WorkbenchOptions, watches: Watches): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });

  const answer = (reader: WatchReader, gone: AbortSignal) =>
    eventStream(reader, {
      contentType: 'text/event-stream; charset=utf-8',
      heartbeat: ': still here\n\n',
      silence: options.silence,
      gone,
      onEnd: reader.done,
    });

  app.openapi(ofCaller, (c) => {
    const after = c.req.valid('header')['last-event-id'] ?? c.req.valid('query').after;
    const reader = watches.read(options.ownerOf(c), '', after, watchCaller(options.sessionsOf(c)));
    return answer(reader, goneSignal(c));
  });
  app.openapi(ofSession, async (c) => {
    const after = c.req.valid('header')['last-event-id'] ?? c.req.valid('query').after;
    const gone = goneSignal(c);
    const sessions = options.sessionsOf(c);
    const seen = await takeUpInterrupted(sessions, c.req.valid('param').session);
    return answer(watches.read(options.ownerOf(c), seen.id, after, watchSession(sessions, seen)), gone);
  });
  return app;
}
