/**
 * A lab that is served elsewhere, reached over HTTP with its token. Every call has an id: when the connection is lost, the call goes on
 * there, and is joined again by its id, so that it never runs twice.
 */

import { randomUUID } from 'node:crypto';
import type { ReadableStream } from 'node:stream/web';
import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../../errors.ts';
import { isLoopback } from '../../loopback.ts';
import type { Lab, LabContext } from '../core/lab.ts';
import type { Primitive } from '../primitives/primitive.ts';
import { ROUTED } from '../primitives/table.ts';
import { createLostCalls, type LostCall, type LostCalls } from './lost-calls.ts';
import { errorFrom, forgotten, LostConnection, lostBy, refusal, restarted, unreachable } from './remote-errors.ts';
import { eventsOf } from './remote-events.ts';
import { EVENTS, HEADERS, STILL_HERE } from './wire.ts';

export interface RemoteLabOptions {
  endpoint: string;
  token: string | undefined;
  /** Shared with the other labs of this process: the address of a lab may change. */
  lost?: LostCalls;
  /** Milliseconds before each time that a lost connection is tried again. */
  waits?: readonly number[];
  /** Milliseconds without even a sign of life, after which a connection is dead. */
  silence?: number;
}

const WAITS = [0, 1000, 2000, 4000];
/** A lab must still be waiting for its client by then. */
const SILENCE = 2.5 * STILL_HERE;
/** Milliseconds that telling a lab to stop may take. */
const FAREWELL = 2000;

/** Bytes a millisecond: a line that takes a request more slowly is taken for dead. */
const SLOWEST = 20;

/** A call on its way, over however many connections. */
interface Sent {
  primitive: Primitive;
  args: Record<string, unknown>;
  id: string;
  /** The number of the last event that came. */
  seen: number;
  /** How often anything came that had not come before, signs of life included. */
  heard: number;
  /** Whether it may have arrived: then it is joined, and not sent. */
  mayRun: boolean;
  /** The lab that it was sent to, if that has ever answered. */
  instance: string | undefined;
  /** Whether an earlier call has lost it, whose caller knows: then it is sent anew if it is not known there. */
  isOld: boolean;
}

/** What a lab says of a call that was to be joined, and that it cannot give. */
type Missing = 'never came' | 'not known' | 'over';

export function createRemoteLab(options: RemoteLabOptions): Lab {
  const { endpoint, token, lost = createLostCalls(), waits = WAITS, silence = SILENCE } = options;
  const base = parseEndpoint(endpoint);
  const access = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const farewells = new Set<Promise<unknown>>();
  /** The name of the lab that answered last. */
  let instance: string | undefined;

  /** Over as many connections as it takes, while there are any that bring something. */
  async function persist(sent: Sent, context: LabContext): Promise<Record<string, unknown>> {
    for (let failures = 0; ; failures += 1) {
      const { heard } = sent;
      try {
        return await attempt(sent, context);
      } catch (error) {
        if (!(error instanceof LostConnection) || context.signal.aborted) throw error;
        sent.mayRun ||= error.isSent;
        // Whoever only asks a question where nobody is should hear so at once.
        if (!sent.mayRun && !hasId(sent.primitive)) throw error;
        if (sent.heard > heard) failures = 0;
        const wait = waits[failures];
        if (wait === undefined) throw error;
        if (failures === 0) context.progress('The connection to the lab was lost; trying again.');
        await sleep(wait, undefined, { signal: context.signal });
      }
    }
  }

  async function attempt(sent: Sent, context: LabContext): Promise<Record<string, unknown>> {
    const connection = openConnection(context.signal, silence);
    try {
      const body = await send(sent, context.weights, connection);
      if (typeof body === 'string') return await sendAnew(sent, body, context);
      connection.isAlive();
      for await (const event of eventsOf(body, endpoint)) {
        connection.isAlive();
        if (event.number !== undefined && event.number <= sent.seen) continue;
        sent.seen = event.number ?? sent.seen;
        sent.heard += 1;
        if (event.progress !== undefined) context.progress(event.progress);
        if (event.output) context.output?.(event.output);
        if (event.error) throw errorFrom(event.error.code, event.error.message, endpoint);
        if (event.answer) return event.answer;
      }
      throw new LostConnection('it ended before its answer', true);
    } finally {
      connection.close();
    }
  }

  /** The events that are to come; or why there are none, if the call was to be joined. */
  async function send(
    sent: Sent,
    weights: string | undefined,
    connection: Connection,
  ): Promise<ReadableStream<Uint8Array> | Missing> {
    const { primitive, args, id, seen, mayRun } = sent;
    const { method, path } = primitive.route;
    const isJoin = hasId(primitive) && mayRun;
    if (!isJoin) sent.instance = instance;
    const url = new URL(`${base}${path}`);
    if (method === 'GET') for (const [key, value] of Object.entries(args)) url.searchParams.set(key, String(value));
    const request = method === 'POST' ? JSON.stringify(args) : '';
    connection.isAlive(request.length / SLOWEST);
    const response = await fetch(url, {
      method,
      headers: {
        accept: EVENTS,
        ...access,
        ...(weights !== undefined && { [HEADERS.model]: weights }),
        ...(hasId(primitive) && { [HEADERS.id]: id }),
        ...(isJoin && { [HEADERS.join]: '1', [HEADERS.after]: String(seen) }),
        ...(method === 'POST' && { 'content-type': 'application/json' }),
      },
      ...(method === 'POST' && { body: request }),
      // A token must not be led elsewhere.
      redirect: 'manual',
      signal: connection.signal,
    }).catch((error: unknown) => {
      throw lostBy(error);
    });
    const { ok, body, headers } = response;
    instance = headers.get(HEADERS.instance) ?? instance;
    if (ok && body && headers.get('content-type')?.includes(EVENTS)) return body as ReadableStream<Uint8Array>;
    const refused = await refusal(response, endpoint);
    if (!isJoin || !(refused instanceof CuvetteError)) throw refused;
    if (refused.code === 'call_over') return 'over';
    if (refused.code === 'unknown_call')
      return sent.instance !== undefined && sent.instance === instance ? 'never came' : 'not known';
    // What stands in for a lab while that is away is no reason to give a call up.
    if (refused.code === 'lab_unreachable')
      throw new LostConnection(`something else answers there with status ${response.status}`, true, refused);
    throw refused;
  }

  /** What keeps something may have kept it already: whether to do it again is for the caller to say. */
  async function sendAnew(sent: Sent, why: Missing, context: LabContext): Promise<Record<string, unknown>> {
    const keeps = sent.primitive.effect !== 'reads';
    if (why === 'over' && keeps) throw forgotten(endpoint);
    if (why === 'not known' && keeps && !sent.isOld) throw restarted(endpoint);
    if (why === 'over') sent.id = randomUUID();
    Object.assign(sent, { seen: 0, mayRun: false, isOld: false } satisfies Partial<Sent>);
    return attempt(sent, context);
  }

  /** Without it, the lab would go on for a while, in case the client comes back. */
  function sayStop(id: string): void {
    const signal = AbortSignal.timeout(FAREWELL);
    const farewell = fetch(`${base}/calls/${id}`, { method: 'DELETE', headers: access, redirect: 'manual', signal })
      .then((response) => response.body?.cancel())
      .catch(() => {})
      .finally(() => farewells.delete(farewell));
    farewells.add(farewell);
  }

  return {
    async call(name, args, context) {
      context.signal.throwIfAborted();
      const primitive = primitiveOf(name);
      const same: LostCall = { of: context.weights ?? endpoint, name, args };
      const known = hasId(primitive) ? lost.take(same) : undefined;
      const isOld = known !== undefined;
      const id = known ?? randomUUID();
      const sent: Sent = { primitive, args, id, seen: 0, heard: 0, mayRun: isOld, instance: undefined, isOld };
      try {
        return await persist(sent, context);
      } catch (error) {
        if (context.signal.aborted && hasId(primitive)) sayStop(sent.id);
        context.signal.throwIfAborted();
        if (!(error instanceof LostConnection)) throw error;
        const mayRun = sent.mayRun && hasId(primitive);
        if (mayRun) lost.keep(same, sent.id);
        throw unreachable(endpoint, error, mayRun);
      }
    },
    close: async () => void (await Promise.all(farewells)),
  };
}

interface Connection {
  signal: AbortSignal;
  /** It may be silent from now on, and for so many milliseconds more. */
  isAlive(more?: number): void;
  close(): void;
}

/** Ends with the caller's patience, or when it has been silent for too long: a cable that was pulled says nothing. */
function openConnection(signal: AbortSignal, silence: number): Connection {
  const silent = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  return {
    signal: AbortSignal.any([signal, silent.signal]),
    isAlive(more = 0) {
      clearTimeout(timer);
      timer = setTimeout(() => silent.abort(new Error('nothing came from it any more')), silence + more);
    },
    close: () => clearTimeout(timer),
  };
}

function primitiveOf(name: string): Primitive {
  const primitive = ROUTED.find((one) => one.name === name);
  if (!primitive) throw new Error(`There is no primitive ${name}.`);
  return primitive;
}

/** What is asked by GET is quick, and is simply asked again. */
function hasId({ route }: Primitive): boolean {
  return route.method === 'POST';
}

/** Without a slash at its end. A token that goes over a network in the clear is anybody's. */
export function parseEndpoint(endpoint: string): string {
  if (!URL.canParse(endpoint))
    throw new CuvetteError('invalid_input', `${endpoint} is no address. Give one as in https://host:8787.`);
  const url = new URL(endpoint);
  if (url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[(.*)\]$/, '$1')))
    throw new CuvetteError(
      'invalid_input',
      `${endpoint} is not encrypted, so that others could read the token. Use https, or a tunnel that ends on this machine: ssh -L 8787:127.0.0.1:8787 HOST`,
    );
  if (url.username || url.password || url.search || url.hash)
    throw new CuvetteError('invalid_input', `Give the address alone, as in https://host:8787, and the token as token.`);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}
