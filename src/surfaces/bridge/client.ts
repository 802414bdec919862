/** Calls the bridge for the shell client, on the bare socket: loading an HTTP client would cost more than the call. */

import { connect } from 'node:net';
import { CuvetteError } from '../../errors.ts';
import { readLines, writeLine } from '../../json-lines.ts';
import type { BridgeEvent, BridgeRequest } from './protocol.ts';

const OTHER_VERSION =
  'The server speaks otherwise: it is of another version of Cuvette. Restart it, or the agent that started it.';

/** Sends a request and calls back with each event of the answer; resolves at its end. */
export function callBridge(path: string, request: BridgeRequest, onEvent: (event: BridgeEvent) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connect(path);
    socket.once('error', (error) =>
      reject(
        new CuvetteError(
          'no_server',
          `The server's socket ${path} does not answer (${error.message}). Its server may have just ended; try again.`,
          { cause: error },
        ),
      ),
    );
    readLines(socket, (line) => {
      const event = parse(line);
      if (!event) reject(new CuvetteError('no_server', OTHER_VERSION));
      else if (event.type === 'failed') reject(new CuvetteError(event.code, event.message));
      else {
        onEvent(event);
        if (event.type !== 'done' && event.type !== 'answer') return;
        resolve();
      }
      socket.destroy();
    });
    socket.once('close', () =>
      reject(new CuvetteError('no_server', 'The server ended before it had answered. Its session is kept; try again.')),
    );
    writeLine(socket, request);
  });
}

function parse(line: string): BridgeEvent | undefined {
  try {
    return JSON.parse(line) as BridgeEvent;
  } catch {
    return undefined;
  }
}
