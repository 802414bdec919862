import { Hono } from 'hono';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { checkHostAndOrigin, createAccess } from '../../../src/surfaces/rest/access.ts';
import { onError } from '../../../src/surfaces/rest/problem.ts';

const KEY = { apiKey: 'the-key-of-the-house' };
const CHAT = 'https://chat.example.com';

function service(flags: Record<string, unknown> = {}) {
  const config = readConfig(flags, {});
  const access = createAccess(config);
  const app = new Hono<RestEnv>({ getPath: access.getPath });
  app.onError(onError(pino({ level: 'silent' })));
  app.use(checkHostAndOrigin(config), access.middleware);
  app.all('*', (c) => c.text('done', 200, { 'content-disposition': 'attachment' }));
  return app;
}

function send(app: Hono<RestEnv>, method: string, headers: Record<string, string>, path = '/v1/exec') {
  return app.request(path, { method, headers: { host: 'localhost:8000', ...headers } });
}

const status = async (...args: Parameters<typeof send>) => (await send(...args)).status;

describe('on this machine', () => {
  const app = service();

  it.each(['localhost', 'localhost:8000', 'LOCALHOST:1', '127.0.0.1:8000', '[::1]', '[::1]:8000'])(
    'a service answers to the name %s',
    async (host) => {
      expect(await status(app, 'POST', { host })).toBe(200);
    },
  );

  it.each([
    'evil.example',
    'evil.example:8000',
    'localhost.evil.example',
    'localhost@evil.example',
    'evil.example#localhost',
    '127.0.0.1.nip.io:8000',
    '127.0.0.2:8000',
    '[::2]',
    'localhost:8000:1',
    'localhost.',
    '',
  ])('a service does not answer to the name %s, which a web page may have given it', async (host) => {
    expect(await status(app, 'POST', { host })).toBe(403);
    expect(await status(app, 'GET', { host }, '/health')).toBe(403);
  });

  it('a service answers to the names of its tunnel, as they are at that moment', async () => {
    const names = ['one.example'];
    const tunnelled = new Hono<RestEnv>();
    tunnelled.onError(onError(pino({ level: 'silent' })));
    tunnelled.use(checkHostAndOrigin(readConfig({}, {}), () => names));
    tunnelled.all('*', (c) => c.text('done'));
    expect(await status(tunnelled, 'POST', { host: 'one.example' })).toBe(200);
    names.splice(0, 1, 'two.example');
    expect(await status(tunnelled, 'POST', { host: 'two.example:443' })).toBe(200);
    expect(await status(tunnelled, 'POST', { host: 'one.example' })).toBe(403);
    expect(await status(tunnelled, 'POST', { host: 'localhost' })).toBe(200);
  });

  it('a service answers to the address that it was given', async () => {
    expect(await status(service({ host: '127.0.0.2' }), 'POST', { host: '127.0.0.2:8000' })).toBe(200);
    expect(await status(service({ host: '::1' }), 'POST', { host: '[::1]:8000' })).toBe(200);
  });

  it('where a key is asked for, any name will do', async () => {
    expect(await status(service(KEY), 'POST', { host: 'evil.example', 'x-api-key': KEY.apiKey })).toBe(200);
  });
});

it('elsewhere, a service with a key answers to any name', async () => {
  const app = service({ ...KEY, host: '0.0.0.0' });
  expect(await status(app, 'POST', { host: 'code.example.com', 'x-api-key': KEY.apiKey })).toBe(200);
  expect(await status(app, 'POST', { host: 'code.example.com' })).toBe(401);
});

describe('a web page', () => {
  const app = service({ corsOrigins: CHAT });

  it.each(['http://localhost:8000', 'https://localhost:8000', CHAT])('of %s may do anything', async (origin) => {
    for (const method of ['GET', 'POST', 'DELETE']) expect(await status(app, method, { origin })).toBe(200);
  });

  it.each([
    'https://evil.example',
    'null',
    '',
    'http://localhost:3000',
    'http://localhost',
    'http://127.0.0.1:8000',
    'http://chat.example.com',
    'https://chat.example.com:8443',
    'https://chat.example.com.evil.example',
    'https://evil.example#localhost:8000',
    'chrome-extension://localhost:8000',
    'file://',
  ])('of %s may do nothing', async (origin) => {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS']) expect(await status(app, method, { origin })).toBe(403);
    expect(await status(app, 'POST', { origin }, '/health')).toBe(403);
  });

  it('may see that the service is there, but not read the answer', async () => {
    const response = await send(app, 'GET', { origin: 'https://evil.example' }, '/health');
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('cannot send a form', async () => {
    const type = { 'content-type': 'text/plain' };
    expect(await status(app, 'POST', { origin: 'https://evil.example', ...type })).toBe(403);
    expect(await status(app, 'POST', { origin: 'null', ...type })).toBe(403);
  });

  it('of a name with a default port is the same with and without it', async () => {
    const open = service({ ...KEY, host: '0.0.0.0' });
    const headers = { host: 'code.example.com:443', origin: 'https://code.example.com', 'x-api-key': KEY.apiKey };
    expect(await status(open, 'POST', headers)).toBe(200);
  });

  it('is told how it could be let in', async () => {
    const response = await send(app, 'POST', { origin: 'https://evil.example' });
    expect(await response.json()).toMatchObject({
      code: 'forbidden',
      detail: expect.stringMatching(/"https:\/\/evil\.example" may not use this service.*--cors-origins/),
    });
  });
});

it('programs, which send no Origin, are let through', async () => {
  expect(await status(service(), 'POST', {})).toBe(200);
});

describe('a browser', () => {
  const app = service({ ...KEY, corsOrigins: `${CHAT},tauri://localhost` });
  const preflight = {
    'access-control-request-method': 'POST',
    'access-control-request-headers': 'x-api-key, content-type',
  };

  it('asks for leave without a credential, and gets it for an origin of the list', async () => {
    for (const origin of [CHAT, 'tauri://localhost']) {
      const response = await send(app, 'OPTIONS', { origin, ...preflight });
      expect(response.status).toBe(204);
      expect(Object.fromEntries(response.headers)).toMatchObject({
        'access-control-allow-origin': origin,
        'access-control-allow-methods': expect.stringMatching(/POST.*DELETE/),
        'access-control-allow-headers': 'x-api-key,content-type',
        vary: expect.stringContaining('Origin'),
      });
      expect(response.headers.has('access-control-allow-credentials')).toBe(false);
    }
  });

  it('gets no leave for another', async () => {
    const response = await send(app, 'OPTIONS', { origin: 'https://evil.example', ...preflight });
    expect(response.status).toBe(403);
    expect(response.headers.get('access-control-allow-origin')).toBeNull();
  });

  it('may read answers and errors', async () => {
    const answers = [
      await send(app, 'POST', { origin: CHAT, 'x-api-key': KEY.apiKey }),
      await send(app, 'POST', { origin: CHAT }),
    ];
    expect(answers.map((answer) => answer.status)).toEqual([200, 401]);
    for (const { headers } of answers) {
      expect(headers.get('access-control-allow-origin')).toBe(CHAT);
      expect(headers.get('vary')).toContain('Origin');
      expect(headers.get('access-control-expose-headers')).toContain('Content-Disposition');
    }
  });

  it('may come from everywhere if the list says so and there is a key', async () => {
    const open = service({ ...KEY, corsOrigins: '*' });
    const response = await send(open, 'POST', { origin: 'https://any.example', 'x-api-key': KEY.apiKey });
    expect(response.status).toBe(200);
    expect(response.headers.get('access-control-allow-origin')).toBe('*');
    expect(await status(open, 'POST', { origin: 'https://any.example' })).toBe(401);
  });
});

describe('a service on this machine that every web page may use', () => {
  const app = service({ corsOrigins: '*' });

  it('lets pages of every origin in, as it was told to', async () => {
    const answer = await send(app, 'POST', { origin: 'https://any.example' });
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*']);
  });

  it('still does not answer to a name that a page could have pointed here', async () => {
    expect(await status(app, 'POST', { host: 'evil.example', origin: 'http://evil.example' })).toBe(403);
  });

  it('says that this is unsafe, unless a credential is asked for', () => {
    const said = (flags: object) => createAccess(readConfig({ corsOrigins: '*', ...flags }, {})).describe();
    expect(said({})).toMatch(/UNSAFE: .*every web page that is opened in a browser.*can run code here.*--api-key/);
    expect(said(KEY)).not.toMatch(/unsafe/i);
  });
});
