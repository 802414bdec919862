import { describe, expect, test } from 'vitest';
import { createLog } from '../../../src/log.ts';
import { createLabApp } from '../../../src/surfaces/lab/app.ts';
import { toyLab } from '../../lab/toy-lab.ts';

const TOKEN = 'a-token-that-is-long-enough';
const bearer = { authorization: `Bearer ${TOKEN}` };

function open() {
  const { lab } = toyLab();
  const app = createLabApp({ lab, token: TOKEN, host: '127.0.0.1', log: createLog('silent') });
  const request = (path: string, init: RequestInit = {}) =>
    app.request(`http://127.0.0.1:8787${path}`, { ...init, headers: { ...bearer, ...init.headers } });
  const post = (path: string, body: unknown) =>
    request(path, { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
  return { app, request, post };
}

describe('the routes', () => {
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
      'POST /probe',
      'POST /reset',
      'POST /sae-lookup',
      'POST /steer',
      'POST /train-probe',
    ]);
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

describe('access', () => {
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
