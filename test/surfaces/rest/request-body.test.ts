import { Hono } from 'hono';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { onError } from '../../../src/surfaces/rest/problem.ts';
import { guardJson, limitBody } from '../../../src/surfaces/rest/request-body.ts';

describe('a JSON body', () => {
  const app = new Hono<RestEnv>();
  app.onError(onError(pino({ level: 'silent' })));
  app.use(guardJson());
  app.post('/', async (c) => c.json(await c.req.json()));
  const post = (body: string, type = 'application/json') =>
    app.request('/', { method: 'POST', body, headers: { 'content-type': type } });

  it('reaches its route as it was sent', async () => {
    for (const type of ['application/json', 'application/json; charset=utf-8', 'application/merge-patch+json'])
      expect(await (await post('{"code": "żółw 🐢 [[["}', type)).json()).toEqual({ code: 'żółw 🐢 [[[' });
  });

  it('is refused before it is parsed if it is nested too deeply or has too many values', async () => {
    const deep = await post('['.repeat(1000));
    expect([deep.status, await deep.json()]).toMatchObject([400, { code: 'invalid_input' }]);
    const wide = await post(`[${'0,'.repeat(300_000)}0]`);
    expect([wide.status, await wide.json()]).toMatchObject([413, { code: 'too_large' }]);
  });
});

describe('limitBody', () => {
  const app = new Hono<RestEnv>();
  app.onError(onError(pino({ level: 'silent' })));
  app.use(limitBody(10));
  app.post('/', async (c) => c.text(await c.req.text()));

  it('accepts a body of exactly the limit', async () => {
    expect(await (await app.request('/', { method: 'POST', body: '0123456789' })).text()).toBe('0123456789');
  });

  it('refuses a larger body, with and without a Content-Length header', async () => {
    const announced = await app.request('/', {
      method: 'POST',
      body: '0123456789x',
      headers: { 'content-length': '11' },
    });
    const body = new ReadableStream({
      start(controller) {
        for (const part of ['012345', '6789', 'x']) controller.enqueue(new TextEncoder().encode(part));
        controller.close();
      },
    });
    const streamed = await app.request(new Request('http://localhost/', { method: 'POST', body, duplex: 'half' }));
    for (const answer of [announced, streamed]) {
      expect(answer.status).toBe(413);
      expect(await answer.json()).toMatchObject({ code: 'too_large', detail: expect.stringContaining('--max-body') });
    }
  });
});
