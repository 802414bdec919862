/** `POST /exec`: runs code to its end and answers with all of it. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import type { Calls, RunningCall } from '../../sessions/calls.ts';
import type { SharedSessions } from '../../sessions/shared-sessions.ts';
import { goneSignal } from './caller.ts';
import { type ExecAnswer, execAnswer, toAnswer } from './exec-answer.ts';
import { type ExecBody, execBody, toCall } from './exec-request.ts';
import type { Metrics } from './metrics.ts';
import type { RestEnv } from './principal.ts';
import { refuseInvalid } from './problem.ts';
import type { Limiter } from './rate-limit.ts';
import type { Versions } from './versions.ts';

export interface ExecOptions {
  calls: Calls;
  shared: SharedSessions;
  limiter: Limiter;
  metrics: Metrics;
  versions: Versions;
}

const route = createRoute({
  method: 'post',
  path: '/exec',
  summary: 'Run code',
  request: { body: { content: { 'application/json': { schema: execBody } }, required: true } },
  responses: {
    200: {
      description:
        'What it printed, what it wrote, how it ended. What the code itself got wrong is told here, in stderr.',
      content: { 'application/json': { schema: execAnswer } },
    },
  },
});

const removal = createRoute({
  method: 'delete',
  path: '/sessions/{session}',
  summary: 'End a session, and forget all of it',
  request: { params: z.object({ session: z.string() }) },
  responses: {
    200: {
      description: 'Its variables, files and history are gone.',
      content: { 'application/json': { schema: z.object({ status: z.literal('deleted') }) } },
    },
  },
});

export function execRoutes(options: ExecOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  app.openapi(route, async (c) => {
    const body = c.req.valid('json');
    const leave = options.limiter.enter(c.get('principal'));
    try {
      const call = await options.calls.start(toCall(body, c.get('principal'), goneSignal(c)));
      return c.json(await answerOf(call, body, options), 200);
    } finally {
      leave();
    }
  });
  app.openapi(removal, async (c) => {
    const { session } = c.req.valid('param');
    if (await options.shared.remove(c.get('principal').id, session)) return c.json({ status: 'deleted' as const }, 200);
    throw new CuvetteError('unknown_session', `There is no session ${session}.`);
  });
  return app;
}

/** Waits for the end of a call, and counts it. */
export async function answerOf(
  call: RunningCall,
  body: Pick<ExecBody, 'lang' | 'runtime_session_hint'>,
  options: ExecOptions,
): Promise<ExecAnswer> {
  const result = await call.finished;
  const { record } = result;
  options.metrics.execution(record.interpreter, record.outcome ?? 'none', record.wall ?? 0);
  const about = {
    language: options.versions.languageOf(record.interpreter),
    version: await options.versions.versionOf(record.interpreter),
    isHinted: Boolean(body.runtime_session_hint),
  };
  return toAnswer(call, result, about);
}
