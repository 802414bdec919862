import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { Hono } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { streamText } from 'hono/streaming';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CuvetteError, toCuvetteError } from '../../../src/errors.ts';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { notFound, onError, problem, refuseInvalid } from '../../../src/surfaces/rest/problem.ts';
import { guardJson } from '../../../src/surfaces/rest/request-body.ts';
import { requestLog } from '../../../src/surfaces/rest/request-log.ts';

const SECRET = 'Zq3-xk_9Lm2pQr7T';

function createLog(level = 'warn') {
  const lines: Record<string, unknown>[] = [];
  const log = pino({ level, base: null }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  return { log, lines };
}

describe('an error', () => {
  async function thrown(error: Error) {
    const { log, lines } = createLog();
    const app = new Hono<RestEnv>();
    app.onError(onError(log));
    app.get('/', () => {
      throw error;
    });
    const response = await app.request('/');
    return { response, body: await response.json(), lines };
  }

  it('of Cuvette is answered with its code and message, and logged at debug level only', async () => {
    const { response, body, lines } = await thrown(new CuvetteError('unknown_file', 'There is no file x.'));
    expect(response.status).toBe(404);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(body).toEqual({
      type: 'about:blank',
      title: 'Not Found',
      status: 404,
      detail: 'There is no file x.',
      error: 'unknown_file',
      code: 'unknown_file',
    });
    expect(lines).toEqual([]);
  });

  it('of too many calls says when to come back, in the header and in the body', async () => {
    const error = new CuvetteError('rate_limited', 'Slow down.', { cause: { retryAfterSeconds: 7 } });
    const { response, body } = await thrown(error);
    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('7');
    expect(body).toMatchObject({ error: 'rate_limited', retry_after_seconds: 7 });
  });

  it('of the server is told and logged', async () => {
    const { response, body, lines } = await thrown(new CuvetteError('runtime_missing', 'Go is not installed.'));
    expect(response.status).toBe(503);
    expect(body).toMatchObject({ detail: 'Go is not installed.' });
    expect(lines).toMatchObject([{ level: 50, status: 503, err: { message: 'Go is not installed.' } }]);
  });

  it.each([new TypeError('password=hunter2'), toCuvetteError(new Error('password=hunter2'))])(
    'that nobody foresaw is logged, and its text kept from the caller: %s',
    async (error) => {
      const { response, body, lines } = await thrown(error);
      expect(response.status).toBe(500);
      expect(body).toMatchObject({
        title: 'Internal Server Error',
        detail: "Something went wrong inside; the server's log has the details.",
        code: 'internal',
      });
      expect(lines).toMatchObject([
        { level: 50, method: 'GET', path: '/', err: { message: expect.stringContaining('hunter2') } },
      ]);
    },
  );

  it('that Hono throws is answered as problem details too', async () => {
    const { response, body } = await thrown(new HTTPException(415, { message: 'Unsupported Media Type' }));
    expect(response.status).toBe(415);
    expect(body).toMatchObject({
      status: 415,
      code: 'invalid_input',
      detail: expect.stringContaining('application/json'),
    });
    expect((await thrown(new HTTPException(503))).body).toMatchObject({ status: 500, code: 'internal' });
  });

  it('can be turned into a response without an app', () => {
    expect(problem(new CuvetteError('unauthorized', 'No.')).headers.get('www-authenticate')).toBe('Bearer');
  });
});

it('a path that is not there is a problem too, and no secret in it is shown', async () => {
  const app = new Hono<RestEnv>();
  app.notFound(notFound);
  const response = await app.request(`/k/${SECRET}/v1/nothing`);
  expect(response.status).toBe(404);
  expect(await response.json()).toMatchObject({
    code: 'not_found',
    detail: 'There is no GET /k/***/v1/nothing here. GET / lists what there is.',
  });
});

describe('a request that does not fit its schema', () => {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  app.onError(onError(createLog().log));
  const schema = z.object({ code: z.string(), entity_id: z.string().max(4).optional() });
  const route = createRoute({
    method: 'post',
    path: '/exec',
    request: { body: { required: true, content: { 'application/json': { schema } } } },
    responses: { 200: { description: 'It fits.' } },
  });
  app.openapi(route, (c) => c.text(c.req.valid('json').code));

  const post = async (body: string, type = 'application/json') => {
    const response = await app.request('/exec', { method: 'POST', body, headers: { 'content-type': type } });
    return { status: response.status, body: response.status === 200 ? await response.text() : await response.json() };
  };

  it('is the only kind that is refused', async () => {
    expect(await post('{"code": "1", "unknown": true}')).toEqual({ status: 200, body: '1' });
  });

  it('is answered with 400 and the fields that are wrong', async () => {
    expect(await post('{"code": 1}')).toMatchObject({
      status: 400,
      body: {
        type: 'about:blank',
        title: 'Bad Request',
        error: 'invalid_input',
        detail: expect.stringMatching(/^The request's json is wrong: code: .*expected string.*\.$/),
      },
    });
  });

  it('is answered with 422 only for a malformed entity_id', async () => {
    expect(await post('{"code": "1", "entity_id": "too long"}')).toMatchObject({
      status: 422,
      body: { title: 'Unprocessable Entity', code: 'invalid_entity', status: 422 },
    });
  });

  it('is answered with 400 if it is not JSON', async () => {
    for (const body of ['{"code": ', '', "{'code': 1}"]) {
      expect(await post(body)).toMatchObject({
        status: 400,
        body: { code: 'invalid_input', detail: expect.stringMatching(/^The body of the request is not JSON\./) },
      });
    }
  });

  it('is told to send JSON if its content type is another', async () => {
    expect((await post('code=1', 'text/plain')).body).toMatchObject({
      detail: expect.stringContaining('application/json'),
    });
    const untyped = await app.request('/exec', { method: 'POST' });
    expect(await untyped.json()).toMatchObject({ status: 400, detail: expect.stringContaining('application/json') });
  });
});

describe('the log of requests', () => {
  function service(pathSecret?: string, apiKey?: string) {
    const { log, lines } = createLog('warn');
    const app = new Hono<RestEnv>();
    app.onError(onError(log));
    app.use(requestLog(log, { pathSecret, apiKey }));
    app.use(guardJson());
    app.use(async (c, next) => {
      c.set('principal', { id: 'user:ann', kind: 'jwt' });
      await next();
    });
    app.post('*', (c) => c.text('done', 201, { 'content-length': '4' }));
    app.get('/stream', (c) =>
      streamText(c, async (stream) => {
        await stream.write('first');
        await stream.sleep(50);
        await stream.write('x'.repeat(100_000));
      }),
    );
    return { app, lines };
  }

  it('has a line for each request, even if the log has only warnings', async () => {
    const { app, lines } = service();
    await app.request('/v1/exec?kind=user', {
      method: 'POST',
      body: '{"secret": 1}',
      headers: { 'x-api-key': 'hunter2' },
    });
    expect(lines).toEqual([
      {
        level: 30,
        time: expect.any(Number),
        msg: 'request',
        method: 'POST',
        path: '/v1/exec?kind=user',
        status: 201,
        ms: expect.any(Number),
        bytes: 4,
        principal: 'user:ann',
      },
    ]);
  });

  it.each([
    [{ lang: 'py', code: 'print(1)' }, '{"lang":"py","code":"print(1)"}'],
    [{ apiKey: 'hunter2', code: '1' }, '{"apiKey":"***","code":"1"}'],
    [{ 'X-API-Key': 'hun"te\\r2', code: '1' }, '{"X-API-Key":"***","code":"1"}'],
    [{ continuation_token: 'hunter2' }, '{"continuation_token":"***"}'],
    [{ nested: { password: 'hunter2' } }, '{"nested":{"password":"***"}}'],
    [{ code: 'api_key = "hunter2"\nprint(1)' }, '{"code":"api_key = \\"***\\"\\nprint(1)"}'],
    [{ code: 'os.environ["TOKEN"] = "hunter2"' }, '{"code":"os.environ[\\"TOKEN\\"] = \\"***\\""}'],
    [{ code: "secret = 'hunter2'" }, '{"code":"secret = \'***\'"}'],
    [{ code: 'export PASSWORD=hunter2' }, '{"code":"export PASSWORD=***"}'],
    [{ code: 'curl -H "Authorization: Bearer hunter2"' }, expect.not.stringContaining('hunter2')],
    [{ code: 'eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiJhIn0.hunter2' }, '{"code":"***"}'],
    [{ code: `f("${SECRET}", "the-key-of-the-house")` }, '{"code":"f(\\"***\\", \\"***\\")"}'],
    [{ code: 'x'.repeat(5000) }, `{"code":"${'x'.repeat(491)}…`],
    [{ code: 'y', apiKey: 'hunter2'.repeat(1000) }, '{"code":"y","apiKey":"***'],
  ])('shows how a body of JSON began, without what is a secret or looks like one: %j', async (sent, shown) => {
    const { app, lines } = service(SECRET, 'the-key-of-the-house');
    const headers = { 'content-type': 'application/json' };
    await app.request('/v1/exec', { method: 'POST', body: JSON.stringify(sent), headers });
    expect(lines).toMatchObject([{ body: shown }]);
    expect(JSON.stringify(lines)).not.toContain('hunter2');
  });

  it('looks for secrets in linear time, whatever the body is', async () => {
    for (const part of ['key', 'key"', 'key=\\', 'key-key_', 'Bearer ', "key: '", 'eyJ.', '-----BEGIN ']) {
      const { app, lines } = service();
      const body = part.repeat(20_000);
      await app.request('/', { method: 'POST', body, headers: { 'content-type': 'application/json' } });
      expect(lines).toHaveLength(1);
    }
  });

  it('shows no secret of the path, the query or the headers', async () => {
    const { app, lines } = service();
    await app.request(`/k/${SECRET}/v1/exec?id=u1&api_key=hunter2&access%5Ftoken=hunter2&X-Signature=hunter2&b`, {
      method: 'POST',
    });
    expect(lines).toMatchObject([{ path: '/k/***/v1/exec?id=u1&api_key=***&access%5Ftoken=***&X-Signature=***&b' }]);
  });

  it('shows no secret that stands in the wrong place of a path', async () => {
    const { app, lines } = service(SECRET);
    for (const path of [`/v1/k/${SECRET}/exec`, `/k%2F${SECRET}/v1/exec`, `/${SECRET}/v1/exec`, `/v1/exec?x=${SECRET}`])
      await app.request(path, { method: 'POST' });
    expect(lines).toHaveLength(4);
    expect(JSON.stringify(lines)).not.toContain(SECRET);
  });

  /** Serves it on a port of this machine for as long as the test goes on. */
  async function listen(app: Hono<RestEnv>): Promise<number> {
    const server = createServer(getRequestListener(app.fetch));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    return (server.address() as AddressInfo).port;
  }

  it('waits for the end of a stream, and counts what went out', async () => {
    const { app, lines } = service();
    const port = await listen(app);
    const read = (await fetch(`http://127.0.0.1:${port}/stream`)).text();
    expect((await read).length).toBe(100_005);
    await expect.poll(() => lines).toHaveLength(1);
    expect(lines).toMatchObject([{ method: 'GET', path: '/stream', status: 200 }]);
    expect(lines[0]?.ms).toBeGreaterThanOrEqual(45);
    expect(lines[0]?.bytes).toBeGreaterThanOrEqual(100_005);
    expect(lines[0]?.bytes).toBeLessThan(102_000);
  });

  it('has a line for a caller who went away', async () => {
    const { app, lines } = service();
    const port = await listen(app);
    const call = request({ port, host: '127.0.0.1', path: '/stream' }, (response) => {
      response.once('data', () => call.destroy());
    });
    call.on('error', () => {});
    call.end();
    await expect.poll(() => lines).toMatchObject([{ path: '/stream', status: 200 }]);
  });
});
