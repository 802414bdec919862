/**
 * `POST /exec/stream`: the same as `/exec`, told as it happens, as server-sent events. Each event has an id; whoever lost the
 * connection sends the last one as `Last-Event-ID`, and is told the rest, without the code running again.
 */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { CuvetteError, messageOf } from '../../errors.ts';
import type { Output } from '../../interpreters/interpreter.ts';
import type { RunningCall } from '../../sessions/calls.ts';
import type { Execution } from '../../sessions/execution.ts';
import { streamOf, textOf } from '../../sessions/text.ts';
import { goneSignal } from './caller.ts';
import { createEventLog, type EventLog } from './event-log.ts';
import { answerOf, type ExecOptions } from './exec.ts';
import { execBody, toCall } from './exec-request.ts';
import type { RestEnv } from './principal.ts';
import { refuseInvalid } from './problem.ts';

const KEEP_ALIVE = 15_000;
/** How long the events of an ended execution can be asked for again. */
const REMEMBERED = 10 * 60_000;

const body = execBody
  .extend({
    background: z.boolean().nullish().openapi({ description: 'Goes on when the connection is closed.' }),
  })
  .openapi('StreamedExecution');

const route = createRoute({
  method: 'post',
  path: '/exec/stream',
  summary: 'Run code, and be told as it happens',
  request: { body: { content: { 'application/json': { schema: body } }, required: false } },
  responses: {
    200: {
      description:
        'Events: session, then stream, result, display and error, and at last done, with what /exec answers.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
  },
});

export function streamRoutes(options: ExecOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const logs = new Map<string, { log: EventLog; owner: string }>();

  // Before the body is looked at: a reader that comes back may send the same request again, or none.
  app.use('/exec/stream', async (c, next) => {
    const last = c.req.header('last-event-id');
    return last ? resume(c, last) : next();
  });
  app.openapi(route, async (c) => {
    const given = c.req.valid('json');
    const principal = c.get('principal');
    const leave = options.limiter.enter(principal);
    const gone = new AbortController();
    try {
      const call = await options.calls.start(toCall(given, principal, given.background ? undefined : gone.signal));
      const key = `${call.shared.session.id}.${call.execution.record.number}`;
      const log = record(call, key, () => answerOf(call, given, options).finally(leave));
      logs.set(key, { log, owner: principal.id });
      log.ended.then(() => setTimeout(() => logs.delete(key), REMEMBERED).unref());
      return send(log, 0, goneSignal(c), () => gone.abort());
    } catch (error) {
      leave();
      throw error;
    }
  });

  async function resume(c: Context<RestEnv>, last: string): Promise<Response> {
    const [, id = '', number = '', seen = ''] = /^([\w-]{21})\.(\d+)\.(\d+)$/.exec(last) ?? [];
    const owner = c.get('principal').id;
    const known = logs.get(`${id}.${number}`);
    if (known?.owner === owner) return send(known.log, Number(seen), goneSignal(c), () => {});
    // An earlier server ran it: what is kept of it is told from the beginning.
    const shared = known ? undefined : options.shared.find(owner, id);
    if (!shared || Number(number) > shared.session.size)
      throw new CuvetteError('unknown_execution', `There is no execution with the event ${last}.`);
    const execution = shared.session.execution(Number(number));
    const finished = execution.done.then((record) => ({
      record,
      ...textsOf(execution),
      files: [],
      deleted: [],
      problems: [],
    }));
    const call = { shared, execution, finished };
    const { interpreter } = execution.record;
    const log = record(call, `${id}.${number}`, () =>
      answerOf(call, { lang: interpreter, runtime_session_hint: undefined }, options),
    );
    return send(log, 0, goneSignal(c), () => {});
  }

  app.get('/exec/stream', () => {
    throw new CuvetteError('invalid_input', 'To go on with a stream, send the id of its last event as Last-Event-ID.');
  });
  return app;
}

/** Writes down what an execution gives, from its first event to `done`. */
function record(call: RunningCall, key: string, answer: () => Promise<object>): EventLog {
  const log = createEventLog(key);
  log.add({ type: 'session', session_id: call.shared.session.id, execution: call.execution.record.number });
  for (const output of call.execution.transcript.outputs) log.add(eventOf(output));
  call.execution.onOutput((output) => log.add(eventOf(output)));
  answer()
    .then(
      (result) => log.add({ type: 'done', ...result }),
      (error: unknown) => log.add({ type: 'done', error: messageOf(error), session_id: call.shared.session.id }),
    )
    .finally(log.end);
  return log;
}

/** What is kept of the text: of a very long one, not all. */
function textsOf({ transcript }: Execution): { stdout: string; stderr: string } {
  const textOn = (name: string) =>
    transcript.outputs
      .filter((output) => streamOf(output) === name)
      .map(textOf)
      .join('');
  return { stdout: textOn('stdout'), stderr: textOn('stderr') };
}

function eventOf(output: Output): { type: string; [field: string]: unknown } {
  if (output.type === 'stream') return { type: 'stream', name: output.name, stream: output.name, text: output.text };
  if (output.type === 'error') {
    const { ename, evalue, traceback } = output;
    return { type: 'error', ename, evalue, traceback };
  }
  return { type: output.type, data: output.data, metadata: output.metadata };
}

function send(log: EventLog, after: number, gone: AbortSignal, onGone: () => void): Response {
  const encoder = new TextEncoder();
  let stop = () => {};
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      const write = (text: string) => controller.enqueue(encoder.encode(text));
      const timer = setInterval(() => write(': still here\n\n'), KEEP_ALIVE);
      const unfollow = log.follow(after, write, () => {
        stop();
        controller.close();
      });
      stop = () => {
        clearInterval(timer);
        unfollow();
      };
    },
    cancel() {
      stop();
      onGone();
    },
  });
  gone.addEventListener('abort', () => onGone(), { once: true });
  return new Response(stream, {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    },
  });
}
