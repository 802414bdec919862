/** Checks who may come in, and that no caller reaches what belongs to another. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { exportJWK, exportSPKI, generateKeyPair } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  anotherService,
  type Caller,
  formOf,
  ID,
  ok,
  type Problem,
  refusalOf,
  type Service,
  startService,
  unusedMark,
  useService,
} from './service.ts';
import { bearer, type Claims, publicKey } from './tokens.ts';

const KEY = 'a key with spaces & signs';
const SECRET = 'path-secret-0123456789';
const { privateKey: foreignKey } = await generateKeyPair('EdDSA', { extractable: true });

const service = await useService({
  preload: 'none',
  env: { CUVETTE_API_KEY: KEY, CUVETTE_PATH_SECRET: SECRET, CODEAPI_JWT_PUBLIC_KEY: await exportSPKI(publicKey) },
});

const body = { lang: 'bash', code: 'echo in' };
const status = async (headers: Record<string, string>, base = '') =>
  (await service.as(headers, base).post('/exec', body)).status;

describe('a credential', () => {
  test('may be the key, in either header', async () => {
    expect(await status({ 'x-api-key': KEY })).toBe(200);
    expect(await status({ authorization: `Bearer ${KEY}` })).toBe(200);
  });

  test.each([
    ['missing', {}],
    ['an empty key', { 'x-api-key': '' }],
    ['a wrong key', { 'x-api-key': 'wrong' }],
    ['half of the key', { 'x-api-key': KEY.slice(0, -1) }],
    ['more than the key', { 'x-api-key': `${KEY}x` }],
    ['the key under another name', { 'x-key': KEY }],
    ['a wrong bearer', { authorization: 'Bearer wrong' }],
    ['an empty bearer', { authorization: 'Bearer ' }],
    ['basic authentication', { authorization: `Basic ${Buffer.from(`:${KEY}`).toString('base64')}` }],
    ['a malformed token', { authorization: 'Bearer a.b.c' }],
  ])('that is %s is answered with 401 and how to come in', async (_, headers) => {
    const reply = await service.as(headers).post('/exec', body);
    expect(reply.status).toBe(401);
    expect(reply.headers['www-authenticate']).toBe('Bearer');
    expect(reply.json<Problem>()).toMatchObject({ code: 'unauthorized', detail: expect.stringContaining('x-api-key') });
    expect(reply.text).not.toContain(KEY);
    expect(reply.text).not.toContain(SECRET);
  });

  test('may be a token of LibreChat', async () => {
    expect(await status(await bearer())).toBe(200);
  });

  test('that is a token just expired is still accepted, as clocks differ', async () => {
    expect(await status(await bearer({ expires: -10 }))).toBe(200);
  });

  test.each<[string, Claims]>([
    ['that has expired', { expires: -120 }],
    ['for another audience', { audience: 'somebody' }],
    ['of another issuer', { issuer: 'somebody' }],
    ['signed with another key', { key: foreignKey }],
    ['without a subject', { sub: '' }],
  ])('that is a token %s is answered with 401', async (_, claims) => {
    expect(await status(await bearer(claims))).toBe(401);
  });

  test('that is a token without a signature is answered with 401', async () => {
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const exp = Math.floor(Date.now() / 1000) + 300;
    const claims = part({ iss: 'librechat', aud: 'codeapi', sub: 'user-1', exp });
    expect(await status({ authorization: `Bearer ${part({ alg: 'none' })}.${claims}.` })).toBe(401);
  });

  test('may be the secret in the path, before every route', async () => {
    for (const base of [`/k/${SECRET}`, `/k/${SECRET}/v1`, `/k/${SECRET}//v1`])
      expect(await status({}, base)).toBe(200);
    const caller = service.as({}, `/k/${SECRET}/v1`);
    const uploaded = await caller.upload('f', 'by path');
    const { stdout } = await caller.bash('cat f', { session_id: uploaded.session_id });
    expect(stdout).toBe('by path');
  });

  test.each([`/k/${SECRET}x`, `/k/${SECRET.slice(1)}`, '/k/', '/k', `/${SECRET}`])(
    'that is sent wrongly as the path %s is refused',
    async (base) => {
      const reply = await service.as({}, base).post('/exec', body);
      expect([401, 404]).toContain(reply.status);
      expect(reply.text).not.toContain('"stdout"');
    },
  );

  test.each([
    '/files/x',
    '/download/x/y',
    '/metrics',
    '/libraries',
    '/openapi.json',
    '/v1/files/x',
    '/mcp',
    '/nothing',
  ])('is required at %s', async (path) => expect((await service.get(path)).status).toBe(401));

  test('is not required to ask whether the service is healthy, which is all that callers without one are told', async () => {
    for (const path of ['/health', '/v1/health'])
      expect(ok(await service.get(path)).json()).toEqual({ status: 'healthy' });
    expect((await service.get('/')).status).toBe(200);
    expect((await service.post('/', {})).status).toBe(401);
    const known = ok(await service.as({ 'x-api-key': KEY }).get('/health')).json();
    expect(known).toHaveProperty('runtime_capabilities');
  });

  test('is never in the log', async () => {
    const logging = await anotherService({
      home: service.home,
      args: ['--log-requests', '--log-level', 'trace'],
      env: { CUVETTE_API_KEY: KEY, CUVETTE_PATH_SECRET: SECRET },
    });
    await logging.as({ 'x-api-key': KEY }).bash(`echo ${'code-is-private'}`);
    await logging.as({}, `/k/${SECRET}/v1`).bash('true');
    await logging.as({ 'x-api-key': 'wrong-key-given' }).post(`/exec?api_key=${encodeURIComponent(KEY)}`, body);
    await logging.get(`/k/${SECRET}-almost/v1/exec`);
    const { stderr } = await logging.stop();
    expect(stderr).toMatch(/"path":"\/(v1\/)?exec/);
    for (const secret of [KEY, encodeURIComponent(KEY), SECRET, 'wrong-key-given'])
      expect(stderr).not.toContain(secret);
  });

  test('may be checked against a set of keys in a file', async () => {
    const jwk = { ...(await exportJWK(publicKey)), kid: 'lc-codeapi-2026-05', alg: 'EdDSA', use: 'sig' };
    const path = join(service.home.root, 'jwks.json');
    writeFileSync(path, JSON.stringify({ keys: [jwk] }));
    const other = await anotherService({ home: service.home, args: ['--jwks-url', path] });
    expect((await other.as(await bearer()).bash('echo in')).stdout).toBe('in\n');
    expect((await other.as(await bearer({ key: foreignKey })).post('/exec', body)).status).toBe(401);
    expect((await other.post('/exec', body)).status).toBe(401);
  });
});

describe('a user', () => {
  let ada: Caller;
  let bob: Caller;
  const callers = async () => {
    ada ??= service.as(await bearer({ sub: 'ada' }));
    bob ??= service.as(await bearer({ sub: 'bob' }));
    return { ada, bob };
  };

  test('has other sessions than another user under the same names', async () => {
    const { ada, bob } = await callers();
    const hers = await ada.python('secret = "hers"; open("f", "w").write("hers"); None', { entity_id: 'shared' });
    const his = await bob.python('import os; print("secret" in dir(), os.listdir())', { entity_id: 'shared' });
    expect(his.stdout).toBe('False []\n');
    expect(his.session_id).not.toBe(hers.session_id);
    const hint = { runtime_session_hint: 'v2:conversation:same' };
    await ada.bash('x=hers', hint);
    expect((await bob.bash('echo "[$x]"', hint)).stdout).toBe('[]\n');
  });

  test('who gives the id of another’s session gets a fresh one', async () => {
    const { ada, bob } = await callers();
    const hers = await ada.python('secret = "hers"; open("f", "w").write("hers"); None');
    for (const lang of ['py', 'bash']) {
      const code = lang === 'py' ? 'import os; print("secret" in dir(), os.listdir())' : 'ls -A; pwd';
      const his = await bob.exec({ lang, code, session_id: hers.session_id });
      expect(his.stdout).toMatch(/^(False \[\]|\/mnt\/data)\n$/);
      expect(his.session_id).toMatch(ID);
      expect(his.session_id).not.toBe(hers.session_id);
    }
    expect((await ada.python('print(secret)', { session_id: hers.session_id })).stdout).toBe('hers\n');
  });

  test('finds nothing at the ids of another’s files', async () => {
    const { ada, bob } = await callers();
    const { session_id, files } = await ada.upload('f', 'hers');
    const id = files[0]?.id;
    for (const path of [`/download/${session_id}/${id}`, `/sessions/${session_id}/objects/${id}`])
      expect((await bob.get(path)).status).toBe(404);
    expect(ok(await bob.get(`/files/${session_id}?detail=full`)).json()).toEqual([]);
    for (const path of [`/files/${session_id}/${id}`, `/sessions/${session_id}/objects/${id}`])
      expect((await bob.send('DELETE', path)).status).toBe(404);
    const his = await bob.bash('ls -A', { files: [{ id, session_id, name: 'f' }] });
    expect([his.stdout, his.stderr, his.files]).toEqual(['', '', []]);
    expect((await ada.get(`/download/${session_id}/${id}`)).text).toBe('hers');
  });

  test('who gives the id of another’s upload gets a session with another id and cannot delete the upload', async () => {
    const { ada, bob } = await callers();
    const { session_id, files } = await ada.upload('f', 'hers');
    const his = await bob.python('import os; print(os.listdir()); open("g", "w").write("his")', { session_id });
    expect(his.stdout).toMatch(/^\[\]\n/);
    expect(his.session_id).not.toBe(session_id);
    expect((await bob.get(`/download/${his.session_id}/${his.files[0]?.id}`)).text).toBe('his');
    expect((await bob.send('DELETE', `/sessions/${session_id}`)).status).toBe(404);
    expect((await ada.get(`/download/${session_id}/${files[0]?.id}`)).text).toBe('hers');
    expect((await ada.python('print(open("f").read())', { session_id })).stdout).toBe('hers\n');
  });

  test('cannot delete another’s session, resume their stream or answer their program', async () => {
    const { ada, bob } = await callers();
    const stream = await ada.stream({
      lang: 'py',
      code: 'import time; print("x", flush=True); time.sleep(1); print("y")',
    });
    const first = await stream.event('stream');
    expect((await bob.send('DELETE', `/sessions/${stream.events[0]?.session_id}`)).status).toBe(404);
    const resumed = await bob.stream({}, { 'last-event-id': first.eventId });
    expect(resumed.status).toBe(404);
    const program = { lang: 'bash', code: 'ask "{}"', tools: [{ name: 'ask' }] };
    const headers = { 'x-librechat-code-request-id': 'request-of-ada' };
    const asked = ok(await ada.post('/exec/programmatic', program, { headers })).json<{
      continuation_token: string;
      tool_calls: { id: string }[];
    }>();
    const answer = {
      continuation_token: asked.continuation_token,
      tool_results: [{ call_id: asked.tool_calls[0]?.id, result: 'forged' }],
    };
    expect((await bob.post('/exec/programmatic', answer)).status).toBe(404);
    await bob.post('/exec/programmatic/cancel', { request_id: 'request-of-ada' });
    answer.tool_results = [{ call_id: asked.tool_calls[0]?.id, result: 'true one' }];
    expect(ok(await ada.post('/exec/programmatic', answer)).json()).toMatchObject({
      status: 'completed',
      stdout: '"true one"\n',
    });
    expect(await stream.ended).toBe(true);
    expect(stream.printed()).toBe('x\ny\n');
  });

  test('of one tenant is not the user of the same name of another tenant', async () => {
    const [one, two] = [
      service.as(await bearer({ sub: 'eve', tenant: 'one' })),
      service.as(await bearer({ sub: 'eve', tenant: 'two' })),
    ];
    const { session_id, files } = await one.upload('f', 'x');
    expect((await two.get(`/download/${session_id}/${files[0]?.id}`)).status).toBe(404);
    expect((await one.get(`/download/${session_id}/${files[0]?.id}`)).status).toBe(200);
  });

  test('is the same user with a new token', async () => {
    const { session_id } = await service.as(await bearer({ sub: 'zoe' })).python('x = 1', { entity_id: 'z' });
    const again = await service.as(await bearer({ sub: 'zoe' })).python('print(x)', { entity_id: 'z' });
    expect([again.stdout, again.session_id]).toEqual(['1\n', session_id]);
  });
});

describe('a service', () => {
  test.each(['0.0.0.0', '::', '192.0.2.1'])('does not start on %s without a credential', async (host) => {
    const { code, stdout, stderr } = await refusalOf(service.home, ['--host', host]);
    expect(code).toBe(2);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/anybody could run code here.*--api-key, CUVETTE_API_KEY.*--host 127\.0\.0\.1/s);
  });

  test('with a credential listens on other addresses and lets nobody in without it', async () => {
    const open = await anotherService({
      home: service.home,
      args: ['--host', '127.0.0.2'],
      env: { CUVETTE_API_KEY: KEY },
    });
    expect(open.url).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
    const [, port] = /:(\d+)$/.exec(open.url) ?? [];
    expect((await open.post('/exec', body)).status).toBe(401);
    const headers = { 'x-api-key': KEY, host: `code.example.com:${port}` };
    expect((await open.as(headers).bash('echo in')).stdout).toBe('in\n');
  });

  test('does not start on a port that another program uses and says what to do', async () => {
    const port = /:(\d+)$/.exec(service.url)?.[1] ?? '';
    const { code, stderr } = await refusalOf(service.home, ['--port', port]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/another program uses it.*--port 0/s);
  });
});

describe('web pages', () => {
  const ORIGIN = 'https://chat.example.com';
  let open: Service;
  beforeAll(async () => {
    open = await startService({ home: service.home, args: ['--cors-origins', ORIGIN] });
  });
  afterAll(async () => {
    await open.stop();
  });

  test.each([
    'evil.example.com',
    'evil.example.com:80',
    '127.0.0.1.evil.example.com',
    'localhost.evil.example.com',
    '169.254.169.254',
  ])('that point the name %s at this machine are answered with 403', async (host) => {
    const { as } = open;
    expect((await as({ host }).post('/exec', body)).status).toBe(403);
    expect((await as({ host }).get('/health')).status).toBe(403);
  });

  test.each([
    'https://evil.example.com',
    'null',
    'http://localhost.evil.example.com',
    'https://chat.example.com.evil.example.com',
    'file://',
  ])('of the origin %s are answered with 403, and nothing runs', async (origin) => {
    const { as, url } = open;
    const mark = unusedMark(service.home);
    const leaveMark = { lang: 'bash', code: `touch ${mark.path}`, entity_id: 'page' };
    const reply = await as({ origin }).post('/exec', leaveMark);
    expect([reply.status, reply.headers['access-control-allow-origin']]).toEqual([403, undefined]);
    const simple = await as({ origin, 'content-type': 'text/plain' }).send('POST', '/exec', {
      body: JSON.stringify(leaveMark),
    });
    expect(simple.status).toBe(403);
    const form = await as({ origin }).send('POST', '/upload', formOf([{ name: 'f', content: 'x' }]));
    expect(form.status).toBe(403);
    expect(mark.isThere()).toBe(false);
    await as({ origin: url }).exec(leaveMark);
    expect(mark.isThere(), 'had it run').toBe(true);
  });

  test('of allowed origins are let in, also in preflight requests', async () => {
    const { as } = open;
    const preflight = await as({
      origin: ORIGIN,
      'access-control-request-method': 'POST',
      'access-control-request-headers': 'content-type,x-api-key',
    }).send('OPTIONS', '/v1/exec');
    expect(preflight.status).toBe(204);
    expect(preflight.headers['access-control-allow-origin']).toBe(ORIGIN);
    expect(preflight.headers['access-control-allow-methods']).toContain('POST');
    expect(preflight.headers['access-control-allow-headers']?.toLowerCase()).toContain('x-api-key');
    const reply = ok(await as({ origin: ORIGIN }).post('/exec', body));
    expect(reply.headers['access-control-allow-origin']).toBe(ORIGIN);
    expect(reply.headers.vary).toMatch(/origin/i);
  });

  test('of any origin are let in where that was asked for, and the operator is told what that means', async () => {
    const forAll = await anotherService({ home: service.home, env: { CORS_ALLOW_ORIGINS: '*' } });
    const reply = ok(await forAll.as({ origin: 'https://any.example' }).post('/exec', body));
    expect(reply.headers['access-control-allow-origin']).toBe('*');
    expect(forAll.stdout()).toMatch(/^Access: .*UNSAFE.*every web page/m);
    expect(forAll.stderr()).toMatch(/Unsafe: .*every web page/);
    expect((await forAll.as({ host: 'evil.example' }).post('/exec', body)).status).toBe(403);
  });
});
