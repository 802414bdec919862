import { once } from 'node:events';
import { createServer, request, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { limitIdleConnections } from '../../src/surfaces/idle-connections.ts';

const MOST = 3;

let server: Server;
let port: number;
/** Ends the answers that wait. */
let answers: (() => void)[];
let sockets: Socket[];

beforeEach(async () => {
  [answers, sockets] = [[], []];
  server = createServer((_, response) => answers.push(() => response.end('done')));
  limitIdleConnections(server, MOST);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ({ port } = server.address() as AddressInfo);
});

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

async function dial(): Promise<Socket> {
  const accepted = once(server, 'connection');
  const socket = connect(port, '127.0.0.1').on('error', () => {});
  sockets.push(socket);
  await Promise.all([once(socket, 'connect'), accepted]);
  socket.resume();
  return socket;
}

/** Sends a request, and waits until the server has it. */
async function ask(socket: Socket): Promise<void> {
  const before = answers.length;
  socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n\r\n');
  await expect.poll(() => answers.length).toBeGreaterThan(before);
}

async function askAndWait(socket: Socket): Promise<void> {
  await ask(socket);
  const answered = once(socket, 'data');
  answers.pop()?.();
  await answered;
}

async function used(): Promise<Socket> {
  const socket = await dial();
  await askAndWait(socket);
  return socket;
}

function open(): Promise<number> {
  return new Promise((resolve, reject) => {
    server.getConnections((error, count) => (error ? reject(error) : resolve(count)));
  });
}

describe('a server with very many idle connections', () => {
  test('closes the one that was used least recently', async () => {
    const [first, second, third] = [await used(), await used(), await used()];
    await askAndWait(first);
    const closed = once(second, 'close');
    await used();
    await closed;
    expect([first.destroyed, third.destroyed]).toEqual([false, false]);
    await expect.poll(open).toBe(MOST);
  });

  test('closes those that never had a request before those that had one', async () => {
    const old = await used();
    for (let i = 0; i < 3 * MOST; i += 1) await dial();
    expect(old.destroyed).toBe(false);
    await askAndWait(old);
    await expect.poll(open).toBe(MOST);
  });

  test('closes none whose request is being answered, or whose next request is', async () => {
    const busy = await dial();
    await ask(busy);
    await ask(busy);
    answers.shift()?.();
    await once(busy, 'data');
    for (let i = 0; i < 2 * MOST; i += 1) await dial();
    const answered = once(busy, 'data');
    answers.shift()?.();
    await answered;
    expect(busy.destroyed).toBe(false);
    await expect.poll(open).toBe(MOST);
  });

  test('answers a new caller', async () => {
    for (let i = 0; i < 5 * MOST; i += 1) await dial();
    const asking = request({ port, host: '127.0.0.1', agent: false }).end();
    await expect.poll(() => answers).toHaveLength(1);
    answers.pop()?.();
    const [response] = await once(asking, 'response');
    expect(response.statusCode).toBe(200);
    response.resume();
  });
});
