/** Asks a lab that is served at another address, over HTTP and with its token: each primitive by its route. */

import type { Lab, LabContext } from '../core/lab.ts';
import type { Primitive } from '../primitives/primitive.ts';
import { ROUTED } from '../primitives/table.ts';
import { createConnection, type RemoteRequest } from './connection.ts';
import { createDisconnectedCalls, type DisconnectedCalls } from './disconnected-calls.ts';
import { EVENTS, HEADERS, HEARTBEAT, type LabCallEvent, labCallEvent } from './lab-protocol.ts';
import { errorFrom, notCuvette, type Remote } from './remote-errors.ts';
import { createResumableCalls, type ResumableCall } from './resumable-calls.ts';

export interface RemoteOptions {
  endpoint: string;
  token: string | undefined;
  /** Shared with the other labs of this process: the address of a lab may change. */
  disconnected?: DisconnectedCalls;
  /** Milliseconds before each time that a lost connection is tried again. */
  waits?: readonly number[];
  /** Milliseconds without even a heartbeat, after which a connection is dead. */
  silence?: number;
}

const WAITS = [0, 1000, 2000, 4000];
/** A lab must still be waiting for its client by then. */
const SILENCE = 2.5 * HEARTBEAT;

export function createRemoteLab(options: RemoteOptions): Lab {
  const { endpoint, token, disconnected = createDisconnectedCalls(), waits = WAITS, silence = SILENCE } = options;
  const remote: Remote = { endpoint, kind: 'lab' };
  const connection = createConnection({ remote, token, instanceHeader: HEADERS.instance, silence });
  const calls = createResumableCalls({ connection, disconnected, waits });
  return {
    call: async (name, args, context) =>
      calls.start(labCall(primitiveNamed(name), args, context, remote), context).answer,
    close: calls.close,
  };
}

function labCall(
  primitive: Primitive,
  args: Record<string, unknown>,
  { weights, progress, output }: LabContext,
  remote: Remote,
): ResumableCall<Record<string, unknown>> {
  const { name, effect, route } = primitive;
  // What is asked by GET is quick, and is simply asked again.
  const hasId = route.method === 'POST';
  const headers = { accept: EVENTS, ...(weights !== undefined && { [HEADERS.model]: weights }) };
  let seen = 0;
  return {
    identity: { of: weights ?? remote.endpoint, name, args },
    isRepeatable: effect === 'reads',
    hasId,
    request(id, isJoin): RemoteRequest {
      if (!hasId) return { method: 'GET', path: withQuery(route.path, args), headers };
      const join = isJoin && { [HEADERS.join]: '1', [HEADERS.after]: String(seen) };
      return { method: 'POST', path: route.path, body: args, headers: { ...headers, [HEADERS.id]: id, ...join } };
    },
    take({ data }) {
      const event = parse(data, remote);
      if (event.number !== undefined && event.number <= seen) return undefined;
      seen = event.number ?? seen;
      if (event.progress !== undefined) progress(event.progress);
      if (event.output) output?.(event.output);
      if (event.error) throw errorFrom(event.error.code, event.error.message, remote);
      return event.answer && { answer: event.answer };
    },
    restart() {
      seen = 0;
    },
    cancel: (id) => ({ method: 'DELETE', path: `/calls/${id}` }),
  };
}

function withQuery(path: string, args: Record<string, unknown>): string {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(args)) query.set(key, String(value));
  return query.size === 0 ? path : `${path}?${query}`;
}

function parse(line: string, remote: Remote): LabCallEvent {
  try {
    return labCallEvent.parse(JSON.parse(line));
  } catch (error) {
    throw notCuvette(remote, `one of its lines is no event (${line.slice(0, 80)})`, error);
  }
}

function primitiveNamed(name: string): Primitive {
  const primitive = ROUTED.find((one) => one.name === name);
  if (!primitive) throw new Error(`There is no primitive ${name}.`);
  return primitive;
}
