import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { connectDriver } from '../../../src/interpreters/python/driver.ts';
import { readLines, writeLine } from '../../../src/json-lines.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

interface Request {
  op: string;
  id: string;
  [field: string]: unknown;
}

const HELLO = { ev: 'hello', pid: 1, worker: 2, generation: 1, running: null, python: '3.9.1', executable: '/py' };

/** A keeper that says hello, and answers each request as the test says. */
async function connectTo(hello: object, answer: (request: Request, socket: Socket) => object | undefined) {
  const requests: Request[] = [];
  const server = createServer((socket) => {
    writeLine(socket, { ...HELLO, ipython: null, ...hello });
    readLines(socket, (line) => {
      const request: Request = JSON.parse(line);
      requests.push(request);
      const said = answer(request, socket);
      if (said) writeLine(socket, { id: request.id, seq: requests.length, ...said });
    });
  });
  const path = join(temporaryFolder(), 'sock');
  await new Promise<void>((resolve) => server.listen(path, resolve));
  const interpreter = await connectDriver(path);
  if (!interpreter) throw new Error('nobody listens');
  onTestFinished(async () => {
    interpreter.leave(0, null);
    await new Promise((resolve) => server.close(resolve));
  });
  return { interpreter, requests };
}

const ASKS = { asks: ['inspect', 'complete'] };
const TEXT = { kind: 'text', type: 'int', text: '1', length: 1 };

describe('a look at a value', () => {
  it('is asked for with a limit of time, longer where whole tables are read', async () => {
    const { interpreter, requests } = await connectTo(ASKS, () => ({ ev: 'answered', answer: TEXT }));
    expect(await interpreter.look({ path: 'x', limit: 5 })).toEqual(TEXT);
    await interpreter.look({ path: 'x', sort: 'a' });
    expect(requests).toMatchObject([
      { op: 'inspect', path: 'x', limit: 5, timeout: 5 },
      { op: 'inspect', sort: 'a', timeout: 30 },
    ]);
  });

  it('fails with what the interpreter says, or where that makes no sense', async () => {
    const answers = [
      { problem: { code: 'missing', message: 'There is no variable x.' } },
      { problem: { code: 'timeout', message: 'This took too long.' } },
      { answer: { kind: 'table', rows: 'none' } },
    ];
    const { interpreter } = await connectTo(ASKS, () => ({ ev: 'answered', ...answers.shift() }));
    await expect(interpreter.look({ path: 'x' })).rejects.toMatchObject({
      code: 'unknown_variable',
      message: 'There is no variable x.',
    });
    await expect(interpreter.look({ path: 'x' })).rejects.toMatchObject({ code: 'unreadable_value' });
    await expect(interpreter.look({ path: 'x' })).rejects.toMatchObject({ code: 'interpreter_failed' });
  });

  it('is interrupted when whoever asked goes away', async () => {
    const { interpreter, requests } = await connectTo(ASKS, ({ op, id }) =>
      op === 'interrupt' ? { id, ev: 'answered', problem: { code: 'timeout', message: 'Given up.' } } : undefined,
    );
    const gone = new AbortController();
    const look = interpreter.look({ path: 'x' }, gone.signal);
    gone.abort();
    await expect(look).rejects.toThrow('Given up.');
    expect(requests[1]).toMatchObject({ op: 'interrupt', id: requests[0]?.id, reason: 'cancelled' });
  });

  it('of an interpreter that an earlier version started is refused with the advice to restart it, which ends its keeper', async () => {
    const { interpreter, requests } = await connectTo({}, ({ op }, socket) => {
      if (op === 'stop') socket.end();
      return undefined;
    });
    await expect(interpreter.look({ path: 'x' })).rejects.toMatchObject({
      code: 'interpreter_outdated',
      message: expect.stringContaining('Restart the interpreter'),
    });
    await interpreter.reset();
    expect(requests.map(({ op }) => op)).toEqual(['stop']);
  });
});

describe('completion', () => {
  it('counts UTF-16 units, where Python counts characters', async () => {
    const { interpreter, requests } = await connectTo(ASKS, () => ({
      ev: 'answered',
      answer: { matches: ['velocity'], start: 5, end: 9 },
    }));
    expect(await interpreter.complete('"😀"; velo', 10)).toEqual({ matches: ['velocity'], start: 6, end: 10 });
    expect(requests[0]).toMatchObject({ op: 'complete', cursor: 9 });
  });
});
