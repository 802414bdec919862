/** Proxies connections to a server on this machine, which a test can cut as a tunnel or a network would be. */

import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface CutProxy {
  url: string;
  /** Ends every connection, without a word. */
  cut(): void;
  /** Lets nothing through any more on the connections that there are, and keeps them open. */
  freeze(): void;
  /** Ends as many of the next connections as they come. */
  refuse(count: number): void;
  /** Ends a connection with the next that a client says on it, which the server never hears. */
  swallow(): void;
  /** Cuts once this many bytes more have come from the server. */
  cutAfter(bytes: number): void;
  /** Later connections go to another server. */
  lead(url: string): void;
  /** How many connections have come. */
  connections(): number;
}

export async function openCutProxy(url: string): Promise<CutProxy> {
  let port = portOf(url);
  let refused = 0;
  let left = Number.POSITIVE_INFINITY;
  let count = 0;
  let isSwallowing = false;
  const sockets = new Set<Socket>();
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  const server = createServer((client) => {
    count += 1;
    client.on('error', () => {});
    refused -= 1;
    if (refused >= 0) {
      client.destroy();
      return;
    }
    const target = connect(port, '127.0.0.1');
    for (const socket of [client, target]) {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => {
        sockets.delete(socket);
        client.destroy();
        target.destroy();
      });
    }
    client.on('data', (chunk) => {
      if (!isSwallowing) return void target.write(chunk);
      isSwallowing = false;
      client.destroy();
    });
    target.on('data', (chunk) => {
      client.write(chunk.subarray(0, left));
      left -= chunk.length;
      if (left > 0) return;
      left = Number.POSITIVE_INFINITY;
      client.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    cut();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    cut,
    freeze() {
      for (const socket of sockets) socket.pause();
    },
    refuse: (number) => {
      refused = number;
    },
    swallow: () => {
      isSwallowing = true;
    },
    cutAfter: (bytes) => {
      left = bytes;
    },
    lead: (other) => {
      port = portOf(other);
    },
    connections: () => count,
  };
}

function portOf(url: string): number {
  return Number(new URL(url).port);
}
