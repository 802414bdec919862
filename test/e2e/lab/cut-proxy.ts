/** Forwards connections to a server, and can cut them, swallow answers, or lead to another server afterwards. */

import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { onTestFinished } from 'vitest';

export interface CutProxy {
  readonly url: string;
  /** Where the next connections lead. */
  leadTo(url: string): void;
  /** From here on, answers of events do not come through, until the connections are cut. */
  silence(): void;
  /** Breaks those that are open. */
  cut(): void;
}

/** How a request for events begins. */
const REQUEST = 'POST /exec/stream';

export async function startCutProxy(target: string): Promise<CutProxy> {
  const sockets = new Set<Socket>();
  let port = Number(new URL(target).port);
  let isSilent = false;
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    let isMute = false;
    near.on('data', (bytes) => {
      isMute ||= isSilent && bytes.includes(REQUEST);
      far.write(bytes);
    });
    far.on('data', (bytes) => isMute || near.write(bytes));
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        sockets.delete(one);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const cut = () => {
    isSilent = false;
    for (const socket of sockets) socket.destroy();
  };
  onTestFinished(() => {
    server.close();
    cut();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    leadTo(url) {
      port = Number(new URL(url).port);
    },
    silence() {
      isSilent = true;
    },
    cut,
  };
}
