/**
 * Makes calls to a remote Cuvette that survive lost connections. Every call has an id: when the connection is lost, the call goes on
 * there, and is joined again by its id, so that it never runs twice. What is sent and what the events mean is left to the kind of call.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../../errors.ts';
import type { ServerSentEvent } from '../../server-sent-events.ts';
import type { LabContext } from '../core/lab.ts';
import type { Connection, RemoteRequest } from './connection.ts';
import type { CallIdentity, DisconnectedCalls } from './disconnected-calls.ts';
import { forgotten, LostConnection, lostMessage, restarted, unreachable } from './remote-errors.ts';

export interface ResumableCall<Answer> {
  identity: CallIdentity;
  /** Whether it may run again without harm. */
  isRepeatable: boolean;
  /** Whether it is found again by its id; what is not, is simply asked again. */
  hasId: boolean;
  /** Sends the call; or joins the one of that id, after the last event that was taken. */
  request(id: string, isJoin: boolean): RemoteRequest;
  /** Takes an event; gives the answer, if that is the last one. */
  take(event: ServerSentEvent): { answer: Answer } | undefined;
  /** It is sent anew, and its events are numbered from the first again. */
  restart(): void;
  /** Stops the call of that id. */
  cancel(id: string): RemoteRequest;
}

export interface StartedCall<Answer> {
  answer: Promise<Answer>;
  /** Stops it there, and goes on listening. To give it up as a whole is the signal's. */
  cancel(): void;
}

type CallContext = Pick<LabContext, 'signal' | 'progress'>;

export interface ResumableCalls {
  start<Answer>(call: ResumableCall<Answer>, context: CallContext): StartedCall<Answer>;
  /** Waits until the last cancellations are sent. */
  close(): Promise<void>;
}

export interface ResumableCallsOptions {
  connection: Connection;
  /** Shared with the other connections of this process: the address of a lab may change. */
  disconnected: DisconnectedCalls;
  /** Milliseconds before each time that a lost connection is tried again. */
  waits: readonly number[];
}

/** A call on its way, over however many connections. */
interface Sent {
  id: string;
  /** How often anything came. */
  heard: number;
  /** Whether it may have arrived: then it is joined, and not sent. */
  mayRun: boolean;
  /** The process that it was sent to, if that has ever answered. */
  instance: string | undefined;
  /** Whether an earlier call has lost it, whose caller knows: then it is sent anew if it is not known there. */
  isOld: boolean;
}

/** Why a call that was to be joined is not there. */
type Missing = 'never came' | 'not known' | 'over';

/** Milliseconds that a cancellation may take, and for how long it is waited for at the end. */
const CANCELLATION = 10_000;
const FAREWELL = 2000;

export function createResumableCalls({ connection, disconnected, waits }: ResumableCallsOptions): ResumableCalls {
  const { remote } = connection;
  const farewells = new Set<Promise<unknown>>();

  function start<Answer>(call: ResumableCall<Answer>, { signal, progress }: CallContext): StartedCall<Answer> {
    const known = call.hasId && !signal.aborted ? disconnected.take(call.identity) : undefined;
    const isOld = known !== undefined;
    const sent: Sent = { id: known ?? randomUUID(), heard: 0, mayRun: isOld, instance: undefined, isOld };

    /** Over as many connections as it takes, while there are any that bring something. */
    async function persist(): Promise<Answer> {
      for (let failures = 0; ; failures += 1) {
        const { heard } = sent;
        try {
          return await attempt();
        } catch (error) {
          if (!(error instanceof LostConnection) || signal.aborted) throw error;
          sent.mayRun ||= error.isSent;
          // Whoever only asks a question where nobody is should hear so at once.
          if (!sent.mayRun && !call.hasId) throw error;
          if (sent.heard > heard) failures = 0;
          const wait = waits[failures];
          if (wait === undefined) throw error;
          if (failures === 0) progress(lostMessage(remote));
          await sleep(wait, undefined, { signal });
        }
      }
    }

    async function attempt(): Promise<Answer> {
      const events = await open();
      if (typeof events === 'string') return sendAnew(events);
      for await (const event of events) {
        sent.heard += 1;
        const last = call.take(event);
        if (last) return last.answer;
      }
      throw new LostConnection('it ended before its answer', true);
    }

    /** The events that are to come; or why there are none, if the call was to be joined. */
    async function open(): Promise<AsyncIterable<ServerSentEvent> | Missing> {
      const isJoin = call.hasId && sent.mayRun;
      if (!isJoin) sent.instance = connection.instance;
      try {
        return await connection.open(call.request(sent.id, isJoin), signal);
      } catch (error) {
        if (!isJoin || !(error instanceof CuvetteError)) throw error;
        if (error.code === 'call_over') return 'over';
        // A service of a version that knows no ids of calls does not say whether it has this one.
        if (error.code === 'invalid_input') return 'not known';
        if (error.code === 'unknown_call')
          return sent.instance !== undefined && sent.instance === connection.instance ? 'never came' : 'not known';
        // What stands in for a lab while that is away is no reason to give a call up.
        if (error.code === 'lab_unreachable') throw new LostConnection('something else answers there', true, error);
        throw error;
      }
    }

    /** What keeps something may have kept it already: whether to do it again is for the caller to say. */
    async function sendAnew(why: Missing): Promise<Answer> {
      if (why === 'over' && !call.isRepeatable) throw forgotten(remote);
      if (why === 'not known' && !call.isRepeatable && !sent.isOld) throw restarted(remote);
      if (why === 'over') sent.id = randomUUID();
      Object.assign(sent, { mayRun: false, isOld: false } satisfies Partial<Sent>);
      call.restart();
      return attempt();
    }

    /** Without it, the call would go on for a while, in case the client comes back. */
    function cancel(): void {
      if (!call.hasId) return;
      const farewell = connection
        .send(call.cancel(sent.id), AbortSignal.timeout(CANCELLATION))
        .then((response) => response.body?.cancel())
        .catch(() => {})
        .finally(() => farewells.delete(farewell));
      farewells.add(farewell);
    }

    async function conclude(): Promise<Answer> {
      signal.throwIfAborted();
      try {
        return await persist();
      } catch (error) {
        if (signal.aborted) cancel();
        signal.throwIfAborted();
        if (!(error instanceof LostConnection)) throw error;
        const mayRun = sent.mayRun && call.hasId;
        if (mayRun) disconnected.keep(call.identity, sent.id);
        throw unreachable(remote, error, mayRun);
      }
    }

    return { answer: conclude(), cancel };
  }

  return {
    start,
    close: async () => void (await Promise.race([Promise.all(farewells), sleep(FAREWELL, undefined, { ref: false })])),
  };
}
