/**
 * One connection to the bridge: tells by its first byte whether the client speaks lines of JSON or HTTP, and ends a
 * connection whose request is too large, or does not arrive whole in time. What the request means is left to others.
 */

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { CuvetteError, toCuvetteError } from '../../errors.ts';
import { readLines, writeLine } from '../../json-lines.ts';
import type { BridgeEvent } from './protocol.ts';

export interface RequestLimits {
  /** Bytes of a request. */
  most: number;
  /** Milliseconds until it has arrived whole; and until a client that has its answer is gone. */
  patience: number;
}

export interface Connection {
  /** Aborted when the client is gone. */
  readonly gone: AbortSignal;
  /** The request is here, whole. */
  arrived(): void;
}

/** Sends an event; a promise for when the client has taken enough of what was sent, if it lags behind. */
export type WriteEvent = (event: BridgeEvent) => Promise<void> | undefined;

interface Protocols {
  /** Answers one request as a line; what it throws is for the client. */
  line(line: string, write: WriteEvent, connection: Connection): Promise<void>;
  http: Server;
}

export function openConnection(socket: Socket, protocols: Protocols, { most, patience }: RequestLimits): Connection {
  const gone = new AbortController();
  const destroy = () => socket.destroy();
  const deadline = setTimeout(destroy, patience);
  const connection = { gone: gone.signal, arrived: () => clearTimeout(deadline) };
  socket.on('error', destroy);
  socket.once('close', () => {
    clearTimeout(deadline);
    gone.abort();
  });
  socket.once('data', (first: Buffer) => {
    socket.pause();
    socket.unshift(first);
    if (startsMethod(first)) protocols.http.emit('connection', socket);
    else speakLines();
    socket.resume();
  });
  return connection;

  function speakLines(): void {
    const write = (event: BridgeEvent) => (socket.writable && !writeLine(socket, event) ? drained(socket) : undefined);
    const fail = ({ code, message }: CuvetteError) => write({ type: 'failed', code, message });
    const finish = () => socket.end(() => setTimeout(destroy, patience).unref());
    let received = 0;
    let isAnswering = false;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received <= most) return;
      if (!isAnswering) fail(tooLarge(most));
      socket.destroySoon();
    });
    readLines(socket, (line) => {
      if (isAnswering || received > most) return;
      isAnswering = true;
      connection.arrived();
      protocols
        .line(line, write, connection)
        .catch((error: unknown) => fail(toCuvetteError(error)))
        .finally(finish);
    });
  }
}

function drained(socket: Socket): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      socket.off('drain', end).off('close', end);
      resolve();
    };
    socket.once('drain', end).once('close', end);
  });
}

export function tooLarge(most: number): CuvetteError {
  return new CuvetteError(
    'too_large',
    `The request is larger than ${most} bytes, the most that the bridge takes. Put what is large into a file, and read it from the code.`,
  );
}

/** As every request of HTTP starts, and no JSON does. */
function startsMethod([byte = 0]: Buffer): boolean {
  return byte >= 65 && byte <= 90;
}
