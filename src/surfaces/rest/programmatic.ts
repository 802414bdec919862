/**
 * `POST /exec/programmatic`: a program that calls the caller's own tools. It runs once, and waits where it asks; each answer of ours
 * carries its questions, each further request of the caller's the results.
 */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { nanoid } from 'nanoid';
import { CuvetteError } from '../../errors.ts';
import type { RunningServiceCall } from '../../sessions/service-calls.ts';
import type { SharedSession } from '../../sessions/shared-sessions.ts';
import {
  bashPrelude,
  openToolChannel,
  pythonPrelude,
  type ToolCall,
  type ToolChannel,
} from '../../sessions/tool-channel.ts';
import { toolName } from '../../sessions/tool-names.ts';
import { goneSignal } from './caller.ts';
import { answerOf, bodyOf, type ExecOptions } from './exec.ts';
import { execBody, interpreterFor, listOf, toCall } from './exec-request.ts';
import { type JsonBody, jsonBody } from './json-body.ts';
import { refusalOf } from './language-refusal.ts';
import { lateFailure } from './late-failure.ts';
import { patientJson, writtenJson } from './patient-json.ts';
import type { RestEnv } from './principal.ts';
import { refuseInvalid } from './problem.ts';

/** Milliseconds: questions that come together are asked together. */
const TOGETHER = 40;
const DEFAULT_TIMEOUT = 15_000;
const SHORTEST_TIMEOUT = 1000;
const LONGEST_TIMEOUT = 300_000;
/** A program whose caller never comes back is ended. */
const ABANDONED = 5 * 60_000;
const MOST_CALLS = 1000;
const MOST_TOOLS = 1000;
/** One of the few words that clients pass on. */
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

interface Run {
  owner: string;
  requestId: string | undefined;
  call: RunningServiceCall;
  channel: ToolChannel;
  /** Names in the program to names of the tools. */
  tools: Map<string, string>;
  questions: ToolCall[];
  onQuestion: () => void;
  lang: string;
  /** Milliseconds of its own work that are left to it. */
  left: number;
  isTimedOut: boolean;
  asked: number;
  token: string | undefined;
  abandoned?: NodeJS.Timeout;
  stop: () => void;
}

export function programmaticRoutes(options: ExecOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const runs = new Set<Run>();

  app.openapi(route, async (c) => {
    const given = c.req.valid('json');
    const owner = c.get('principal').id;
    const gone = goneSignal(c);
    const answerWith = (work: Promise<JsonBody>, run: () => Run | undefined) =>
      patientJson(work, {
        gone,
        silence: options.silence,
        onLate: (error) => ({ ...lateFailure(error, run()?.call, options.log), status: 'error', error: FAILED }),
      });
    if (given.continuation_token) {
      const run = [...runs].find((one) => one.token === given.continuation_token && one.owner === owner);
      if (!run)
        throw new CuvetteError('unknown_execution', 'There is no program that waits under this continuation token.');
      run.token = undefined;
      clearTimeout(run.abandoned);
      for (const result of given.tool_results ?? []) run.channel.answer(result);
      return answerWith(goOn(run, gone), () => run);
    }
    if (given.code === undefined) throw new CuvetteError('invalid_input', 'Give code to run, or a continuation_token.');
    const { code } = given;
    let run: Run | undefined;
    const begin = async () => {
      run = await start({ ...given, code }, owner, c.req.header('x-librechat-code-request-id'), c);
      return goOn(run, gone);
    };
    const refuse = async (error: unknown) => {
      const refused = { ...given, lang: langOf(given) };
      const refusal = await refusalOf(error, refused, c.get('principal'), options);
      return jsonBody({ ...refusal, status: 'error', error: refusal.stderr.trim() });
    };
    return answerWith(begin().catch(refuse), () => run);
  });

  app.openapi(cancellation, (c) => {
    const { request_id } = c.req.valid('json');
    const found = [...runs].filter((run) => run.requestId === request_id && run.owner === c.get('principal').id);
    for (const run of found) run.stop();
    return c.json({ status: found.length > 0 ? ('cancelled' as const) : ('unknown' as const) }, 200);
  });

  async function start(
    given: z.infer<typeof body> & { code: string },
    owner: string,
    requestId: string | undefined,
    c: { get(name: 'principal'): RestEnv['Variables']['principal'] },
  ): Promise<Run> {
    const lang = langOf(given);
    const interpreter = interpreterFor(lang);
    const language = interpreter === 'bash' ? 'bash' : 'python';
    if (language === 'python' && interpreter !== 'builtin')
      throw new CuvetteError('unknown_language', `Tools can be called from Python and from bash, not from ${lang}.`);
    const tools = new Map((given.tools ?? []).map(({ name }) => [toolName(name, language), name]));
    const gone = new AbortController();
    let channel: ToolChannel | undefined;
    const wrap = (code: string, place: SharedSession) => {
      channel = openToolChannel(place.workspace, place.codeOwner);
      return withTools(code, language, place, channel, [...tools.keys()]);
    };
    const request = toCall({ ...given, lang, timeout: undefined }, c.get('principal'), gone.signal);
    try {
      const call = await options.calls.start({ ...request, timeout: 0, wrap });
      if (!channel) throw new Error('the program was not prepared');
      return watch({
        owner,
        requestId,
        call,
        channel,
        tools,
        lang,
        left: clamp(given.timeout ?? DEFAULT_TIMEOUT),
        stop: () => gone.abort(),
      });
    } catch (error) {
      channel?.close();
      throw error;
    }
  }

  function watch(given: Omit<Run, 'questions' | 'onQuestion' | 'isTimedOut' | 'asked' | 'token'>): Run {
    const run: Run = { ...given, questions: [], onQuestion: () => {}, isTimedOut: false, asked: 0, token: undefined };
    runs.add(run);
    run.channel.onCall((question) => {
      run.asked += 1;
      const name = run.tools.get(question.name);
      if (!name || run.asked > MOST_CALLS) {
        const error_message = name
          ? `More than ${MOST_CALLS} calls of tools in one program`
          : `There is no tool ${question.name}`;
        return run.channel.answer({ call_id: question.id, is_error: true, error_message });
      }
      run.questions.push({ ...question, name });
      run.onQuestion();
    });
    const end = () => {
      runs.delete(run);
      clearTimeout(run.abandoned);
      run.channel.close();
    };
    run.call.execution.done.then(end, end);
    return run;
  }

  /** Lets the program work until it asks, ends, or has used up its time. */
  async function goOn(run: Run, signal: AbortSignal): Promise<JsonBody> {
    const began = performance.now();
    const timer = setTimeout(() => {
      run.isTimedOut = true;
      run.stop();
    }, run.left);
    const stop = () => run.stop();
    signal.addEventListener('abort', stop, { once: true });
    const isAsking = await Promise.race([asks(run), run.call.execution.done.then(() => false)]);
    signal.removeEventListener('abort', stop);
    clearTimeout(timer);
    run.left = Math.max(1, run.left - (performance.now() - began));
    return isAsking ? jsonBody(ask(run)) : bodyOf(run.call, finish(run));
  }

  function ask(run: Run): z.infer<typeof answer> {
    const tool_calls = run.questions.splice(0).map(({ id, name, input }) => ({ id, name, input }));
    const token = nanoid(32);
    run.token = token;
    run.abandoned = setTimeout(run.stop, ABANDONED);
    return {
      status: 'tool_call_required',
      session_id: run.call.sharedSession.session.id,
      continuation_token: token,
      tool_calls,
    };
  }

  async function finish(run: Run): Promise<object> {
    const { lang } = run;
    const result = await answerOf(run.call, { lang, runtime_session_hint: undefined }, options);
    const { record } = run.call.execution;
    const failed = run.isTimedOut
      ? 'Time limit exceeded'
      : record.reason?.code === 'oom'
        ? 'Out of memory'
        : record.reason?.code === 'output-limit'
          ? 'stdout length exceeded'
          : record.outcome === 'cancelled' || record.reason?.code === 'not-started'
            ? FAILED
            : undefined;
    return failed ? { ...result, status: 'error', error: failed } : { ...result, status: 'completed' };
  }

  return app;
}

function langOf({ lang, language }: z.infer<typeof body>): string {
  return lang ?? language ?? 'py';
}

/** Resolves once the program has asked, and a moment more has passed in which it may ask for more. */
async function asks(run: Run): Promise<boolean> {
  if (run.questions.length === 0)
    await new Promise<void>((resolve) => {
      run.onQuestion = resolve;
    });
  for (let before = -1; before !== run.questions.length; ) {
    before = run.questions.length;
    await new Promise((resolve) => setTimeout(resolve, TOGETHER));
  }
  return true;
}

/** Errors name the lines of the caller's own code: what is needed before it stands on its first line, or is run by itself. */
function withTools(
  code: string,
  language: 'bash' | 'python',
  place: SharedSession,
  channel: ToolChannel,
  names: string[],
): { before?: string; code: string } {
  const folder = `${place.seen}/${channel.name}`;
  if (language === 'python') return { before: pythonPrelude(folder, names), code };
  channel.put('tools.sh', bashPrelude(folder, names));
  return { code: `. '${folder.replaceAll("'", "'\\''")}/tools.sh'; ${code}` };
}

function clamp(timeout: number): number {
  return Math.min(LONGEST_TIMEOUT, Math.max(SHORTEST_TIMEOUT, timeout));
}
