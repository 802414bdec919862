/** The HTTP side of a Cuvette service elsewhere: how it is, code with its events over as many connections as that takes, and its tools. */

import { setTimeout as sleep } from 'node:timers/promises';
import * as z from 'zod';
import { CuvetteError, messageOf } from '../../errors.ts';
import { eventsIn } from './event-reader.ts';
import { parseEndpoint } from './remote-lab.ts';
import { errorFrom, isLost, notAService, refusal, unauthorized, unreachable } from './service-errors.ts';

export interface ServiceClient {
  health(signal: AbortSignal): Promise<ServiceHealth>;
  /** The session of that id, or another if there is none, or none any more. */
  session(id: string | undefined, signal: AbortSignal): Promise<ServiceSession>;
  /**
   * Runs code in a session in which nothing else does. It goes on there while the connection is lost. What was told before comes again if
   * the service was restarted.
   */
  run(session: ServiceSession, body: Record<string, unknown>, signal: AbortSignal): AsyncGenerator<ServiceEvent>;
  /** Calls one of its tools; gives the structured answer. */
  tool(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<unknown>;
}

export type ServiceSession = z.infer<typeof sessionSchema>;
export type ServiceHealth = z.infer<typeof healthSchema>;
export type ServiceEvent = z.infer<typeof eventSchema>;

const healthSchema = z.object({
  status: z.literal('healthy'),
  version: z.string(),
  /** A sentence on what keeps code from harm. */
  sandbox: z.string(),
  runtime_capabilities: z.object({
    py: z.object({ version: z.string().nullable(), install: z.string().nullable() }),
  }),
});

/** Of the tool `get_session_info`. */
const sessionSchema = z.object({ session: z.string(), executions: z.number() });

const bundle = z.record(z.string(), z.unknown());
const eventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('session'), session_id: z.string(), execution: z.number() }),
  z.object({ type: z.literal('stream'), name: z.enum(['stdout', 'stderr']), text: z.string() }),
  z.object({ type: z.literal('display'), data: bundle, metadata: bundle }),
  z.object({ type: z.literal('result'), data: bundle, metadata: bundle }),
  z.object({ type: z.literal('error'), ename: z.string(), evalue: z.string(), traceback: z.array(z.string()) }),
  z.object({ type: z.literal('done') }),
]);

/** Of a tool: at last an answer, and progress before it. */
const messageSchema = z.object({
  result: z.object({ structuredContent: z.unknown() }).optional(),
  error: z.object({ message: z.string() }).optional(),
});
const failureSchema = z.object({ error: z.object({ code: z.string(), message: z.string() }) });
const rootSchema = z.object({ name: z.literal('Cuvette') });

const WAITS = [0, 1000, 2000, 4000, 8000, 15_000, 30_000];
/** Milliseconds without a sign of life, of which there is one every 15 seconds, after which a connection is dead. */
const SILENCE = 60_000;
/** Milliseconds after which a request that arrived has become an execution. */
const ARRIVAL = 1000;
/** Asks for another session. */
const NEW = 'new';

export interface ServiceClientOptions {
  endpoint: string;
  token: string | undefined;
  /** Milliseconds before each time that a lost connection is tried again. */
  waits?: readonly number[];
}

export function createServiceClient({ endpoint, token, waits = WAITS }: ServiceClientOptions): ServiceClient {
  const base = parseEndpoint(endpoint);

  async function send(path: string, init: { body?: unknown; headers?: Record<string, string> }, signal: AbortSignal) {
    const isPost = init.body !== undefined;
    const response = await fetch(`${base}${path}`, {
      method: isPost ? 'POST' : 'GET',
      headers: {
        accept: 'application/json, text/event-stream',
        ...(token && { authorization: `Bearer ${token}` }),
        ...(isPost && { 'content-type': 'application/json' }),
        ...init.headers,
      },
      ...(isPost && { body: JSON.stringify(init.body) }),
      // A key must not be led elsewhere.
      redirect: 'error',
      signal,
    }).catch((error: unknown) => {
      throw unreachable(endpoint, error);
    });
    if (response.ok) return response;
    throw await refusal(response, endpoint);
  }

  async function json(path: string, signal: AbortSignal): Promise<unknown> {
    const response = await send(path, {}, signal);
    return response.json().catch(() => undefined);
  }

  async function* connect(path: string, init: Parameters<typeof send>[1], signal: AbortSignal) {
    const silent = new AbortController();
    const alive = () => timer.refresh();
    const timer = setTimeout(() => silent.abort(new Error('nothing came from it any more')), SILENCE);
    try {
      const response = await send(path, init, AbortSignal.any([signal, silent.signal]));
      if (!response.headers.get('content-type')?.includes('text/event-stream') || !response.body)
        throw notAService(endpoint);
      yield* eventsIn(response.body, alive);
    } catch (error) {
      signal.throwIfAborted();
      throw unreachable(endpoint, error);
    } finally {
      clearTimeout(timer);
    }
  }

  async function* run(
    place: ServiceSession,
    body: Record<string, unknown>,
    signal: AbortSignal,
  ): AsyncGenerator<ServiceEvent> {
    const fresh = { body: { ...body, session_id: place.session, background: true } };
    let last: string | undefined;
    for (let failures = 0; ; failures += 1) {
      try {
        const init = last === undefined ? fresh : { headers: { 'last-event-id': last } };
        for await (const { id, data } of connect('/exec/stream', init, signal)) {
          const event = eventSchema.safeParse(JSON.parse(data)).data;
          last = id;
          failures = 0;
          // Of a kind that a later version has.
          if (!event) continue;
          yield event;
          if (event.type === 'done') return;
        }
        throw new Error('the connection ended before the code did');
      } catch (error) {
        signal.throwIfAborted();
        const wait = waits[failures];
        if (wait === undefined || !isLost(error)) throw unreachable(endpoint, error);
        await sleep(wait, undefined, { signal });
        // Sent again, it could run twice.
        last ??= await firstOf(place, error, signal);
      }
    }
  }

  /** What comes before the first event of the execution that was sent to the session. Whether it has arrived there, only the service knows. */
  async function firstOf({ session, executions }: ServiceSession, lost: unknown, signal: AbortSignal): Promise<string> {
    let problem = lost;
    for (const wait of waits) {
      await sleep(wait + ARRIVAL, undefined, { signal });
      const now = await tool('get_session_info', { session }, signal)
        .then(sessionSchema.parse)
        .catch((error: unknown) => {
          problem = error;
          return undefined;
        });
      signal.throwIfAborted();
      if (now && now.executions > executions) return `${session}.${now.executions}.0`;
      if (now) throw neverArrived(endpoint, lost);
      if (!isLost(problem)) break;
    }
    throw mayRun(endpoint, problem);
  }

  async function tool(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<unknown> {
    const params = { name, arguments: args, _meta: { 'cuvette/structured': true } };
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
    for await (const { data } of connect('/mcp', { body: call }, signal)) {
      const { result, error } = messageSchema.parse(JSON.parse(data));
      if (error) throw errorFrom('', error.message, endpoint);
      if (!result) continue;
      const failure = failureSchema.safeParse(result.structuredContent);
      if (failure.success) throw errorFrom(failure.data.error.code, failure.data.error.message, endpoint);
      return result.structuredContent;
    }
    throw unreachable(endpoint, new Error('it ended before its answer'));
  }

  return {
    run,
    async health(signal) {
      const answered = await json('/health', signal);
      const health = healthSchema.safeParse(answered);
      if (health.success) return health.data;
      // It says so much to everybody, and the rest to those whom it knows.
      const isService = rootSchema.safeParse(await json('/', signal)).success;
      throw isService ? unauthorized(endpoint) : notAService(endpoint);
    },
    tool,
    async session(id, signal) {
      const ask = (session: string) => tool('get_session_info', { session }, signal).then(sessionSchema.parse);
      return ask(id ?? NEW).catch((error: unknown) => {
        signal.throwIfAborted();
        // Asked again: a connection that was kept from the last call may have died since.
        const isForgotten = error instanceof CuvetteError && error.code === 'unknown_session';
        return ask(isForgotten ? NEW : (id ?? NEW));
      });
    },
  };
}

function neverArrived(endpoint: string, cause: unknown): CuvetteError {
  return new CuvetteError(
    'lab_unreachable',
    `The connection to the Cuvette at ${endpoint} was lost before the code had arrived there, so it has not run. Run it again.`,
    { cause },
  );
}

function mayRun(endpoint: string, cause: unknown): CuvetteError {
  return new CuvetteError(
    'lab_unreachable',
    `The connection to the Cuvette at ${endpoint} was lost as the code was sent, so the code may have run there, or still run. Before you run it again, see what it has done, as by list_vars. ${messageOf(cause)}`,
    { cause },
  );
}
