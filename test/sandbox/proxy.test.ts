import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { createServer as createWebServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { parseAllowList } from '../../src/sandbox/allow-list.ts';
import { openProxy, type ProxyOptions } from '../../src/sandbox/proxy.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const OWN_PUBLIC_ADDRESS = '9.9.9.9';

/** The machine of a test has no public address. */
vi.mock('node:os', async (original) => ({
  ...(await original<typeof import('node:os')>()),
  networkInterfaces: () => ({ lo: [{ address: '127.0.0.1' }], eth0: [{ address: OWN_PUBLIC_ADDRESS }] }),
}));

/** Everything here is on loopback, which a list has to name; names are what `hosts` says. */
async function proxy(entries: string[], hosts: Record<string, string[]> = {}, options: Partial<ProxyOptions> = {}) {
  const socket = join(temporaryFolder(), 'proxy.sock');
  const lines: string[] = [];
  const asked: string[] = [];
  const opened = await openProxy({
    socket,
    allow: parseAllowList(entries),
    log: (line) => lines.push(line),
    lookup: async (host) => {
      asked.push(host);
      const addresses = hosts[host];
      if (!addresses) throw new Error(`getaddrinfo ENOTFOUND ${host}`);
      return addresses.map((address) => ({ address }));
    },
    ...options,
  });
  onTestFinished(() => opened.close());
  return { socket, lines, asked, close: opened.close };
}

async function listen<S extends Server>(server: S, host = '127.0.0.1'): Promise<{ server: S; port: number }> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  await once(server.listen(0, host), 'listening');
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return { server, port: (server.address() as AddressInfo).port };
}

/** A server that hands its connections to the test. */
async function bareServer() {
  const { server, port } = await listen(createServer({ allowHalfOpen: true }));
  return { port, next: async (): Promise<Socket> => (await once(server, 'connection'))[0] };
}

/** A server whose queue is full, and which never takes anybody from it. */
async function silentServer(host: string, port: number): Promise<void> {
  const listens = `require('node:net').createServer().listen({ host: '${host}', port: ${port}, backlog: 1 }, () => {
    require('node:fs').writeSync(1, 'listens');
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  })`;
  const child = spawn(process.execPath, ['-e', listens], { stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  for (let count = 0; count < 2; count++) {
    const waiting = connect({ host, port });
    waiting.on('error', () => {});
    onTestFinished(() => void waiting.destroy());
    await once(waiting, 'connect');
  }
}

const webServer = (handler: (request: IncomingMessage, response: ServerResponse) => void) =>
  listen(createWebServer(handler));

function client(path: string): Socket {
  const socket = connect({ path, allowHalfOpen: true });
  socket.on('error', () => {});
  onTestFinished(() => void socket.destroy());
  return socket;
}

/** All that comes until the other side ends; this side stays open. */
async function read(socket: Socket): Promise<string> {
  const pieces: Buffer[] = [];
  socket.on('data', (piece) => pieces.push(piece));
  await once(socket, 'end');
  return Buffer.concat(pieces).toString();
}

/** All that comes back for these bytes. */
async function say(path: string, bytes: string): Promise<string> {
  const socket = client(path);
  socket.write(bytes);
  return read(socket);
}

const get = (path: string, url: string, headers = '') =>
  say(path, `GET ${url} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`);

/** A tunnel, after the proxy's answer. */
async function tunnel(path: string, target: string, early = ''): Promise<Socket> {
  const socket = client(path);
  socket.write(`CONNECT ${target} HTTP/1.1\r\nHost: ${target}\r\n\r\n${early}`);
  await once(socket, 'readable');
  const head = String(socket.read());
  expect(head).toBe('HTTP/1.1 200 Connection established\r\n\r\n');
  return socket;
}

/** Both ends of a tunnel. */
async function joined(limits: NonNullable<ProxyOptions['limits']> = {}) {
  const { port, next } = await bareServer();
  const { socket, close } = await proxy([`127.0.0.1:${port}`], {}, { limits });
  const accepted = next();
  const inside = await tunnel(socket, `127.0.0.1:${port}`);
  return { inside, outside: await accepted, close };
}

const closed = (socket: Socket) =>
  socket.closed ? Promise.resolve() : new Promise((resolve) => socket.once('close', resolve));

describe('the proxy', () => {
  it('listens for its owner only, in the place of an earlier one, and leaves nothing behind', async () => {
    const path = join(temporaryFolder(), 'sock');
    writeFileSync(path, 'left by an earlier one');
    const { close } = await proxy([], {}, { socket: path });
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(path).isSocket()).toBe(true);
    await close();
    expect(() => statSync(path)).toThrow('ENOENT');
  });

  it('ends every connection when it closes', async () => {
    const { inside, outside, close } = await joined();
    inside.resume();
    outside.resume();
    await Promise.all([close(), once(inside, 'end'), once(outside, 'end')]);
  });

  it.each([
    'CONNECT example.com HTTP/1.1',
    'CONNECT example.com:0 HTTP/1.1',
    'CONNECT user@example.com:443 HTTP/1.1',
    'CONNECT example%2ecom:443 HTTP/1.1',
    'CONNECT http://example.com:443/ HTTP/1.1',
    'GET / HTTP/1.1',
    'GET https://example.com/ HTTP/1.1',
    'GET http:///path HTTP/1.1',
    'GET http://user:secret@example.com/ HTTP/1.1',
    'GET http://example.com\\@other.example/ HTTP/1.1',
    'GET ftp://example.com/ HTTP/1.1',
    'OPTIONS * HTTP/1.1',
    'nonsense',
  ])('answers 400 to %s', async (line) => {
    const { socket, asked } = await proxy(['*', 'example.com']);
    expect(await say(socket, `${line}\r\nConnection: close\r\n\r\n`)).toMatch(/^HTTP\/1.1 400 /);
    expect(asked).toEqual([]);
  });

  it('refuses a host that is not in the list, without looking it up, and says which setting it is', async () => {
    const { socket, lines, asked } = await proxy(['packages.example.org']);
    const sentence = (host: string) =>
      `Code may not reach ${host}: it is not among the hosts of --network (CUVETTE_NETWORK).`;
    for (const answer of [
      await say(socket, 'CONNECT evil.example:443 HTTP/1.1\r\n\r\n'),
      await say(socket, 'CONNECT evil.example:443 HTTP/1.0\r\n\r\n'),
      await get(socket, 'http://evil.example:443/'),
    ]) {
      expect(answer.startsWith(`HTTP/1.1 403 ${sentence('evil.example:443')}\r\n`)).toBe(true);
      expect(answer.endsWith(`\r\n\r\n${sentence('evil.example:443')}\n`)).toBe(true);
    }
    expect(await get(socket, 'http://packages.example.org:22/')).toContain(sentence('packages.example.org:22'));
    expect(asked).toEqual([]);
    expect(lines).toHaveLength(4);
    expect(lines[0]).toBe(`403 ${sentence('evil.example:443')}`);
  });

  it('refuses a name at an address that is not public, unless the list has that address', async () => {
    const { port, next } = await bareServer();
    const hosts = {
      'inner.example': ['127.0.0.1'],
      'mapped.example': ['::ffff:127.0.0.1'],
      'meta.example': ['169.254.169.254'],
    };
    const names = Object.keys(hosts).map((name) => `${name}:${port}`);
    const strict = await proxy([...names, `*:${port}`, '127.0.0.1'], hosts);
    for (const name of names) {
      const answer = await say(strict.socket, `CONNECT ${name} HTTP/1.1\r\n\r\n`);
      expect(answer).toMatch(
        /^HTTP\/1.1 403 Code may not reach .*, which is this machine or not on the public internet, .*--network \(CUVETTE_NETWORK\)/,
      );
    }
    expect(await say(strict.socket, `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 /);

    const open = await proxy([...names, `127.0.0.1:${port}`], hosts);
    const accepted = next();
    await tunnel(open.socket, `inner.example:${port}`);
    await accepted;
    expect(await say(open.socket, `CONNECT mapped.example:${port} HTTP/1.1\r\n\r\n`)).toMatch(/^HTTP\/1.1 403 /);
  });

  it('looks a name up once, and connects to what it found', async () => {
    const { port, next } = await bareServer();
    let count = 0;
    const lookup = async () => [{ address: count++ === 0 ? '127.0.0.1' : '169.254.169.254' }];
    const { socket } = await proxy([`once.example:${port}`, `127.0.0.1:${port}`], {}, { lookup });
    const accepted = next();
    await tunnel(socket, `once.example:${port}`);
    await accepted;
    expect(count).toBe(1);
  });

  it('passes over addresses that may not be used, and those where nobody answers', async () => {
    const { port, next } = await bareServer();
    const { socket } = await proxy([`many.example:${port}`, `127.0.0.1:${port}`, `127.0.0.2:${port}`], {
      'many.example': ['169.254.169.254', '127.0.0.2', '127.0.0.1'],
    });
    const accepted = next();
    await tunnel(socket, `many.example:${port}`);
    expect((await accepted).localAddress).toBe('127.0.0.1');
  });

  it('refuses a public address that is its own machine', async () => {
    const { socket } = await proxy(['*'], { 'own.example': [OWN_PUBLIC_ADDRESS] });
    for (const host of ['own.example', OWN_PUBLIC_ADDRESS]) {
      expect(await say(socket, `CONNECT ${host}:443 HTTP/1.1\r\n\r\n`)).toMatch(
        /^HTTP\/1.1 403 .* it is at 9\.9\.9\.9, /,
      );
    }
  });

  it('answers 502 with the reason for what cannot be reached', async () => {
    const { port, server } = await listen(createServer());
    server.close();
    const { socket } = await proxy([`127.0.0.1:${port}`, 'gone.example', 'empty.example'], { 'empty.example': [] });
    const refused = `127.0.0.1:${port} cannot be reached: connect ECONNREFUSED 127.0.0.1:${port}.`;
    expect(await say(socket, `CONNECT 127.0.0.1:${port} HTTP/1.1\r\n\r\n`)).toContain(`HTTP/1.1 502 ${refused}\r\n`);
    expect(await get(socket, `http://127.0.0.1:${port}/`)).toContain(`HTTP/1.1 502 ${refused}\r\n`);
    expect(await get(socket, 'http://gone.example/')).toContain('ENOTFOUND gone.example');
    expect(await get(socket, 'http://empty.example/')).toContain('it has no address');
  });

  it('answers 504 when it takes too long', async () => {
    const { socket } = await proxy(
      ['slow.example'],
      {},
      { lookup: () => new Promise(() => {}), limits: { connect: 20 } },
    );
    expect(await say(socket, 'CONNECT slow.example:443 HTTP/1.1\r\n\r\n')).toContain(
      'HTTP/1.1 504 slow.example:443 cannot be reached: it did not answer in time.',
    );
    expect(await get(socket, 'http://slow.example/')).toMatch(/^HTTP\/1.1 504 /);
  });

  it('gives an address that does not answer its share of the time, then tries the next', async () => {
    const { port, next } = await bareServer();
    await silentServer('127.0.0.2', port);
    // Long enough for a busy machine to connect within the second one's share.
    const both = await proxy(
      [`both.example:${port}`, `127.0.0.1:${port}`, `127.0.0.2:${port}`],
      {
        'both.example': ['127.0.0.2', '127.0.0.1'],
      },
      { limits: { connect: 3000 } },
    );
    const accepted = next();
    await tunnel(both.socket, `both.example:${port}`);
    expect((await accepted).localAddress).toBe('127.0.0.1');
    const silent = await proxy(
      [`silent.example:${port}`, `127.0.0.2:${port}`],
      { 'silent.example': ['127.0.0.2'] },
      {
        limits: { connect: 200 },
      },
    );
    expect(await get(silent.socket, `http://silent.example:${port}/`)).toMatch(/^HTTP\/1.1 504 /);
  });

  it('answers 503 above the most connections at once, and serves again when one has ended', async () => {
    const { port } = await listen(createServer((socket) => socket.resume()));
    const { socket } = await proxy([`127.0.0.1:${port}`], {}, { limits: { connections: 2 } });
    const target = `127.0.0.1:${port}`;
    const first = await tunnel(socket, target);
    await tunnel(socket, target);
    expect(await say(socket, `CONNECT ${target} HTTP/1.1\r\n\r\n`)).toMatch(
      /^HTTP\/1.1 503 There are 2 connections already/,
    );
    expect(await get(socket, `http://${target}/`)).toMatch(/^HTTP\/1.1 503 /);
    first.destroy();
    await expect.poll(() => say(socket, 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n')).toMatch(/^HTTP\/1.1 400 /);
  });
});

describe('a tunnel through the proxy', () => {
  it('passes bytes both ways, those that came early too', async () => {
    const { port, next } = await bareServer();
    const { socket } = await proxy([`127.0.0.1:${port}`]);
    const accepted = next();
    const inside = await tunnel(socket, `127.0.0.1:${port}`, 'early ');
    const outside = await accepted;
    inside.end('late');
    expect(await read(outside)).toBe('early late');
    outside.end('answer');
    expect(await read(inside)).toBe('answer');
  });

  it('stays open one way after the other way has ended', async () => {
    const { inside, outside } = await joined();
    outside.end('all that I say');
    expect(await read(inside)).toBe('all that I say');
    inside.end('much more');
    expect(await read(outside)).toBe('much more');
    await Promise.all([closed(inside), closed(outside)]);
  });

  it('sends everything that it was given before it closes', async () => {
    const { inside, outside } = await joined();
    const data = 'x'.repeat(20 << 20);
    outside.end();
    inside.resume();
    await once(inside, 'end');
    inside.end(data); // The reader on the other side has not begun.
    expect((await read(outside)).length).toBe(data.length);
  });

  it.each(['inside', 'outside'] as const)(
    'makes the writer wait for a reader that does not read: %s',
    async (writer) => {
      const ends = await joined();
      const from = ends[writer];
      const to = writer === 'inside' ? ends.outside : ends.inside;
      let taken = 0;
      const piece = Buffer.alloc(1 << 16);
      for (let isFull = false; !isFull && taken < 64 << 20; ) {
        taken += piece.length;
        isFull = await Promise.race([
          new Promise<boolean>((resolve) => from.write(piece, () => resolve(false))),
          sleep(500, true),
        ]);
      }
      expect(taken).toBeLessThan(64 << 20);
      from.end();
      expect((await read(to)).length).toBe(taken);
    },
  );

  it.each(['inside', 'outside'] as const)('is gone on both sides when one breaks: %s', async (broken) => {
    const ends = await joined();
    const other = broken === 'inside' ? ends.outside : ends.inside;
    other.resume();
    if (broken === 'outside') ends.outside.resetAndDestroy();
    else ends.inside.destroy();
    other.write('is anybody there?');
    await once(other, 'end').catch(() => {});
    other.end();
    await closed(other);
  });

  it('ends when nothing moves for too long', async () => {
    const { inside, outside } = await joined({ idle: 50 });
    inside.resume();
    outside.resume();
    await Promise.all([once(inside, 'end'), once(outside, 'end')]);
  });
});

describe('a request through the proxy', () => {
  it('arrives with its headers, without what concerns the proxy, for the host of its address', async () => {
    const seen: IncomingMessage[] = [];
    const { port } = await webServer((request, response) => {
      seen.push(request);
      response.end();
    });
    const { socket } = await proxy([`web.example:${port}`, `127.0.0.1:${port}`], { 'web.example': ['127.0.0.1'] });
    const dropped = [
      'Proxy-Authorization: secret',
      'Proxy-Connection: keep-alive',
      'Keep-Alive: 5',
      'TE: trailers',
      'Upgrade: websocket',
      'X-Hop: 1',
    ];
    const headers = ['Host: evil.example', 'X-Kept: 1', 'X-Kept: 2', 'Connection: X-Hop', ...dropped, ''].join('\r\n');
    await get(socket, `http://WEB.example:${port}/a%2fb//c?d=%20&e#f`, headers);
    await get(socket, `http://web.example:${port}?only=query`);
    await get(socket, `http://web.example:${port}`);
    expect(seen.map(({ url }) => url)).toEqual(['/a%2fb//c?d=%20&e', '/?only=query', '/']);
    expect(seen[0]?.headers).toEqual({ host: `web.example:${port}`, 'x-kept': '1, 2', connection: 'close' });
  });

  it('gets the answer as it is, without what concerns one connection only', async () => {
    const { port } = await webServer((_, response) => {
      const headers = [
        'Set-Cookie',
        'a=1',
        'Set-Cookie',
        'b=2',
        'X-Hop',
        '1',
        'Connection',
        'close, X-Hop',
        'Date',
        'then',
      ];
      response.writeHead(418, 'Short and stout', headers);
      response.end('tea');
    });
    const { socket } = await proxy([`127.0.0.1:${port}`]);
    const answer = await get(socket, `http://127.0.0.1:${port}/`);
    expect(answer).toMatch(/^HTTP\/1.1 418 Short and stout\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nDate: then\r\n/);
    expect(answer).not.toContain('X-Hop');
    expect(answer).toContain('tea');
  });

  it.each([
    ['POST', 'Content-Length: 9', 'some body'],
    ['POST', 'Transfer-Encoding: chunked', '5\r\nsome \r\n4\r\nbody\r\n0\r\n\r\n'],
    ['GET', 'Transfer-Encoding: chunked', '9\r\nsome body\r\n0\r\n\r\n'],
    ['GET', 'Connection: Content-Length\r\nContent-Length: 9', 'some body'],
  ])('is sent on with its body: %s, %s', async (method, framing, body) => {
    const { port } = await webServer(async (request, response) => response.end(`got ${await text(request)}`));
    const { socket } = await proxy([`127.0.0.1:${port}`]);
    const head = `${method} http://127.0.0.1:${port}/ HTTP/1.1\r\n${framing}\r\nConnection: close\r\n\r\n`;
    expect(await say(socket, head + body)).toContain('got some body');
  });

  it('and its answer are streamed', async () => {
    const { port } = await webServer((request, response) => request.pipe(response));
    const { socket } = await proxy([`127.0.0.1:${port}`]);
    const inside = client(socket);
    inside.write(`POST http://127.0.0.1:${port}/ HTTP/1.1\r\nContent-Length: 8\r\n\r\n`);
    for (const part of ['half', 'rest']) {
      inside.write(part);
      let got = '';
      while (!got.includes(part)) got += (await once(inside, 'data'))[0];
    }
  });

  it('may follow another on the same connection, even if that was answered before it was read', async () => {
    const { port } = await webServer((request, response) => {
      if (request.method === 'GET') request.resume();
      response.end(`answer to ${request.method}`);
    });
    const { socket } = await proxy([`127.0.0.1:${port}`]);
    const inside = client(socket);
    inside.write(`POST http://127.0.0.1:${port}/ HTTP/1.1\r\nContent-Length: ${8 << 20}\r\n\r\n`);
    let got = '';
    inside.on('data', (data) => {
      got += data;
    });
    await expect.poll(() => got).toContain('answer to POST');
    inside.write(Buffer.alloc(8 << 20));
    inside.write(`GET http://127.0.0.1:${port}/ HTTP/1.1\r\n\r\n`);
    await expect.poll(() => got).toContain('answer to GET');
  });

  it('of HEAD gets the length, and no body', async () => {
    const { port } = await webServer((_, response) => response.writeHead(200, { 'content-length': 5 }).end());
    const { socket } = await proxy([`127.0.0.1:${port}`]);
    const answer = await say(socket, `HEAD http://127.0.0.1:${port}/ HTTP/1.1\r\nConnection: close\r\n\r\n`);
    expect(answer.toLowerCase()).toContain('content-length: 5\r\n');
    expect(answer.endsWith('\r\n\r\n')).toBe(true);
  });

  it.each([
    'not HTTP at all\r\n\r\n',
    'HTTP/1.1 200 \x7f\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 200 OK\r\nX-Odd: a\x7fb\r\nContent-Length: 0\r\n\r\n',
    'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: odd\r\n\r\n',
    'HTTP/1.1 000 Nothing\r\n\r\n',
    '',
  ])('gets 502 for an answer that is none: %j', async (bytes) => {
    const { port, next } = await bareServer();
    const { socket } = await proxy([`127.0.0.1:${port}`]);
    const accepted = next();
    const answer = get(socket, `http://127.0.0.1:${port}/`);
    (await accepted).resume().end(bytes);
    expect(await answer).toMatch(new RegExp(`^HTTP/1.1 502 127.0.0.1:${port} cannot be reached: `));
  });

  it('gets no end to an answer that broke off', async () => {
    const { port, next } = await bareServer();
    const { socket } = await proxy([`127.0.0.1:${port}`]);
    const accepted = next();
    const answer = get(socket, `http://127.0.0.1:${port}/`);
    const outside = await accepted;
    outside.resume().end('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n');
    expect(await answer).toMatch(/half\r\n$/);
  });

  it('whose client has gone is given up', async () => {
    const { port, next } = await bareServer();
    const { socket, lines } = await proxy([`127.0.0.1:${port}`]);
    const accepted = next();
    const inside = client(socket);
    inside.write(`POST http://127.0.0.1:${port}/ HTTP/1.1\r\nContent-Length: 100\r\n\r\nhalf`);
    const outside = (await accepted).resume();
    inside.destroy();
    await once(outside, 'end');
    await sleep(20); // What it might still have to say about it.
    expect(lines).toEqual([]);
  });
});
