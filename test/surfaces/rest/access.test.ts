import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { Hono } from 'hono';
import { type CryptoKey, exportJWK, exportPKCS8, exportSPKI, generateKeyPair, SignJWT } from 'jose';
import { pino } from 'pino';
import { describe, expect, it, onTestFinished } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { createAccess, isPublic, NOBODY } from '../../../src/surfaces/rest/access.ts';
import { onError } from '../../../src/surfaces/rest/problem.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const KEY = 'the-key-of-the-house';
const SECRET = 'Zq3-xk_9Lm2pQr7T';
const KID = 'lc-codeapi-2026-05';
const PUBLIC_HOST = { host: '0.0.0.0' };

const ed = await generateKeyPair('EdDSA', { extractable: true });
const other = await generateKeyPair('EdDSA');
const rsa = await generateKeyPair('RS256');
const edPem = await exportSPKI(ed.publicKey);

function service(flags: Record<string, unknown>) {
  const access = createAccess(readConfig(flags, {}));
  const app = new Hono<RestEnv>({ getPath: access.getPath });
  app.onError(onError(pino({ level: 'silent' })));
  app.use(access.middleware);
  app.all('*', (c) => c.json({ ...c.get('principal'), path: c.req.path }));
  return app;
}

async function ask(app: Hono<RestEnv>, headers: Record<string, string> = {}, path = '/v1/exec') {
  const response = await app.request(path, { method: 'POST', headers });
  return response.status === 200 ? ((await response.json()) as { id: string; kind: string; path: string }) : response;
}

const status = async (app: Hono<RestEnv>, headers: Record<string, string> = {}, path?: string) => {
  const answer = await ask(app, headers, path);
  return answer instanceof Response ? answer.status : 200;
};

const now = () => Math.floor(Date.now() / 1000);

function token(
  claims: Record<string, unknown> = {},
  { key = ed.privateKey, alg = 'EdDSA', kid = KID }: { key?: CryptoKey | Uint8Array; alg?: string; kid?: string } = {},
) {
  const all = { iss: 'librechat', aud: 'codeapi', sub: 'u1', iat: now(), nbf: now(), exp: now() + 300, ...claims };
  return new SignJWT(all).setProtectedHeader({ alg, typ: 'JWT', kid }).sign(key);
}

const bearer = async (...args: Parameters<typeof token>) => ({ authorization: `Bearer ${await token(...args)}` });

describe('without any way of access', () => {
  it.each(['127.0.0.1', '::1', 'localhost', '127.0.0.53'])(
    'a service on %s is open to all of this machine',
    async (host) => {
      expect(await ask(service({ host }))).toMatchObject({ id: 'open', kind: 'open' });
    },
  );

  it.each(['0.0.0.0', '::', '192.168.1.5', 'example.com', '128.0.0.1'])('a service does not start on %s', (host) => {
    const { check } = createAccess(readConfig({ host }, {}));
    expect(() => check(host)).toThrow(/anybody could run code.*--api-key.*--jwt-public-key.*--path-secret.*--host 127/);
  });

  it('a service that was started there all the same lets nobody in', async () => {
    expect(await status(service(PUBLIC_HOST))).toBe(401);
  });
});

it.each([{ apiKey: KEY }, { pathSecret: SECRET }, { jwtPublicKey: edPem }])(
  'a service with a way of access starts anywhere: %j',
  (flags) => {
    const access = createAccess(readConfig({ ...flags, ...PUBLIC_HOST }, {}));
    expect(() => access.check('0.0.0.0')).not.toThrow();
    expect(access.describe()).not.toMatch(new RegExp(`${KEY}|${SECRET}|open`));
  },
);

describe('a key', () => {
  const app = service({ apiKey: KEY });

  it.each([
    { 'x-api-key': KEY },
    { 'X-API-Key': KEY },
    { authorization: `Bearer ${KEY}` },
    { authorization: `bearer ${KEY}` },
    { 'x-api-key': 'wrong', authorization: `Bearer ${KEY}` },
  ])('is accepted in the headers %j', async (headers) => {
    expect(await ask(app, headers)).toMatchObject({ id: 'key', kind: 'key' });
  });

  it.each([
    {},
    { 'x-api-key': '' },
    { 'x-api-key': `${KEY}x` },
    { 'x-api-key': KEY.slice(0, -1) },
    { 'x-api-key': KEY.toUpperCase() },
    { authorization: KEY },
    { authorization: 'Bearer ' },
    { authorization: `Basic ${btoa(`user:${KEY}`)}` },
  ])('is not accepted in the headers %j', async (headers) => {
    expect(await status(app, headers)).toBe(401);
  });

  it('is not accepted in the body or in the query', async () => {
    const body = JSON.stringify({ apiKey: KEY });
    const headers = { 'content-type': 'application/json' };
    const response = await app.request(`/v1/exec?api_key=${KEY}`, { method: 'POST', body, headers });
    expect(response.status).toBe(401);
  });

  it('is required on loopback too', async () => {
    expect(await status(service({ apiKey: KEY, host: '127.0.0.1' }))).toBe(401);
  });

  it('that is empty lets nobody in', async () => {
    expect(() => readConfig({ apiKey: '' }, {})).toThrow('apiKey');
    const access = createAccess({ ...readConfig({}, {}), apiKey: '', ...PUBLIC_HOST });
    expect(() => access.check('0.0.0.0')).toThrow();
  });

  it('that is missing is answered with what would be right, and nothing about it', async () => {
    const response = await app.request('/v1/exec', { method: 'POST', headers: { 'x-api-key': 'wrong' } });
    expect(response.headers.get('www-authenticate')).toBe('Bearer');
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    const body = await response.text();
    expect(JSON.parse(body)).toMatchObject({ status: 401, error: 'unauthorized', code: 'unauthorized' });
    expect(body).toMatch(/x-api-key, or in Authorization: Bearer/);
    expect(body).not.toMatch(/wrong"|the-key/);
  });
});

describe('a secret in the path', () => {
  const app = service({ pathSecret: SECRET });

  it.each([
    [`/k/${SECRET}/v1/exec`, '/v1/exec'],
    [`/k/${SECRET}/v1/download/a%20b?kind=user`, '/v1/download/a b'],
    [`/k/${SECRET}/`, '/'],
    [`/k/${SECRET}`, '/'],
    [`/k/${SECRET}/k/x`, '/k/x'],
  ])('lets %s in, and routes see %s', async (path, seen) => {
    expect(await ask(app, {}, path)).toEqual({ id: 'path', kind: 'path', path: seen });
  });

  it.each([
    '/v1/exec',
    `/k/${SECRET}x/v1/exec`,
    `/k/${SECRET.slice(0, -1)}/v1/exec`,
    `/k/${SECRET.toLowerCase()}/v1/exec`,
    '/k//v1/exec',
    `/v1/k/${SECRET}/exec`,
    `/${SECRET}/v1/exec`,
  ])('is not accepted in the path %s', async (path) => {
    expect(await status(app, {}, path)).toBe(401);
  });

  it('is not accepted as a key in a header', async () => {
    expect(await status(app, { 'x-api-key': SECRET, authorization: `Bearer ${SECRET}` })).toBe(401);
  });

  it('is not looked for where none is configured', async () => {
    expect(await ask(service({}), {}, `/k/${SECRET}/v1/exec`)).toMatchObject({ path: `/k/${SECRET}/v1/exec` });
  });
});

describe("LibreChat's token", () => {
  const app = service({ jwtPublicKey: edPem, jwtKid: KID });

  it('says who the user is', async () => {
    expect(await ask(app, await bearer())).toMatchObject({ id: 'user:u1', kind: 'jwt' });
    expect(await ask(app, await bearer({ tenant_id: 'legacy' }))).toMatchObject({ id: 'user:u1' });
    expect(await ask(app, await bearer({ tenant_id: '' }))).toMatchObject({ id: 'user:u1' });
    expect(await ask(app, await bearer({ tenant_id: 'acme' }))).toMatchObject({ id: 'tenant:acme/user:u1' });
  });

  it('cannot be made to look like the one of another tenant', async () => {
    const one = await ask(app, await bearer({ tenant_id: 'a/user:b', sub: 'c' }));
    const two = await ask(app, await bearer({ tenant_id: 'a', sub: 'b/user:c' }));
    expect(one).not.toEqual(two);
  });

  it('may be off by the skew of clocks, and not by more', async () => {
    expect(await status(app, await bearer({ exp: now() - 20 }))).toBe(200);
    expect(await status(app, await bearer({ exp: now() - 40 }))).toBe(401);
    expect(await status(app, await bearer({ nbf: now() + 20 }))).toBe(200);
    expect(await status(app, await bearer({ nbf: now() + 40 }))).toBe(401);
  });

  it.each<[string, Record<string, unknown>]>([
    ['of another issuer', { iss: 'somebody' }],
    ['for another audience', { aud: 'other' }],
    ['without a user', { sub: undefined }],
    ['with an empty user', { sub: '' }],
    ['that never ends', { exp: undefined }],
    ['with a tenant that is no name', { tenant_id: { $ne: 1 } }],
  ])('%s is refused', async (_, claims) => {
    expect(await status(app, await bearer(claims))).toBe(401);
  });

  it('that others have signed is refused', async () => {
    expect(await status(app, await bearer({}, { key: other.privateKey }))).toBe(401);
    expect(await status(app, await bearer({}, { key: rsa.privateKey, alg: 'RS256' }))).toBe(401);
  });

  it('with another kid is refused, and with any where none is set let in', async () => {
    expect(await status(app, await bearer({}, { kid: 'old' }))).toBe(401);
    expect(await status(service({ jwtPublicKey: edPem }), await bearer({}, { kid: 'old' }))).toBe(200);
  });

  it('that is not signed, or signed with the public key as a secret, is refused', async () => {
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
    const claims = { iss: 'librechat', aud: 'codeapi', sub: 'u1', exp: now() + 300 };
    const unsigned = `${part({ alg: 'none', kid: KID })}.${part(claims)}.`;
    expect(await status(app, { authorization: `Bearer ${unsigned}` })).toBe(401);
    const confused = await token({}, { key: new TextEncoder().encode(edPem), alg: 'HS256' });
    expect(await status(app, { authorization: `Bearer ${confused}` })).toBe(401);
  });

  it('that was changed is refused', async () => {
    const [header, payload, signature] = (await token()).split('.');
    const forged = Buffer.from(JSON.stringify({ iss: 'librechat', aud: 'codeapi', sub: 'root', exp: now() + 300 }));
    for (const bad of [`${header}.${forged.toString('base64url')}.${signature}`, `${header}.${payload}.`, 'a.b.c', 'x'])
      expect(await status(app, { authorization: `Bearer ${bad}` })).toBe(401);
  });

  it('may be signed with RS256', async () => {
    const withRsa = service({ jwtPublicKey: await exportSPKI(rsa.publicKey) });
    expect(await ask(withRsa, await bearer({}, { key: rsa.privateKey, alg: 'RS256' }))).toMatchObject({
      id: 'user:u1',
    });
    expect(await status(withRsa, await bearer())).toBe(401);
  });

  it('is accepted beside a key', async () => {
    const both = service({ jwtPublicKey: edPem, apiKey: KEY });
    expect(await ask(both, await bearer())).toMatchObject({ id: 'user:u1' });
    expect(await ask(both, { 'x-api-key': KEY })).toMatchObject({ id: 'key' });
    expect(await ask(both, { authorization: `Bearer ${KEY}` })).toMatchObject({ id: 'key' });
  });
});

describe('the public key of tokens', () => {
  it('may come with \\n, as environment files have it', async () => {
    expect(await status(service({ jwtPublicKey: edPem.replaceAll('\n', '\\n') }), await bearer())).toBe(200);
  });

  it('may come in a file', async () => {
    const path = join(temporaryFolder(), 'public.pem');
    writeFileSync(path, edPem);
    for (const jwtPublicKey of [path, `@${path}`])
      expect(await status(service({ jwtPublicKey }), await bearer())).toBe(200);
  });

  it('is refused at the start if it is no strong public key', async () => {
    const path = join(temporaryFolder(), 'nothing.pem');
    const secp = await exportSPKI((await generateKeyPair('ES256')).publicKey);
    expect(() => service({ jwtPublicKey: path })).toThrow(
      /jwtPublicKey is wrong: the file .*nothing\.pem cannot be read/,
    );
    expect(() => service({ jwtPublicKey: '-----BEGIN PUBLIC KEY-----\nx\n-----END PUBLIC KEY-----' })).toThrow(
      /jwtPublicKey is wrong: it is no public key/,
    );
    expect(() => service({ jwtPublicKey: secp })).toThrow(/must be of the kind Ed25519, or RSA/);
  });

  it('is refused at the start if it is a private key', async () => {
    const pem = await exportPKCS8(ed.privateKey);
    expect(() => service({ jwtPublicKey: pem })).toThrow(/it is a private key.*openssl pkey -pubout/);
  });
});

describe('a JSON Web Key Set', () => {
  async function jwk(key: CryptoKey, kid: string) {
    return { ...(await exportJWK(key)), kid, use: 'sig' };
  }

  /** Serves what it is given; null for a server that breaks. */
  async function keyServer(first: object | null) {
    const state = { set: first, asked: 0 };
    const server = createServer((_, response) => {
      state.asked += 1;
      if (state.set === null) response.writeHead(500).end();
      else response.setHeader('content-type', 'application/json').end(JSON.stringify(state.set));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    return { state, url: `http://127.0.0.1:${port}/jwks` };
  }

  it('is fetched once, and chooses the key by its kid', async () => {
    const { state, url } = await keyServer({ keys: [await jwk(ed.publicKey, 'a'), await jwk(rsa.publicKey, 'b')] });
    const app = service({ jwksUrl: url });
    expect(state.asked).toBe(0);
    expect(await status(app, await bearer({}, { kid: 'a' }))).toBe(200);
    expect(await status(app, await bearer({}, { kid: 'b', key: rsa.privateKey, alg: 'RS256' }))).toBe(200);
    expect(await status(app, await bearer({}, { kid: 'a', key: other.privateKey }))).toBe(401);
    expect(state.asked).toBe(1);
  });

  it('is not fetched again for everyone who makes up a kid', async () => {
    const { state, url } = await keyServer({ keys: [await jwk(ed.publicKey, 'a')] });
    const app = service({ jwksUrl: url });
    for (const kid of ['x', 'y', 'z']) expect(await status(app, await bearer({}, { kid }))).toBe(401);
    expect(state.asked).toBe(1);
  });

  it('that cannot be had is not the fault of the caller, and works again once it can', async () => {
    const { state, url } = await keyServer(null);
    const app = service({ jwksUrl: url });
    const headers = await bearer({}, { kid: 'a' });
    const answer = await ask(app, headers);
    expect(answer).toMatchObject({ status: 503 });
    expect(answer instanceof Response && (await answer.text())).not.toContain(url);
    state.set = { keys: [await jwk(ed.publicKey, 'a')] };
    expect(await status(app, headers)).toBe(200);
  });

  it('does not keep anybody waiting who brings no token', async () => {
    const { state, url } = await keyServer(null);
    const app = service({ jwksUrl: url, apiKey: KEY });
    expect(await status(app)).toBe(401);
    expect(await status(app, { 'x-api-key': KEY })).toBe(200);
    expect(await status(app, { authorization: `Bearer ${KEY}` })).toBe(200);
    expect(await status(app, { authorization: 'Bearer made-up' })).toBe(401);
    expect(state.asked).toBe(0);
  });

  it('may come in a file, and beside a public key', async () => {
    const path = join(temporaryFolder(), 'jwks.json');
    writeFileSync(path, JSON.stringify({ keys: [await jwk(rsa.publicKey, 'b')] }));
    const app = service({ jwksUrl: path, jwtPublicKey: edPem });
    expect(await status(app, await bearer())).toBe(200);
    expect(await status(app, await bearer({}, { kid: 'b', key: rsa.privateKey, alg: 'RS256' }))).toBe(200);
    expect(await status(app, await bearer({}, { key: other.privateKey }))).toBe(401);
  });

  it('is refused at the start if it is malformed or its URL has a password', () => {
    const path = join(temporaryFolder(), 'jwks.json');
    expect(() => service({ jwksUrl: path })).toThrow(/jwksUrl is wrong: the file .* cannot be read/);
    writeFileSync(path, '{"keys": 1}');
    expect(() => service({ jwksUrl: path })).toThrow(/is no JSON Web Key Set/);
    expect(() => service({ jwksUrl: 'https://me:word@example.com/jwks' })).toThrow(/URL without user and password/);
  });
});

describe('the public routes of a protected service', () => {
  const app = service({ apiKey: KEY });

  it.each(['/', '/health', '/v1/health'])('include GET and HEAD of %s', async (path) => {
    expect(isPublic(path)).toBe(true);
    expect(await (await app.request(path)).json()).toMatchObject({ ...NOBODY, kind: 'open' });
    expect((await app.request(path, { method: 'POST' })).status).toBe(401);
  });

  it('recognize a caller with a credential', async () => {
    expect(await (await app.request('/health', { headers: { 'x-api-key': KEY } })).json()).toMatchObject({ id: 'key' });
  });

  it.each(['/v1/exec', '/metrics', '/healthx', '/health/', '//', '/mcp'])('do not include %s', async (path) => {
    expect(isPublic(path)).toBe(false);
    expect((await app.request(path)).status).toBe(401);
  });
});
