import { beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { openSpills, type Spills } from '../../../src/files/spill.ts';
import { createLog } from '../../../src/log.ts';
import { createLabApp } from '../../../src/surfaces/lab/app.ts';
import { createFakeLab } from '../../lab/fake-lab.ts';
import { serveLab } from '../../lab/served.ts';
import { toyLab } from '../../lab/toy-lab.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

let spills: Spills;
const TOKEN = 'a-token-that-is-long-enough';
const bearer = { authorization: `Bearer ${TOKEN}` };

beforeEach(async () => {
  spills = await openSpills(temporaryFolder());
});

function open() {
  const { lab } = toyLab();
  const app = createLabApp({ lab, token: TOKEN, host: '127.0.0.1', spills, log: createLog('silent') });
  const request = (path: string, init: RequestInit = {}) =>
    app.request(`http://127.0.0.1:8787${path}`, { ...init, headers: { ...bearer, ...init.headers } });
  const post = (path: string, body: unknown) =>
    request(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
  return { app, request, post };
}

describe('the routes of a lab', () => {
  test('are those that backends of such labs have', async () => {
    const { request } = open();
    const { routes } = (await (await request('/')).json()) as { routes: string[] };
    expect(routes.map((route) => route.replace(/ \(.*/, '')).sort()).toEqual([
      'GET /health',
      'GET /interpreter',
      'GET /list-probes',
      'GET /manifests',
      'GET /variables',
      'POST /capture',
      'POST /causality-protocol',
      'POST /execute',
      'POST /interrupt',
      'POST /load-probe',
      'POST /patch-map',
      'POST /probe',
      'POST /reset',
      'POST /sae-lookup',
      'POST /steer',
      'POST /sweep',
      'POST /train-probe',
    ]);
  });

  test('refuse a body that is nested too deeply, or has too many values, before it is parsed', async () => {
    const { request } = open();
    const post = (body: string) => request('/capture', { method: 'POST', body });
    expect((await post('['.repeat(5000))).status).toBe(400);
    expect((await post(`{"prompts":[${'0,'.repeat(300_000)}0]}`)).status).toBe(413);
  });

  test('answer plain JSON to who does not ask for lines', async () => {
    const { request, post } = open();
    expect(await (await request('/health')).json()).toMatchObject({
      ok: true,
      model_id: 'toy',
      device: 'cpu',
      captures_in_memory: 0,
    });
    const captured = await post('/capture', { prompt: 'the red cats', layers: [0] });
    expect(captured.headers.get('content-type')).toContain('application/json');
    expect(await captured.json()).toMatchObject({ position_indices: [2], n_input_tokens: 3 });
    expect(await (await request('/manifests?limit=1')).json()).toMatchObject({ manifests: [{ tool: 'capture_acts' }] });
    expect(await (await request('/list-probes')).json()).toEqual({ model_id: 'toy', probes: [] });
  });

  test('tell errors as problem details', async () => {
    const { post, request } = open();
    const wrong = await post('/capture', { prompt: 'the', layers: [7] });
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toMatchObject({ code: 'invalid_input', detail: expect.stringContaining('no layer 7') });
    expect((await post('/probe', { probe_id: 'x', capture_id: 'y' })).status).toBe(404);
    expect((await post('/capture', ['a'])).status).toBe(400);
    expect((await request('/capture', { method: 'POST', body: '{"prompt":' })).status).toBe(400);
    expect((await request('/manifests?limit=none')).status).toBe(400);
    expect((await request('/nothing')).status).toBe(404);
  });
});

describe('access to a lab', () => {
  test.each([
    ['no token', {}],
    ['a wrong token', { authorization: 'Bearer wrong' }],
    ['an empty token', { authorization: 'Bearer ' }],
    ['another scheme', { authorization: `Basic ${TOKEN}` }],
  ])('with %s is refused everywhere, health too', async (_, headers: Record<string, string>) => {
    const { app } = open();
    for (const path of ['/', '/health', '/list-probes', '/manifests', '/nothing']) {
      const response = await app.request(`http://127.0.0.1:8787${path}`, { headers });
      expect(response.status, path).toBe(401);
    }
  });

  test('under a name that is not of this machine is refused, token or not', async () => {
    const { app } = open();
    const response = await app.request('http://127.0.0.1:8787/health', {
      headers: { ...bearer, host: 'evil.example.org' },
    });
    expect(response.status).toBe(403);
  });

  test('under the name of its tunnel is answered, and the refusal of others says that name', async () => {
    const { lab } = toyLab();
    const names = () => ['lab.tunnel.example'];
    const app = createLabApp({ lab, token: TOKEN, host: '127.0.0.1', names, spills, log: createLog('silent') });
    const under = (host: string) => app.request('http://127.0.0.1:8787/health', { headers: { ...bearer, host } });
    expect((await under('lab.tunnel.example')).status).toBe(200);
    expect(await (await under('evil.example.org')).json()).toMatchObject({
      code: 'forbidden',
      detail: expect.stringMatching(/Use one of these: .*127\.0\.0\.1.*, lab\.tunnel\.example\./),
    });
  });

  test('by a web page is refused', async () => {
    const { request } = open();
    const response = await request('/capture', {
      method: 'POST',
      headers: { origin: 'https://evil.example.org' },
      body: '{}',
    });
    expect(response.status).toBe(403);
  });

  test('with a body that is too large is refused before it is read', async () => {
    const { request } = open();
    const response = await request('/capture', {
      method: 'POST',
      headers: { 'content-length': String(65 * 1024 * 1024) },
      body: '{}',
    });
    expect(response.status).toBe(413);
  });
});

test('every answer of a lab says which start of the lab gives it, refusals too', async () => {
  const [one, other] = [open(), open()];
  const instanceOf = async (response: Response | Promise<Response>) => (await response).headers.get('x-lab-instance');
  const instance = await instanceOf(one.request('/health'));
  expect(instance).toMatch(/^[\da-f-]{36}$/);
  expect(await instanceOf(one.post('/capture', {}))).toBe(instance);
  expect(await instanceOf(other.request('/health'))).not.toBe(instance);
});

describe('a call to a lab by its id', () => {
  async function serveFake() {
    const fake = createFakeLab();
    const { url } = await serveLab(fake.lab);
    const stop = new AbortController();
    const post = (headers: Record<string, string>, body: unknown = {}) =>
      fetch(`${url}/capture`, {
        method: 'POST',
        body: JSON.stringify(body),
        headers: { ...bearer, ...headers },
        signal: stop.signal,
      });
    const remove = (id: string) => fetch(`${url}/calls/${id}`, { method: 'DELETE', headers: bearer });
    return { ...fake, url, post, remove, stop };
  }

  test('is the same for who asks for lines and who asks for the answer alone', async () => {
    const { post, started, calls } = await serveFake();
    const first = post({ 'x-request-id': 'a' });
    const there = await started(0);
    there.context.progress('one');
    there.answer({ kept: 1 });
    expect(await (await first).json()).toEqual({ kept: 1 });
    const lines = await post({ 'x-request-id': 'a', 'x-join': '1', 'x-after': '1', accept: 'application/x-ndjson' });
    expect(await lines.text()).toBe('{"number":2,"answer":{"kept":1}}\n');
    expect(calls).toHaveLength(1);
  });

  test('is refused with other arguments, a wrong id, or a wrong number', async () => {
    const { post, started, calls } = await serveFake();
    const first = post({ 'x-request-id': 'a' }, { prompt: 'a' });
    await started(0);
    for (const [headers, body] of [
      [{ 'x-request-id': 'a' }, { prompt: 'b' }],
      [{ 'x-request-id': 'a b' }, {}],
      [{ 'x-join': '1' }, {}],
      [{ 'x-request-id': 'b', 'x-after': '-1' }, {}],
    ] as const) {
      const response = await post(headers, body);
      expect(await response.json()).toMatchObject({ status: 400, code: 'invalid_input' });
    }
    expect(calls.map(({ args }) => args)).toEqual([{ prompt: 'a' }]);
    calls[0]?.answer({});
    await first;
  });

  test('is stopped by DELETE, with the token', async () => {
    const { url, post, remove, started } = await serveFake();
    const call = post({ 'x-request-id': 'a', accept: 'application/x-ndjson' });
    const { aborted, context } = await started(0);
    expect((await fetch(`${url}/calls/a`, { method: 'DELETE' })).status).toBe(401);
    expect(context.signal.aborted).toBe(false);
    expect((await remove('a')).status).toBe(204);
    await aborted;
    expect(await (await call).text()).toMatch(/^{"number":1,"error":/);
    expect(await (await remove('a')).json()).toMatchObject({ status: 404, code: 'unknown_call' });
  });

  test.each([{}, { accept: 'application/x-ndjson' }])(
    'is not needed: without one, who goes away stops it (%j)',
    async (headers) => {
      const { post, started, stop } = await serveFake();
      const call = post(headers)
        .then((response) => response.text())
        .catch(() => {});
      const { aborted } = await started(0);
      stop.abort();
      await aborted;
      await call;
    },
  );

  test('for another model is refused before anything runs', async () => {
    const { url, post, calls, started } = await serveFake();
    const refused = await post({ 'x-request-id': 'a', 'x-model': 'other' });
    expect(await refused.json()).toMatchObject({
      status: 409,
      code: 'lab_changed',
      detail: expect.stringMatching(/\(fake\).*colab_attach/),
    });
    const health = await fetch(`${url}/health`, { headers: { ...bearer, 'x-model': 'other' } });
    expect(health.status).toBe(409);
    expect(calls).toHaveLength(0);
    const accepted = post({ 'x-request-id': 'a', 'x-model': 'fake'.padEnd(64, '0') });
    (await started(0)).answer({ kept: 1 });
    expect((await accepted).status).toBe(200);
  });
});

test('who waits for lines of a lab is shown now and then that the call is alive', async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { lab, started } = createFakeLab();
  const app = createLabApp({ lab, token: TOKEN, host: '127.0.0.1', spills, log: createLog('silent') });
  const response = await app.request('http://127.0.0.1:8787/capture', {
    method: 'POST',
    body: '{}',
    headers: { ...bearer, accept: 'application/x-ndjson' },
  });
  const there = await started(0);
  const text = response.text();
  await vi.advanceTimersByTimeAsync(40_000);
  there.answer({ kept: 1 });
  expect(await text).toBe('{}\n{}\n{"number":1,"answer":{"kept":1}}\n');
  expect(vi.getTimerCount()).toBe(0);
});
