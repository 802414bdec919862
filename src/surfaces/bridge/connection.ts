/**
 * Serves one connection to the bridge: detects by its first byte whether the client speaks lines of JSON or HTTP, and closes a
 * connection whose request is too large or does not arrive in time.
 */

import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { CuvetteError, toCuvetteError } from '../../errors.ts';
import { drained, readLines, writeLine } from '../../json-lines.ts';
import type { BridgeEvent } from './protocol.ts';

export interface RequestLimits {
  /** Of a request. */
  mostBytes: number;
  /** Milliseconds until a request must have arrived, and until a client that has its answer must have closed. */
  deadline: number;
}

export interface BridgeConnection {
  /** Aborted when the client is gone. */
  readonly gone: AbortSignal;
  /** Called when the whole request has arrived. */
  arrived(): void;
}

/** Sends an event; a promise for when the client has taken enough of what was sent, if it lags behind. */
export type WriteEvent = (event: BridgeEvent) => Promise<void> | undefined;

interface Protocols {
  /** Answers a request of one line; the client is told what it throws. */
  line(line: string, write: WriteEvent, connection: BridgeConnection): Promise<void>;
  http: Server;
}

export function openBridgeConnection(
  socket: Socket,
  protocols: Protocols,
  { mostBytes, deadline }: RequestLimits,
): BridgeConnection {
  const gone = new AbortController();
  const destroy = () => socket.destroy();
  const timer = setTimeout(destroy, deadline);
  const connection = { gone: gone.signal, arrived: () => clearTimeout(timer) };
  socket.on('error', destroy);
  socket.once('close', () => {
    clearTimeout(timer);
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
    const finish = () => socket.end(() => setTimeout(destroy, deadline).unref());
    let received = 0;
    let isAnswering = false;
    socket.on('data', (chunk: Buffer) => {
      received += chunk.length;
      if (received <= mostBytes) return;
      if (!isAnswering) fail(requestTooLarge(mostBytes));
      socket.destroySoon();
    });
    readLines(socket, (line) => {
      if (isAnswering || received > mostBytes) return;
      isAnswering = true;
      connection.arrived();
      protocols
        .line(line, write, connection)
        .catch((error: unknown) => fail(toCuvetteError(error)))
        .finally(finish);
    });
  }
}

export function requestTooLarge(mostBytes: number): CuvetteError {
  return new CuvetteError(
    'too_large',
    `The request is larger than ${mostBytes} bytes, the most that the bridge takes. Put what is large into a file, and read it from the code.`,
  );
}

/** Whether the first byte is a capital letter, as in every HTTP request and in no JSON. */
function startsMethod([byte = 0]: Buffer): boolean {
  return byte >= 65 && byte <= 90;
}
