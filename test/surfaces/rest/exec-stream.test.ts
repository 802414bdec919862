import { Hono } from 'hono';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CuvetteError } from '../../../src/errors.ts';
import { openSpills } from '../../../src/files/spill.ts';
import type { Output } from '../../../src/interpreters/interpreter.ts';
import { createLog } from '../../../src/log.ts';
import type { ExecutionRecord } from '../../../src/sessions/execution-record.ts';
import type { RunningServiceCall, ServiceCallRequest } from '../../../src/sessions/service-calls.ts';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { streamRoutes } from '../../../src/surfaces/rest/exec-stream.ts';
import { onError } from '../../../src/surfaces/rest/problem.ts';
import { createStreamLogs } from '../../../src/surfaces/rest/stream-logs.ts';
import { makeRecord } from '../../sessions/make-record.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const SESSION = 'a-session-of-21-chars';

interface Started {
  request: ServiceCallRequest;
  interrupted: number[];
  print(text: string): void;
  end(record?: Partial<ExecutionRecord>): void;
}

/** The routes, before executions that do what the test says. */
async function open() {
  const logs = createStreamLogs(await openSpills(temporaryFolder()));
  onTestFinished(() => logs.close());
  const started: Started[] = [];
  const refusals: CuvetteError[] = [];
  /** Executions that were interrupted in a session that was opened for it. */
  const restarted: number[] = [];

  async function start(request: ServiceCallRequest): Promise<RunningServiceCall> {
    const refusal = refusals.shift();
    if (refusal) throw refusal;
    const record = makeRecord({ session: SESSION, number: started.length + 1, state: 'running', outputs: [] });
    const interrupted: number[] = [];
    let listener: (output: Output) => void = () => {};
    let finish: (record: ExecutionRecord) => void = () => {};
    const done = new Promise<ExecutionRecord>((resolve) => {
      finish = resolve;
    });
    const call = {
      sharedSession: { session: { id: SESSION, interrupt: (number: number) => interrupted.push(number) }, isNew: true },
      execution: {
        record,
        transcript: { outputs: [] },
        onOutput(given: typeof listener) {
          listener = given;
          return () => {};
        },
      },
      finished: done.then((ended) => ({ record: ended, stdout: '', stderr: '', files: [], deleted: [], problems: [] })),
      printed: { size: 0, release() {} },
    };
    started.push({
      request,
      interrupted,
      print: (text) => listener({ type: 'stream', name: 'stdout', text }),
      end: (ended) => finish(Object.assign(record, { state: 'done' }, ended)),
    });
    return call as unknown as RunningServiceCall;
  }

  const options = {
    calls: { start },
    shared: {
      find: async (owner: string, id: string) =>
        owner === 'me' && id === SESSION
          ? { session: { size: started.length, interrupt: (number: number) => restarted.push(number) } }
          : undefined,
    },
    runtimes: { languageOf: () => 'py', versionOf: async () => '3.13', all: async () => [] },
    logs,
    silence: 60_000,
    log: createLog('silent'),
  } as unknown as Parameters<typeof streamRoutes>[0];
  const app = new Hono<RestEnv>();
  app.onError(onError(createLog('silent')));
  app.use(async (c, next) => {
    c.set('principal', { id: c.req.header('x-who') ?? 'me', kind: 'open' });
    await next();
  });
  app.route('/', streamRoutes(options));

  const request = async (method: string, headers: Record<string, string> = {}, body?: object, signal?: AbortSignal) =>
    app.request('/exec/stream', {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    });
  const post = (key: string | undefined, more: object = {}, headers: Record<string, string> = {}) =>
    request('POST', { ...(key && { 'idempotency-key': key }), ...headers }, { lang: 'py', code: '1', ...more });
  return { started, refusals, restarted, request, post, logs };
}

const eventsIn = (text: string) => [...text.matchAll(/^data: (.*)$/gm)].map(([, data]) => JSON.parse(data ?? ''));
const eventsOf = async (response: Response | Promise<Response>) => eventsIn(await (await response).text());
const kindsOf = async (response: Response | Promise<Response>) => (await eventsOf(response)).map(({ type }) => type);
const codeOf = async (response: Response | Promise<Response>) =>
  ((await (await response).json()) as { code: string }).code;

describe('the last event of a stream', () => {
  it.each([
    [{ outcome: 'ok' }, { outcome: 'ok', reason: null, signal: null, rung: null, variables_survived: true }],
    [
      { outcome: 'died', exitCode: 139, signal: 'SIGSEGV', reason: { code: 'signal', message: 'It crashed.' } },
      { outcome: 'died', code: 139, reason: 'signal', signal: 'SIGSEGV', message: 'It crashed.' },
    ],
    [
      { outcome: 'timeout', exitCode: 124, rung: 'killed', reason: { code: 'timeout', message: 'Too long.' } },
      { outcome: 'timeout', signal: null, rung: 'killed' },
    ],
    [
      { outcome: 'error', exitCode: 137, reason: { code: 'process-exit', message: 'It ended, as by SIGKILL.' } },
      { code: 137, signal: null },
    ],
    [
      { notes: ['a note'], ended: ['sleep 60'], variablesSurvived: false },
      { notes: ['a note'], message: 'a note', ended_processes: ['sleep 60'], variables_survived: false },
    ],
  ] as [Partial<ExecutionRecord>, object][])('tells how code ended, as its record has it: %j', async (record, told) => {
    const { post, started } = await open();
    const response = await post(undefined);
    started[0]?.end(record);
    expect((await eventsOf(response)).at(-1)).toMatchObject({ type: 'done', run: told });
  });
});

describe('a streamed call with an idempotency key', () => {
  it('runs once, however often it is sent, and everybody is told all of it', async () => {
    const { post, started, request } = await open();
    const [first, second] = [await post('a'), await post('a')];
    const joined = await request('GET', { 'idempotency-key': 'a' });
    started[0]?.print('once');
    started[0]?.end();
    for (const response of [first, second, joined, post('a')])
      expect(await kindsOf(response)).toEqual(['session', 'stream', 'done']);
    expect(started).toHaveLength(1);
  });

  it('is refused with other code, and is another call of another caller', async () => {
    const { post, started } = await open();
    await post('a');
    expect(await codeOf(post('a', { code: '2' }))).toBe('invalid_input');
    await post('a', { code: '2' }, { 'x-who': 'you' });
    expect(started.map(({ request }) => [request.owner, request.code])).toEqual([
      ['me', '1'],
      ['you', '2'],
    ]);
  });

  it('is joined by GET only where it is known', async () => {
    const { request, post, started } = await open();
    expect(await codeOf(request('GET', { 'idempotency-key': 'a' }))).toBe('unknown_call');
    expect(await codeOf(request('GET'))).toBe('invalid_input');
    await post('a');
    expect(await codeOf(request('GET', { 'idempotency-key': 'a', 'x-who': 'you' }))).toBe('unknown_call');
    expect(started).toHaveLength(1);
  });

  it('is over once its events are gone, and does not run again', async () => {
    const { post, request, started, logs } = await open();
    const response = await post('a');
    started[0]?.end();
    await response.text();
    logs.removeSession(SESSION);
    expect(await codeOf(request('GET', { 'idempotency-key': 'a' }))).toBe('call_over');
    expect(await codeOf(post('a'))).toBe('call_over');
    expect(started).toHaveLength(1);
  });

  it('leaves its key free if nothing was started', async () => {
    const { post, refusals, started } = await open();
    refusals.push(new CuvetteError('rate_limited', 'Too many.'));
    expect(await codeOf(post('a'))).toBe('rate_limited');
    await post('a');
    expect(started).toHaveLength(1);
  });

  it('is interrupted by DELETE, by its own caller alone', async () => {
    const { post, request, started } = await open();
    await post('a', { background: true });
    expect(await codeOf(request('DELETE', { 'idempotency-key': 'a', 'x-who': 'you' }))).toBe('unknown_call');
    expect(started[0]?.interrupted).toEqual([]);
    expect((await request('DELETE', { 'idempotency-key': 'a' })).status).toBe(204);
    expect(started[0]?.interrupted).toEqual([1]);
    started[0]?.end({ outcome: 'cancelled' });
    await expect.poll(async () => (await request('DELETE', { 'idempotency-key': 'a' })).status).toBe(204);
    expect(started[0]?.interrupted).toEqual([1]);
  });

  it('is not run if it comes after its DELETE', async () => {
    const { post, request, started } = await open();
    expect(await codeOf(request('DELETE', { 'idempotency-key': 'a' }))).toBe('unknown_call');
    expect(await codeOf(post('a'))).toBe('call_over');
    expect(started).toHaveLength(0);
  });
});

describe('a streamed call without an idempotency key', () => {
  it('is interrupted by DELETE with the id of one of its events, by its own caller alone', async () => {
    const { post, request, restarted } = await open();
    await post(undefined, { background: true });
    const byEvent = (event: string, headers = {}) => request('DELETE', { 'last-event-id': event, ...headers });
    expect(await codeOf(byEvent(`${SESSION}.1.1`, { 'x-who': 'you' }))).toBe('unknown_execution');
    expect(await codeOf(byEvent(`${SESSION}.2.1`))).toBe('unknown_execution');
    expect(await codeOf(request('DELETE'))).toBe('invalid_input');
    expect(restarted).toEqual([]);
    expect((await byEvent(`${SESSION}.1.1`)).status).toBe(204);
    expect(restarted).toEqual([1]);
  });
});

describe('a stream whose reader goes away', () => {
  it.each([
    [false, [1]],
    [true, []],
  ])('with background %s has its code interrupted or not: %j', async (background, interrupted) => {
    const { request, started } = await open();
    const gone = new AbortController();
    const response = await request('POST', {}, { lang: 'py', code: '1', background }, gone.signal);
    const reader = response.body?.getReader();
    await reader?.read();
    gone.abort();
    expect(started[0]?.interrupted).toEqual(interrupted);
  });
});
