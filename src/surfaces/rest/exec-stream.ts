/**
 * `POST /exec/stream`: the same as `/exec`, told as it happens, as server-sent events. Each event has an id; whoever lost the
 * connection sends the last one as `Last-Event-ID`, and is told the rest, without the code running again.
 */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { CuvetteError, messageOf } from '../../errors.ts';
import type { Output } from '../../interpreters/interpreter.ts';
import type { Execution } from '../../sessions/execution.ts';
import { streamOf, textOf } from '../../sessions/output-text.ts';
import type { RunningServiceCall } from '../../sessions/service-calls.ts';
import type { SharedSession } from '../../sessions/shared-sessions.ts';
import { goneSignal } from './caller.ts';
import { eventStream } from './event-stream.ts';
import { answerOf, bodyOf, type ExecOptions } from './exec.ts';
import { execBody, toCall } from './exec-request.ts';
import { jsonBody } from './json-body.ts';
import { refusalOf } from './language-refusal.ts';
import type { RestEnv } from './principal.ts';
import { refuseInvalid } from './problem.ts';
import type { StreamLog, StreamLogs } from './stream-logs.ts';

const body = execBody
  .extend({
    background: z.boolean().nullish().openapi({ description: 'Goes on when the connection is closed.' }),
  })
  .openapi('StreamedExecution');

const route = createRoute({
  method: 'post',
  path: '/exec/stream',
  operationId: 'streamCode',
  summary: 'Run code, and be told as it happens',
  request: { body: { content: { 'application/json': { schema: body } }, required: true } },
  responses: {
    200: {
      description:
        'Events: session, then stream, result, display and error, and at last done, with what /exec answers.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
  },
});

export function streamRoutes(options: ExecOptions & { logs: StreamLogs }): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const { logs, silence } = options;

  // Before the body is looked at: a reader that comes back may send the same request again, or none.
  app.use('/exec/stream', async (c, next) => {
    const last = c.req.header('last-event-id');
    return last ? resume(c, last) : next();
  });
  app.openapi(route, async (c) => {
    const given = c.req.valid('json');
    const principal = c.get('principal');
    const gone = goneSignal(c);
    const stop = new AbortController();
    gone.addEventListener('abort', () => stop.abort(), { once: true });
    try {
      const call = await options.calls.start(toCall(given, principal, given.background ? undefined : stop.signal));
      const log = logs.begin(call.sharedSession.session.id, call.execution.record.number, principal.id);
      record(call, log, answerOf(call, given, options));
      const onEnd = (isWhole: boolean) => {
        if (!isWhole) stop.abort();
      };
      return eventStream(log.read(0), { gone, silence, onEnd });
    } catch (error) {
      const refusal = await refusalOf(error, given, principal, options);
      const log = logs.detached(refusal.session_id, 0);
      log.add(JSON.stringify({ type: 'session', session_id: refusal.session_id }));
      log.add(JSON.stringify(eventOf({ type: 'stream', name: 'stderr', text: refusal.stderr })));
      log.end(jsonBody({ type: 'done', ...refusal }));
      return eventStream(log.read(0), { gone, silence, onEnd: log.remove });
    }
  });

  async function resume(c: Context<RestEnv>, last: string): Promise<Response> {
    const [, id = '', number = '', seen = ''] = /^([\w-]{21})\.(\d+)\.(\d+)$/.exec(last) ?? [];
    const owner = c.get('principal').id;
    const gone = goneSignal(c);
    const known = logs.find(id, Number(number), owner);
    if (known) return eventStream(known.read(Number(seen)), { gone, silence, onEnd: () => {} });
    // An earlier server ran it: what is kept of it is told from the beginning.
    const shared = await options.shared.find(owner, id);
    if (!shared || Number(number) > shared.session.size)
      throw new CuvetteError('unknown_execution', `There is no execution with the event ${last}.`);
    const call = keptCall(shared, Number(number));
    const log = logs.detached(id, Number(number));
    const unwatch = record(
      call,
      log,
      answerOf(call, { lang: call.execution.record.interpreter, runtime_session_hint: undefined }, options),
    );
    const onEnd = () => {
      unwatch();
      log.remove();
    };
    return eventStream(log.read(0), { gone, silence, onEnd });
  }

  app.get('/exec/stream', () => {
    throw new CuvetteError('invalid_input', 'To go on with a stream, send the id of its last event as Last-Event-ID.');
  });
  return app;
}

/** Writes down what an execution gives, from its first event to `done`, or until it is told to stop. */
function record(call: RunningServiceCall, log: StreamLog, answer: Promise<object>): () => void {
  const { execution, sharedSession } = call;
  const session_id = sharedSession.session.id;
  const add = (event: object) => log.add(JSON.stringify(event));
  add({ type: 'session', session_id, execution: execution.record.number });
  for (const output of execution.transcript.outputs) add(eventOf(output));
  const unwatch = execution.onOutput((output) => add(eventOf(output)));
  const done = answer.then((result) => ({ type: 'done', ...result }));
  bodyOf(call, done)
    .catch((error: unknown) => jsonBody({ type: 'done', error: messageOf(error), session_id }))
    .then((last) => {
      unwatch();
      log.end(last);
    });
  return unwatch;
}

/** A call of which this server knows only the record. */
function keptCall(shared: SharedSession, number: number): RunningServiceCall {
  const execution = shared.session.execution(number);
  const rest = { files: [], deleted: [], problems: [] };
  const finished = execution.done.then((record) => ({ record, ...textsOf(execution), ...rest }));
  return { sharedSession: shared, execution, finished, printed: { size: 0, release() {} } };
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

function eventOf(output: Output): object {
  if (output.type === 'stream') return { type: 'stream', name: output.name, stream: output.name, text: output.text };
  if (output.type === 'error') {
    const { ename, evalue, traceback } = output;
    return { type: 'error', ename, evalue, traceback };
  }
  const { type, data, metadata } = output;
  if (output.type === 'result' || output.displayId === undefined) return { type, data, metadata };
  return { type, data, metadata, display_id: output.displayId, ...(output.update && { update: true }) };
}
