/** `POST /exec` runs code to its end and answers with all of its output. */

import { createRoute, OpenAPIHono } from '@hono/zod-openapi';
import type { Logger } from '../../log.ts';
import type { RunningServiceCall, ServiceCalls } from '../../sessions/service-calls.ts';
import type { SharedSessions } from '../../sessions/shared-sessions.ts';
import { goneSignal, type RestEnv } from '../caller.ts';
import { jsonBody, keepAliveJson, writtenJson } from '../json-answer.ts';
import { answerOf, bodyOf, execAnswer, languageRefusal, lateFailure } from './exec-answer.ts';
import { execBody, toCall } from './exec-request.ts';
import { refuseInvalid } from './problem.ts';
import type { Runtimes } from './runtimes.ts';

export interface ExecOptions {
  calls: ServiceCalls;
  shared: SharedSessions;
  runtimes: Runtimes;
  /** Milliseconds without a byte after which a waiting caller is sent one, to keep the connection alive. */
  silence: number;
  log: Logger;
}

const route = createRoute({
  method: 'post',
  path: '/exec',
  operationId: 'runCode',
  summary: 'Run code',
  request: { body: { content: { 'application/json': { schema: execBody } }, required: true } },
  responses: {
    200: {
      description:
        'What it printed, what it wrote, how it ended. What the code itself got wrong is told here, in stderr.',
      content: writtenJson(execAnswer),
    },
  },
});

export function execRoutes(options: ExecOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  app.openapi(route, async (c) => {
    const body = c.req.valid('json');
    const principal = c.get('principal');
    const gone = goneSignal(c);
    let call: RunningServiceCall | undefined;
    const run = async () => {
      call = await options.calls.start(toCall(body, principal, gone));
      return bodyOf(call, answerOf(call, body, options));
    };
    const refuse = async (error: unknown) => jsonBody(await languageRefusal(error, body, principal, options));
    return keepAliveJson(run().catch(refuse), {
      gone,
      silence: options.silence,
      onLate: (error) => lateFailure(error, call, options.log),
    });
  });
  return app;
}
