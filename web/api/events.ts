/** Follows a stream of events of the service: parses them, reconnects by itself, and resumes after the last event that was seen. What an event means is the stores'. */

import * as z from 'zod/mini';
import { readServerSentEvents } from '../../src/server-sent-events.ts';
import { type Api, ApiError } from './client.ts';
import { executionHeadSchema, executionSchema, outputSchema, sessionSchema } from './schemas.ts';

export const sidebarEventSchema = z.discriminatedUnion('type', [
  z.object({ type: z.literal('sessions'), sessions: z.array(sessionSchema) }),
  z.object({ type: z.literal('session'), session: sessionSchema }),
  z.object({ type: z.literal('session-removed'), id: z.string() }),
]);
export type SidebarEvent = z.infer<typeof sidebarEventSchema>;

export const sessionEventSchema = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('snapshot'),
    session: sessionSchema,
    executions: z.array(executionSchema),
    has_more: z.boolean(),
  }),
  z.object({ type: z.literal('execution'), execution: executionHeadSchema }),
  z.object({
    type: z.literal('output'),
    execution: z.number(),
    offset: z.optional(z.nullable(z.number())),
    output: outputSchema,
  }),
  z.object({ type: z.literal('update'), execution: z.number(), index: z.number(), output: outputSchema }),
  z.object({ type: z.literal('skipped'), execution: z.number(), from: z.number(), to: z.number() }),
  z.object({ type: z.literal('variables'), interpreter: z.string() }),
  z.object({ type: z.literal('files') }),
  z.object({ type: z.literal('closed'), reason: z.string(), message: z.optional(z.nullable(z.string())) }),
]);
export type SessionEvent = z.infer<typeof sessionEventSchema>;

/** `lost`: not connected, and trying again. `refused`: the service says that there is nothing to connect to. */
export type Connection = { state: 'connecting' | 'open' | 'lost' } | { state: 'refused'; error: ApiError };

export interface FollowOptions<Event> {
  api: Api;
  path: string;
  schema: z.ZodMiniType<Event>;
  onEvent(event: Event): void;
  onConnection(connection: Connection): void;
  signal: AbortSignal;
}

const FIRST_WAIT = 250;
const LONGEST_WAIT = 5_000;
/** The service sends a heartbeat every 15 seconds or so: after three of them in silence, the connection is dead. */
const SILENCE = 50_000;

/** Resolves once the signal is aborted or the service refuses. */
export async function follow<Event>(options: FollowOptions<Event>): Promise<void> {
  const { onConnection, signal } = options;
  let last = '';
  let wait = FIRST_WAIT;
  while (!signal.aborted) {
    try {
      await readOnce(options, last, (id) => {
        last = id || last;
        wait = FIRST_WAIT;
      });
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429)
        return onConnection({ state: 'refused', error });
    }
    if (signal.aborted) return;
    onConnection({ state: 'lost' });
    await pause(wait * (0.7 + 0.6 * Math.random()), signal);
    wait = Math.min(wait * 2, LONGEST_WAIT);
  }
}

async function readOnce<Event>(
  { api, path, schema, onEvent, onConnection, signal }: FollowOptions<Event>,
  last: string,
  onSeen: (id: string) => void,
): Promise<void> {
  const attempt = new AbortController();
  const both = AbortSignal.any([signal, attempt.signal]);
  let timer = 0;
  const heard = () => {
    clearTimeout(timer);
    timer = window.setTimeout(() => attempt.abort(), SILENCE);
  };
  heard();
  try {
    const headers: HeadersInit = { accept: 'text/event-stream', ...(last !== '' && { 'last-event-id': last }) };
    const response = await api.send(api.url(path), { headers, signal: both });
    onConnection({ state: 'open' });
    for await (const { id, data } of eventsOf(response, heard)) {
      onSeen(id);
      onEvent(schema.parse(JSON.parse(data)));
    }
  } finally {
    clearTimeout(timer);
    attempt.abort();
  }
}

/** The events of an answer, as they come. */
export function eventsOf(response: Response, onBytes: () => void = () => {}) {
  if (!response.body) throw new ApiError(0, 'unreachable', 'The server answered without a stream.');
  return readServerSentEvents(linesOf(response.body, onBytes));
}

/** Not every browser can iterate over a stream. */
async function* linesOf(body: ReadableStream<Uint8Array>, onBytes: () => void): AsyncGenerator<string> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let rest = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes();
      const lines = (rest + decoder.decode(value, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) yield line.endsWith('\r') ? line.slice(0, -1) : line;
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** Ends early when the page comes back into view or the network does: whoever looks wants to see now. */
function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      window.removeEventListener('online', done);
      document.removeEventListener('visibilitychange', done);
      resolve();
    };
    const timer = setTimeout(done, milliseconds);
    signal.addEventListener('abort', done);
    window.addEventListener('online', done);
    document.addEventListener('visibilitychange', done);
  });
}
