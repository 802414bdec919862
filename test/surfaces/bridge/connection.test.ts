import { request } from 'node:http';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import {
  type BridgeConnection,
  openBridgeConnection,
  type RequestLimits,
} from '../../../src/surfaces/bridge/connection.ts';
import { createBridgeHttp } from '../../../src/surfaces/bridge/http.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const IMPATIENT: RequestLimits = { mostBytes: 1000, deadline: 100 };
const PATIENT: RequestLimits = { mostBytes: 1000, deadline: 60_000 };

interface Asked {
  lines: string[];
  inputs: unknown[];
  signals: AbortSignal[];
}

/** A bridge's socket whose answers are given here: what is tested is how requests arrive. */
async function open(limits: RequestLimits, work: (signal: AbortSignal) => Promise<string> = async () => 'done') {
  const path = join(temporaryFolder(), 's');
  const asked: Asked = { lines: [], inputs: [], signals: [] };
  const connections = new Map<Socket, BridgeConnection>();
  const http = createBridgeHttp({
    mostBytes: limits.mostBytes,
    connectionOf: ({ socket }) => connections.get(socket),
    async execute(input, signal) {
      asked.inputs.push(input);
      asked.signals.push(signal);
      return { text: await work(signal), structured: {} };
    },
  });
  const server = createServer((socket) => {
    const connection = openBridgeConnection(
      socket,
      {
        http,
        async line(line, write, { gone }) {
          asked.lines.push(line);
          asked.signals.push(gone);
          write({ type: 'answer', text: await work(gone), structured: {}, isError: false });
        },
      },
      limits,
    );
    connections.set(socket, connection);
    socket.once('close', () => connections.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(path, resolve));
  onTestFinished(() => {
    for (const socket of connections.keys()) socket.destroy();
    server.close();
  });
  return { path, asked, connections };
}

/** Sends these pieces and gives what comes back until the other side ends the connection. */
function speak(path: string, pieces: (string | Buffer)[]): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(path);
    let text = '';
    socket.on('data', (chunk) => {
      text += chunk;
    });
    socket.on('error', () => {});
    socket.once('close', () => resolve(text));
    for (const piece of pieces) socket.write(piece);
  });
}

function post(path: string, body: string | Buffer, headers: Record<string, string> = {}) {
  return new Promise<{ status: number | undefined; body: string }>((resolve, reject) => {
    const sent = request({ socketPath: path, path: '/execute', method: 'POST', headers }, (response) => {
      let text = '';
      response.on('data', (chunk) => {
        text += chunk;
      });
      response.once('end', () => resolve({ status: response.statusCode, body: text }));
    });
    sent.once('error', reject);
    sent.end(body);
  });
}

const HEAD = 'POST /execute HTTP/1.1\r\nHost: localhost\r\n';

describe('a request to the bridge that does not arrive whole', () => {
  it.each([
    ['nothing at all', ''],
    ['half a line', '{"do": "execute", "code'],
    ['bytes that are neither JSON nor HTTP', Buffer.from([0, 255, 22, 3, 1, 128])],
    ['half a request line', 'POST /exec'],
    ['headers without an end', `${HEAD}Content-Type: application/json\r\n`],
    ['half a body', `${HEAD}Content-Length: 20\r\n\r\n{"code"`],
    ['a chunked body without an end', `${HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\n{"cod\r\n`],
  ])('is dropped, with its connection: %s', async (_, bytes) => {
    const { path, asked, connections } = await open(IMPATIENT);
    await speak(path, [bytes]);
    await expect.poll(() => connections.size).toBe(0);
    expect([asked.lines, asked.inputs]).toEqual([[], []]);
  });

  it('is dropped also if a byte of it comes now and then', async () => {
    const { path, connections } = await open(IMPATIENT);
    const socket = connect(path);
    socket.on('error', () => {});
    const closed = new Promise((resolve) => socket.once('close', resolve));
    const drip = setInterval(() => socket.write('{'), 10);
    await closed;
    clearInterval(drip);
    await expect.poll(() => connections.size).toBe(0);
  });
});

describe('a request to the bridge that is too large', () => {
  it('as a line is refused, and its connection ended', async () => {
    const { path, asked } = await open(PATIENT);
    const answer = await speak(path, [`{"do": "execute", "code": "${'x'.repeat(2000)}"}\n`]);
    expect(JSON.parse(answer)).toMatchObject({ type: 'failed', code: 'too_large', message: /1000 bytes/ });
    expect(asked.lines).toEqual([]);
  });

  it('as a line without an end is refused before it ends', async () => {
    const { path } = await open(PATIENT);
    expect(await speak(path, ['{', 'x'.repeat(2000)])).toContain('"code":"too_large"');
  });

  it.each([
    ['with its length told', {}],
    ['in chunks', { 'transfer-encoding': 'chunked' }],
  ])('as a body %s is refused with 413', async (_, headers) => {
    const { path, asked } = await open(PATIENT);
    const { status, body } = await post(path, JSON.stringify({ code: 'x'.repeat(2000) }), headers);
    expect([status, JSON.parse(body).detail]).toEqual([413, expect.stringContaining('1000 bytes')]);
    expect(asked.inputs).toEqual([]);
  });

  it('as headers is refused with 431', async () => {
    const { path } = await open(PATIENT);
    expect(await speak(path, [HEAD, `X-Long: ${'x'.repeat(100_000)}`])).toMatch(/^HTTP\/1\.1 431 /);
  });
});

describe('an answer of the bridge', () => {
  it('may take longer than the deadline of a request', async () => {
    const { path } = await open({ mostBytes: 1000, deadline: 1500 }, async () => {
      await sleep(2500);
      return 'late';
    });
    const answers = await Promise.all([post(path, '{"code": ""}'), speak(path, ['{"do": "call"}\n'])]);
    expect(answers[0]).toEqual({ status: 200, body: '{"result":"late"}\n' });
    expect(JSON.parse(answers[1])).toMatchObject({ type: 'answer', text: 'late' });
  });

  it('is the only one on its connection', async () => {
    const { path, asked } = await open(PATIENT);
    const lines = await speak(path, ['{"first": 1}\n{"second": 2}\n']);
    expect(lines.trim().split('\n')).toHaveLength(1);
    expect(asked.lines).toEqual(['{"first": 1}']);
    const both = `${HEAD}Content-Length: 2\r\n\r\n{}`;
    expect((await speak(path, [both, both])).match(/HTTP\/1\.1 200/g)).toHaveLength(1);
  });

  it('is not waited for by a client that is gone', async () => {
    const { path, asked } = await open(PATIENT, (signal) => {
      return new Promise((resolve) => signal.addEventListener('abort', () => resolve('given up')));
    });
    for (const bytes of ['{"do": "call"}\n', `${HEAD}Content-Length: 2\r\n\r\n{}`]) {
      const before = asked.signals.length;
      const socket = connect(path);
      socket.write(bytes);
      await expect.poll(() => asked.signals.length).toBe(before + 1);
      socket.destroy();
      await expect.poll(() => asked.signals.at(-1)?.aborted).toBe(true);
    }
  });
});

describe('HTTP on the bridge', () => {
  it('serves POST /execute alone', async () => {
    const { path } = await open(PATIENT);
    for (const line of ['GET /execute', 'POST /', 'DELETE /execute?x=1'])
      expect(await speak(path, [`${line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`])).toMatch(
        /^HTTP\/1\.1 404 [\s\S]*POST \/execute/,
      );
  });

  it('answers 400 to what looks like HTTP and is not', async () => {
    const { path } = await open(PATIENT);
    expect(await speak(path, ['HELLO WORLD, this is no request\r\n\r\n'])).toMatch(/^HTTP\/1\.1 400 /);
  });

  it('a body that is not JSON is answered with 400', async () => {
    const { path, asked } = await open(PATIENT);
    expect(await post(path, 'code=1')).toEqual({
      status: 400,
      body: '{"detail":"The body is not JSON. Send {\\"code\\": \\"…\\"}."}\n',
    });
    expect(asked.inputs).toEqual([]);
  });

  it('refuses a body that is nested too deeply before parsing it', async () => {
    const { path, asked } = await open({ mostBytes: 3_000_000, deadline: 60_000 });
    const { status, body } = await post(path, '['.repeat(2_000_000));
    expect([status, JSON.parse(body).detail]).toEqual([400, expect.stringContaining('nested')]);
    expect(asked.inputs).toEqual([]);
  });

  it('a request in many pieces arrives whole', async () => {
    const { path, asked } = await open({ mostBytes: 3_000_000, deadline: 60_000 });
    const code = Array.from({ length: 200_000 }, (_, index) => `é${index}`).join('\n');
    const body = JSON.stringify({ code });
    const bytes = Buffer.from(`${HEAD}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    const pieces = [bytes.subarray(0, 1), bytes.subarray(1, 9), bytes.subarray(9, 100), bytes.subarray(100)];
    const socket = connect(path);
    const answered = new Promise<string>((resolve) => socket.once('data', (chunk) => resolve(String(chunk))));
    for (const piece of pieces) {
      socket.write(piece);
      await sleep(5);
    }
    expect(await answered).toMatch(/^HTTP\/1\.1 200 /);
    expect(asked.inputs).toEqual([{ code }]);
  });
});
