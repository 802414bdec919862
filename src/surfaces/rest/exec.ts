/** `POST /exec`: runs code to its end and answers with all of it. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import type { RunningServiceCall, ServiceCalls } from '../../sessions/service-calls.ts';
import type { SharedSessions } from '../../sessions/shared-sessions.ts';
import { goneSignal } from './caller.ts';
import { type ExecAnswer, execAnswer, toAnswer } from './exec-answer.ts';
import { type ExecBody, execBody, toCall } from './exec-request.ts';
import { type JsonBody, jsonBody } from './json-body.ts';
import { refusalOf } from './language-refusal.ts';
import { lateFailure } from './late-failure.ts';
import { patientJson, writtenJson } from './patient-json.ts';
import type { RestEnv } from './principal.ts';
import { refuseInvalid } from './problem.ts';
import type { Versions } from './versions.ts';

export interface ExecOptions {
  calls: ServiceCalls;
  shared: SharedSessions;
  versions: Versions;
  /** Milliseconds of silence after which a caller is sent a sign of life. */
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

const removal = createRoute({
  method: 'delete',
  path: '/sessions/{session}',
  operationId: 'deleteSession',
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
    const principal = c.get('principal');
    const gone = goneSignal(c);
    let call: RunningServiceCall | undefined;
    const run = async () => {
      call = await options.calls.start(toCall(body, principal, gone));
      return bodyOf(call, answerOf(call, body, options));
    };
    const refuse = async (error: unknown) => jsonBody(await refusalOf(error, body, principal, options));
    return patientJson(run().catch(refuse), {
      gone,
      silence: options.silence,
      onLate: (error) => lateFailure(error, call, options.log),
    });
  });
  app.openapi(removal, async (c) => {
    const { session } = c.req.valid('param');
    if (await options.shared.remove(c.get('principal').id, session)) return c.json({ status: 'deleted' as const }, 200);
    throw new CuvetteError('unknown_session', `There is no session ${session}.`);
  });
  return app;
}

/** An answer that holds what the call printed until it is sent. */
export async function bodyOf(call: RunningServiceCall, answer: Promise<object>): Promise<JsonBody> {
  try {
    return jsonBody(await answer, call.printed);
  } catch (error) {
    call.printed.release();
    throw error;
  }
}

/** Waits for the end of a call. */
export async function answerOf(
  call: RunningServiceCall,
  body: Pick<ExecBody, 'lang' | 'runtime_session_hint'>,
  options: ExecOptions,
): Promise<ExecAnswer> {
  const result = await call.finished;
  const { record } = result;
  const about = {
    language: options.versions.languageOf(record.interpreter),
    version: await options.versions.versionOf(record.interpreter),
    isHinted: Boolean(body.runtime_session_hint),
  };
  return toAnswer(call, result, about);
}
