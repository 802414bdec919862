/**
 * Closes idle connections of an HTTP server beyond a limit: those that never had a request first, then the least recently used. Very many of them take
 * memory, and when all of them close in one moment, everybody else waits. A connection whose request is being answered is never closed.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Server as TlsServer } from 'node:tls';

/** More than as many clients keep open between two requests. */
const MOST_IDLE = 1000;

export function limitIdleConnections(server: Server, most = MOST_IDLE): void {
  /** Connections that had no request yet, the oldest first. */
  const unused = new Set<Socket>();
  /** Connections between two requests, the least recently used first. */
  const resting = new Set<Socket>();
  const requests = new WeakMap<Socket, number>();

  function add(socket: Socket, to: Set<Socket>): void {
    if (socket.destroyed) return;
    to.add(socket);
    if (unused.size + resting.size <= most) return;
    // The request of the newest may be on its way.
    const [oldest] = unused.size > 1 ? unused : resting;
    oldest?.destroy();
    remove(oldest);
  }

  function remove(socket: Socket | undefined): void {
    if (!socket) return;
    unused.delete(socket);
    resting.delete(socket);
  }

  /** Of the requests that the connection has under way; a client may send the next before the last is answered. */
  function count(socket: Socket, more: 1 | -1): number {
    const under = (requests.get(socket) ?? 0) + more;
    requests.set(socket, under);
    return under;
  }

  // Requests over TLS come by its own sockets.
  server.on(server instanceof TlsServer ? 'secureConnection' : 'connection', (socket: Socket) => {
    socket.once('close', () => remove(socket));
    add(socket, unused);
  });
  server.on('request', ({ socket }: IncomingMessage, response: ServerResponse) => {
    remove(socket);
    count(socket, 1);
    response.once('close', () => {
      if (count(socket, -1) === 0) add(socket, resting);
    });
  });
}
