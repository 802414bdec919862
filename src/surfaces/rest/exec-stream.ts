/**
 * `POST /exec/stream`: runs code as `/exec` does, and tells it as it happens, as server-sent events. Each event has an id; whoever lost
 * the connection sends the last one as `Last-Event-ID`, and is told the rest. A call that has an id of its own (`Idempotency-Key`) runs
 * once, however often it is sent, and can be joined and cancelled by it.
 */

import { createHash } from 'node:crypto';
import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { CuvetteError, messageOf } from '../../errors.ts';
import { STREAM_HEADERS, type StreamEvent } from '../../interpreters/execution-events.ts';
import type { Output } from '../../interpreters/interpreter.ts';
import type { Execution } from '../../sessions/execution.ts';
import { streamOf, textOf } from '../../sessions/output-text.ts';
import type { RunningServiceCall } from '../../sessions/service-calls.ts';
import type { SharedSession } from '../../sessions/shared-sessions.ts';
import type { Principal, RestEnv } from '../caller.ts';
import { goneSignal } from '../caller.ts';
import type { EventLog, EventReader } from '../event-log.ts';
import { eventStream } from '../event-stream.ts';
import { jsonBody } from '../json-answer.ts';
import type { ExecOptions } from './exec.ts';
import { answerOf, bodyOf, languageRefusal } from './exec-answer.ts';
import { execBody, toCall } from './exec-request.ts';
import { refuseInvalid } from './problem.ts';
import type { StreamedCall, StreamLogs } from './stream-logs.ts';

const body = execBody
  .extend({
    background: z.boolean().nullish().openapi({ description: 'Goes on when the connection is closed.' }),
  })
  .openapi('StreamedExecution');
type StreamBody = z.infer<typeof body>;

const callId = z
  .string()
  .regex(/^[\x21-\x7e]{1,200}$/, '1 to 200 characters, without spaces')
  .openapi({ description: 'A name of yours for the call: sent again, it joins the call, and runs nothing.' });

const route = createRoute({
  method: 'post',
  path: '/exec/stream',
  operationId: 'streamCode',
  summary: 'Run code, and be told as it happens',
  request: {
    headers: z.object({ [STREAM_HEADERS.id]: callId.optional() }),
    body: { content: { 'application/json': { schema: body } }, required: true },
  },
  responses: {
    200: {
      description:
        'Events: session, then stream, result, display and error, and at last done, with what /exec answers.',
      content: { 'text/event-stream': { schema: z.string() } },
    },
  },
});

const join = createRoute({
  method: 'get',
  path: '/exec/stream',
  operationId: 'joinCode',
  summary: 'Go on with streamed code, by the id of its call or after one of its events',
  request: { headers: z.object({ [STREAM_HEADERS.id]: callId.optional(), 'last-event-id': z.string().optional() }) },
  responses: { 200: route.responses[200] },
});

const cancellation = createRoute({
  method: 'delete',
  path: '/exec/stream',
  operationId: 'cancelCode',
  summary: 'Interrupt streamed code, by the id of its call or of one of its events',
  request: join.request,
  responses: { 204: { description: 'It is interrupted; its stream tells how it ended.' } },
});

export function streamRoutes(options: ExecOptions & { logs: StreamLogs }): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  const { logs } = options;

  // Before the body is looked at: a reader that comes back may send the same request again, or none.
  app.use('/exec/stream', async (c, next) => {
    const last = c.req.header('last-event-id');
    return last && c.req.method !== 'DELETE' ? resume(c, last) : next();
  });
  app.openapi(route, async (c) => {
    const given = c.req.valid('json');
    const id = c.req.valid('header')[STREAM_HEADERS.id];
    const principal = c.get('principal');
    const gone = goneSignal(c);
    const start = () => begin(given, principal, id);
    const call =
      id === undefined
        ? start()
        : logs.ids.find({ id, owner: principal.id, hash: hashOf(given), isJoin: false }, start);
    const stop = () => given.background || call.cancel();
    gone.addEventListener('abort', stop, { once: true });
    try {
      const log = await call.log;
      gone.removeEventListener('abort', stop);
      return stream(log.read(0), gone, (isWhole) => isWhole || stop());
    } catch (error) {
      const refusal = await languageRefusal(error, given, principal, options);
      const log = logs.detached(refusal.session_id, 0);
      log.add(JSON.stringify({ type: 'session', session_id: refusal.session_id }));
      log.add(JSON.stringify(eventOf({ type: 'stream', name: 'stderr', text: refusal.stderr })));
      log.end(jsonBody({ type: 'done', ...refusal }));
      return stream(log.read(0), gone, log.remove);
    }
  });
  app.openapi(cancellation, async (c) => {
    const { [STREAM_HEADERS.id]: id, 'last-event-id': last } = c.req.valid('header');
    const owner = c.get('principal').id;
    if (last !== undefined) {
      const { shared, number } = await executionOf(last, owner);
      shared.session.interrupt(number);
    } else if (id !== undefined) logs.ids.stop({ id, owner }).cancel();
    else throw unnamed('interrupt');
    return c.body(null, 204);
  });
  app.openapi(join, async (c) => {
    const id = c.req.valid('header')[STREAM_HEADERS.id];
    if (id === undefined) throw unnamed('go on with');
    const gone = goneSignal(c);
    const { log } = logs.ids.find({ id, owner: c.get('principal').id, isJoin: true }, neverStarted);
    return stream((await log).read(0), gone);
  });

  function stream(reader: EventReader, gone: AbortSignal, onEnd: (isWhole: boolean) => void = () => {}): Response {
    const contentType = 'text/event-stream; charset=utf-8';
    return eventStream(reader, { contentType, heartbeat: ': still here\n\n', silence: options.silence, gone, onEnd });
  }

  function begin(given: StreamBody, principal: Principal, id: string | undefined): StreamedCall {
    const stop = new AbortController();
    let running: RunningServiceCall | undefined;
    async function start(): Promise<EventLog> {
      running = await options.calls.start(toCall(given, principal, stop.signal));
      const log = logs.begin(running.sharedSession.session.id, running.execution.record.number, principal.id, id);
      record(running, log, answerOf(running, given, options));
      return log;
    }
    const log = start();
    if (id !== undefined) log.catch(() => logs.ids.free({ id, owner: principal.id }));
    return {
      log,
      cancel() {
        if (!running) return stop.abort();
        const { state, number } = running.execution.record;
        if (state !== 'done') running.sharedSession.session.interrupt(number);
      },
    };
  }

  async function resume(c: Context<RestEnv>, last: string): Promise<Response> {
    const { session, number, seen } = parseEventId(last);
    const owner = c.get('principal').id;
    const gone = goneSignal(c);
    const known = logs.find(session, number, owner);
    if (known) return stream(known.read(seen), gone);
    // An earlier server ran it: what is kept of it is told from the beginning.
    const { shared } = await executionOf(last, owner);
    const call = keptCall(shared, number);
    const log = logs.detached(session, number);
    const unwatch = record(call, log, answerOf(call, {}, options));
    return stream(log.read(0), gone, () => {
      unwatch();
      log.remove();
    });
  }

  async function executionOf(event: string, owner: string): Promise<{ shared: SharedSession; number: number }> {
    const { session, number } = parseEventId(event);
    const shared = await options.shared.find(owner, session);
    if (shared && number <= shared.session.size) return { shared, number };
    throw new CuvetteError('unknown_execution', `There is no execution with the event ${event}.`);
  }

  return app;
}

function parseEventId(event: string): { session: string; number: number; seen: number } {
  const [, session = '', number = '', seen = ''] = /^([\w-]{21})\.(\d+)\.(\d+)$/.exec(event) ?? [];
  return { session, number: Number(number), seen: Number(seen) };
}

function unnamed(what: string): CuvetteError {
  return new CuvetteError(
    'invalid_input',
    `To ${what} a stream, send the id of its last event as Last-Event-ID, or that of its call as Idempotency-Key.`,
  );
}

function neverStarted(): never {
  throw new Error('A call that is only joined is not started.');
}

function hashOf(given: StreamBody): string {
  return createHash('sha256').update(JSON.stringify(given)).digest('hex');
}

/** Writes down what an execution gives, from its first event to `done`, or until it is told to stop. */
function record(call: RunningServiceCall, log: EventLog, answer: Promise<object>): () => void {
  const { execution, sharedSession } = call;
  const session_id = sharedSession.session.id;
  const add = (event: StreamEvent) => log.add(JSON.stringify(event));
  add({ type: 'session', session_id, execution: execution.record.number, is_new: sharedSession.isNew });
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

function eventOf(output: Output): StreamEvent & { stream?: string } {
  if (output.type === 'stream') return { type: 'stream', name: output.name, stream: output.name, text: output.text };
  if (output.type === 'error') {
    const { ename, evalue, traceback } = output;
    return { type: 'error', ename, evalue, traceback };
  }
  const { type, data, metadata } = output;
  if (output.type === 'result' || output.displayId === undefined) return { type, data, metadata };
  return { type, data, metadata, display_id: output.displayId, ...(output.update && { update: true }) };
}
