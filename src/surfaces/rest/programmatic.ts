/**
 * `POST /exec/programmatic` runs a program that calls the caller's own tools: an answer carries the calls, the caller's next request
 * their results. `programmatic-runs.ts` keeps the programs between the requests.
 */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import { goneSignal, type Principal, type RestEnv } from '../caller.ts';
import { type JsonBody, jsonBody, keepAliveJson, writtenJson } from '../json-answer.ts';
import type { ExecOptions } from './exec.ts';
import { answerOf, bodyOf, languageRefusal, lateFailure } from './exec-answer.ts';
import { execBody, interpreterFor, listOf, toCall } from './exec-request.ts';
import { refuseInvalid } from './problem.ts';
import { createProgrammaticRuns, MOST_CALLS, type ProgrammaticRun } from './programmatic-runs.ts';

/** Milliseconds. */
const DEFAULT_TIMEOUT = 15_000;
const SHORTEST_TIMEOUT = 1000;
const LONGEST_TIMEOUT = 300_000;
const MOST_TOOLS = 1000;
/** One of the few messages that clients pass on. */
const FAILED = 'Execution failed or timed out';

const body = execBody
  .partial({ lang: true, code: true })
  .extend({
    language: z.string().nullish(),
    tools: listOf(z.object({ name: z.string().min(1).max(200) }), MOST_TOOLS).nullish(),
    continuation_token: z.string().nullish(),
    tool_results: listOf(
      z.object({
        call_id: z.string(),
        result: z.unknown().optional(),
        is_error: z.boolean().nullish(),
        error_message: z.string().nullish(),
      }),
      MOST_CALLS,
    ).nullish(),
  })
  .openapi('ProgrammaticExecution');

const answer = z
  .object({
    status: z.enum(['tool_call_required', 'completed', 'error']),
    session_id: z.string(),
    continuation_token: z.string().optional(),
    tool_calls: z.array(z.object({ id: z.string(), name: z.string(), input: z.unknown() })).optional(),
    stdout: z.string().optional(),
    stderr: z.string().optional(),
    error: z.string().optional(),
  })
  .loose()
  .openapi('ProgrammaticAnswer');

const route = createRoute({
  method: 'post',
  path: '/exec/programmatic',
  operationId: 'runCodeWithTools',
  summary: 'Run code that calls your tools',
  request: { body: { content: { 'application/json': { schema: body } }, required: true } },
  responses: {
    200: { description: 'Questions, or the end.', content: writtenJson(answer) },
  },
});

const cancellation = createRoute({
  method: 'post',
  path: '/exec/programmatic/cancel',
  operationId: 'cancelCodeWithTools',
  summary: 'Stop a program that calls tools',
  request: {
    body: {
      content: { 'application/json': { schema: z.object({ request_id: z.string() }).openapi('Cancellation') } },
      required: true,
    },
  },
  responses: {
    200: {
      description: 'Whether there was one.',
      content: { 'application/json': { schema: z.object({ status: z.enum(['cancelled', 'unknown']) }) } },
    },
  },
});

export function programmaticRoutes(options: ExecOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const runs = createProgrammaticRuns();

  app.openapi(route, async (c) => {
    const given = c.req.valid('json');
    const principal = c.get('principal');
    const requestId = c.req.header('x-librechat-code-request-id');
    const gone = goneSignal(c);
    let run: ProgrammaticRun | undefined;
    const answerWith = (work: Promise<JsonBody>) =>
      keepAliveJson(work, {
        gone,
        silence: options.silence,
        onLate: (error) => ({ ...lateFailure(error, run?.call, options.log), status: 'error', error: FAILED }),
      });
    if (given.continuation_token) {
      run = runs.resume(given.continuation_token, principal.id, given.tool_results ?? []);
      return answerWith(proceed(run, gone));
    }
    const { code } = given;
    if (code === undefined) throw new CuvetteError('invalid_input', 'Give code to run, or a continuation_token.');
    const begin = async () => {
      run = await start({ ...given, code }, principal, requestId);
      return proceed(run, gone);
    };
    const refuse = async (error: unknown) => {
      const refusal = await languageRefusal(error, { ...given, lang: langOf(given) }, principal, options);
      return jsonBody({ ...refusal, status: 'error', error: refusal.stderr.trim() });
    };
    return answerWith(begin().catch(refuse));
  });

  app.openapi(cancellation, (c) => {
    const { request_id } = c.req.valid('json');
    const isCancelled = runs.cancel(request_id, c.get('principal').id);
    return c.json({ status: isCancelled ? ('cancelled' as const) : ('unknown' as const) }, 200);
  });

  async function start(
    given: z.infer<typeof body> & { code: string },
    principal: Principal,
    requestId: string | undefined,
  ): Promise<ProgrammaticRun> {
    const lang = langOf(given);
    const interpreter = interpreterFor(lang);
    const language = interpreter === 'bash' ? 'bash' : 'python';
    if (language === 'python' && interpreter !== 'builtin')
      throw new CuvetteError('unknown_language', `Tools can be called from Python and from bash, not from ${lang}.`);
    return runs.start({
      owner: principal.id,
      requestId,
      language,
      tools: (given.tools ?? []).map(({ name }) => name),
      timeout: Math.min(LONGEST_TIMEOUT, Math.max(SHORTEST_TIMEOUT, given.timeout ?? DEFAULT_TIMEOUT)),
      begin: (wrap, signal) =>
        options.calls.start({ ...toCall({ ...given, lang }, principal, signal), timeout: 0, wrap }),
    });
  }

  async function proceed(run: ProgrammaticRun, gone: AbortSignal): Promise<JsonBody> {
    const step = await runs.nextStep(run, gone);
    if (step.state === 'ended') return bodyOf(run.call, ended(run));
    const tool_calls = step.calls.map(({ id, name, input }) => ({ id, name, input }));
    return jsonBody({
      status: 'tool_call_required',
      session_id: run.call.sharedSession.session.id,
      continuation_token: step.token,
      tool_calls,
    } satisfies z.infer<typeof answer>);
  }

  async function ended(run: ProgrammaticRun): Promise<object> {
    const result = await answerOf(run.call, {}, options);
    const error = failureOf(run);
    return error ? { ...result, status: 'error', error } : { ...result, status: 'completed' };
  }

  return app;
}

function langOf({ lang, language }: z.infer<typeof body>): string {
  return lang ?? language ?? 'py';
}

/** Returns the message for a program that was ended; one that failed by itself is told in stderr. */
function failureOf({ call, isTimedOut }: ProgrammaticRun): string | undefined {
  const { outcome, reason } = call.execution.record;
  if (isTimedOut) return 'Time limit exceeded';
  if (reason?.code === 'oom') return 'Out of memory';
  if (reason?.code === 'output-limit') return 'stdout length exceeded';
  return outcome === 'cancelled' || reason?.code === 'not-started' ? FAILED : undefined;
}
