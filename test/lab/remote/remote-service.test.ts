/** What becomes of code whose connection to a remote service is lost, by a service that stands for the real one. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import type { Output } from '../../../src/interpreters/interpreter.ts';
import { createRemoteService } from '../../../src/lab/remote/remote-service.ts';
import { serveOther } from '../served.ts';
import { RAN_WELL } from './ran-well.ts';

const INSTANCE = { 'x-cuvette-instance': 'one' };

type Answer = (response: ServerResponse) => void;

const hangUp: Answer = (response) => response.destroy();
const refuse =
  (status: number, code: string, headers = INSTANCE): Answer =>
  (response) =>
    response.writeHead(status, headers).end(JSON.stringify({ code, detail: `It says ${code}.` }));
/** Tells these events, and then ends the connection. */
const tell =
  (...events: [id: string, event: object][]): Answer =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream', ...INSTANCE });
    for (const [id, event] of events) response.write(`id: ${id}\ndata: ${JSON.stringify(event)}\n\n`);
    response.end();
  };
const SESSION: [string, object] = ['s.1.1', { type: 'session', session_id: 's', execution: 1, is_new: true }];
const DONE: [string, object] = ['s.1.9', { type: 'done', run: RAN_WELL }];
const print = (id: string, text: string): [string, object] => [id, { type: 'stream', name: 'stdout', text }];

/** Runs code at a service that gives these answers to its requests, one after the other. */
async function serve(...answers: Answer[]) {
  let isAway = false;
  const goAway = () => {
    isAway = true;
  };
  const asked: string[] = [];
  const keys = new Set<unknown>();
  const { url } = await serveOther((request, response) => {
    if (request.url === '/' && !isAway) return void response.writeHead(200, INSTANCE).end('{}');
    asked.push(describeRequest(request));
    keys.add(request.headers['idempotency-key']);
    const answer = answers.shift() ?? hangUp;
    request.resume().on('end', () => answer(response));
  });
  const remote = createRemoteService({ endpoint: url, token: undefined, waits: [0, 0] });
  onTestFinished(() => remote.close());
  const outputs: Output[] = [];
  const stop = new AbortController();
  const context = { signal: stop.signal, progress: () => {}, output: (output: Output) => void outputs.push(output) };
  const run = (code = 'n += 1') => remote.call('run_code', { code, run: 'a' }, context);
  const printed = () => outputs.map((output) => (output.type === 'stream' ? output.text : '')).join('');
  return { asked, keys, run, printed, goAway, stop };
}

function describeRequest({ method, url, headers }: IncomingMessage): string {
  const by = headers['last-event-id'] ?? (headers['idempotency-key'] && 'by its id');
  return [method, url, ...(by ? [by] : [])].join(' ');
}

const SENT = 'POST /exec/stream by its id';
const JOINED = 'GET /exec/stream by its id';

test('code whose connection is cut is joined after the last event, and every output comes once', async () => {
  const { asked, run, printed } = await serve(tell(SESSION, print('s.1.2', 'a')), tell(print('s.1.3', 'b'), DONE));
  expect(await run()).toMatchObject({ ending: { status: 'ok' } });
  expect(asked).toEqual([SENT, 'GET /exec/stream s.1.2']);
  expect(printed()).toBe('ab');
});

test('code that was never heard of is joined by its id, and not sent again', async () => {
  const { asked, keys, run } = await serve(hangUp, tell(SESSION, DONE));
  expect(await run()).toMatchObject({ ending: { status: 'ok' } });
  expect(asked).toEqual([SENT, JOINED]);
  expect(keys.size).toBe(1);
});

test('code that the same service says never came is sent again', async () => {
  const { asked, run } = await serve(
    tell(SESSION, DONE),
    hangUp,
    refuse(404, 'unknown_call'),
    tell(SESSION, print('s.2.2', 'once'), DONE),
  );
  await run();
  expect(await run()).toMatchObject({ ending: { status: 'ok' } });
  expect(asked).toEqual([SENT, SENT, JOINED, SENT]);
});

test('code that a service does not know, which may be another one, is not sent again', async () => {
  const other = { 'x-cuvette-instance': 'two' };
  const { asked, run } = await serve(tell(SESSION, DONE), hangUp, refuse(404, 'unknown_call', other));
  await run();
  await expect(run()).rejects.toMatchObject({
    code: 'lab_unreachable',
    message: expect.stringMatching(/does not know this call.*restarted.*may have run \(list_vars.*run it anew/),
  });
  expect(asked).toEqual([SENT, SENT, JOINED]);
});

test('an older service, which knows no ids of calls, is not sent the code again', async () => {
  const { asked, run } = await serve(hangUp, refuse(400, 'invalid_input'));
  await expect(run()).rejects.toMatchObject({
    code: 'lab_unreachable',
    message: expect.stringContaining('may have run'),
  });
  expect(asked).toEqual([SENT, JOINED]);
});

test('code is not sent to a service that is away, and that is told at once', async () => {
  const { asked, run, goAway } = await serve();
  goAway();
  await expect(run()).rejects.toMatchObject({
    code: 'lab_unreachable',
    message: expect.stringMatching(/^(?!.*may have run).*cannot be reached.*cuvette serve/),
  });
  expect(asked).toEqual(['GET /', 'GET /']);
});

test('code at a service that stays away may run there, and the same code sent again joins it', async () => {
  const { asked, keys, run } = await serve(hangUp, hangUp, hangUp, tell(SESSION, DONE));
  await expect(run()).rejects.toMatchObject({
    code: 'lab_unreachable',
    message: expect.stringMatching(
      /cannot be reached.*cuvette serve.*may have run there, or still run.*not run it twice/s,
    ),
  });
  expect(await run()).toMatchObject({ ending: { status: 'ok' } });
  expect(asked).toEqual([SENT, JOINED, JOINED, JOINED]);
  expect(keys.size).toBe(1);
});

test('code at a service that refuses to say whether it has it is not asked for again', async () => {
  const { asked, run } = await serve(hangUp, refuse(401, 'unauthorized'));
  await expect(run()).rejects.toMatchObject({
    code: 'unauthorized',
    message: expect.stringContaining('does not know this key'),
  });
  expect(asked).toEqual([SENT, JOINED]);
});

test('code whose caller gives up is cancelled by its id, whether it has begun or not', async () => {
  let told = () => {};
  const heard = new Promise<void>((resolve) => {
    told = resolve;
  });
  const { asked, run, stop } = await serve(told, (response) => response.writeHead(204).end());
  const ran = run();
  await heard;
  stop.abort();
  await expect(ran).rejects.toThrow(/abort/i);
  await expect.poll(() => asked).toEqual([SENT, 'DELETE /exec/stream by its id']);
});

test('code that has begun is cancelled by its last event, which a restarted service knows, too', async () => {
  const { asked, run, stop, printed } = await serve(
    (response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream', ...INSTANCE });
      for (const [id, event] of [SESSION, print('s.1.2', 'a')])
        response.write(`id: ${id}\ndata: ${JSON.stringify(event)}\n\n`);
    },
    (response) => response.writeHead(204).end(),
  );
  const ran = run();
  ran.catch(() => {});
  await expect.poll(printed).toBe('a');
  stop.abort();
  await expect(ran).rejects.toThrow(/abort/i);
  await expect.poll(() => asked).toEqual([SENT, 'DELETE /exec/stream s.1.2']);
});

test('a service that was restarted tells from the first event on, and what was shown is not shown again', async () => {
  const { run, printed } = await serve(
    tell(SESSION, print('s.1.2', 'one ')),
    tell(SESSION, print('s.1.2', 'one two '), print('s.1.3', 'three'), DONE),
  );
  await run();
  expect(printed()).toBe('one two three');
});

test('a session that the service has forgotten is told once, before what the code shows', async () => {
  const { run, printed } = await serve(tell(SESSION, DONE), tell(SESSION, print('s.1.2', 'x')), tell(SESSION, DONE));
  await run();
  expect(printed()).toBe('');
  await run();
  expect(printed()).toMatch(/^\[The service has forgotten the session[^\n]*\]\nx$/);
});
