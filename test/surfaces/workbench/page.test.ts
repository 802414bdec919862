import { mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Hono } from 'hono';
import { pino } from 'pino';
import { describe, expect, it } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { checkHostAndOrigin, createAccess, OPEN } from '../../../src/surfaces/rest/access.ts';
import { onError } from '../../../src/surfaces/rest/problem.ts';
import { createSignIns, type SignInOptions } from '../../../src/surfaces/rest/sign-ins.ts';
import { pageRoutes } from '../../../src/surfaces/workbench/page.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const TOKEN = 'a-token-of-the-page-0123';
const KEY = 'the-key-of-the-house';
const HOST = '127.0.0.1:8000';
const HTML = { accept: 'text/html,application/xhtml+xml;q=0.9' };
const FROM_PAGE = { 'sec-fetch-site': 'same-origin', origin: `http://${HOST}` };

/** A service with its page, whose other routes tell who asks. */
function open(flags: Record<string, unknown> = {}, more: Partial<SignInOptions> = {}) {
  const folder = temporaryFolder();
  mkdirSync(join(folder, 'ui'));
  writeFileSync(join(folder, 'index.html'), '<title>page</title>');
  writeFileSync(join(folder, 'ui', 'main-Ab12Cd34.js'), 'let a');
  writeFileSync(join(folder, 'ui', 'frame.html'), '<title>frame</title>');
  const config = readConfig(flags, {});
  const access = createAccess(config, () => signIns);
  const signIns = createSignIns({ token: TOKEN, ways: access.ways(), ...more });
  const app = new Hono<RestEnv>({ getPath: access.getPath });
  app.onError(onError(pino({ level: 'silent' })));
  app.use(checkHostAndOrigin(config), access.middleware);
  app.route('/', pageRoutes({ signIns: () => signIns, tokenPrincipal: access.isOpen ? OPEN : undefined, folder }));
  app.all('*', (c) => c.json({ id: c.get('principal').id, isPage: c.get('isPage') ?? false }));
  const send = (method: string, path: string, headers: Record<string, string> = {}) =>
    app.request(path, { method, headers: { host: HOST, ...headers } });
  const status = async (...args: Parameters<typeof send>) => (await send(...args)).status;
  return { folder, send, status };
}

const cookieIn = (response: Response) => response.headers.get('set-cookie')?.split(';')[0] ?? '';

describe('the page', () => {
  it('is served to a browser that navigates to the root, with a strict policy; programs are told what this is', async () => {
    const { send } = open();
    const page = await send('GET', '/', { ...HTML, 'sec-fetch-dest': 'document', 'sec-fetch-site': 'none' });
    expect(await page.text()).toBe('<title>page</title>');
    expect(page.headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self';.*frame-ancestors 'none'/,
    );
    expect(Object.fromEntries(page.headers)).toMatchObject({
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
    });
    for (const headers of [
      {},
      { accept: '*/*' },
      { accept: 'application/json' },
      { ...HTML, 'sec-fetch-dest': 'iframe' },
    ])
      expect((await send('GET', '/', headers)).headers.get('content-type')).toContain('json');
  });

  it('says how to build it where it is not built', async () => {
    const app = new Hono<RestEnv>();
    const signIns = createSignIns({ ways: '' });
    app.route('/', pageRoutes({ signIns: () => signIns, tokenPrincipal: OPEN, folder: '/nowhere' }));
    expect(await (await app.request('/', { headers: HTML })).text()).toContain('npm run build');
  });

  it('has files that browsers keep, and no others than its own', async () => {
    const { send, status } = open({ apiKey: KEY });
    const script = await send('GET', '/ui/main-Ab12Cd34.js');
    expect([script.status, script.headers.get('content-type')]).toEqual([200, 'text/javascript; charset=utf-8']);
    expect(script.headers.get('cache-control')).toContain('immutable');
    for (const path of ['/ui/..%2findex.html', '/ui/missing.js', '/ui/.hidden'])
      expect([path, await status('GET', path)]).toEqual([path, 404]);
  });

  it('shows HTML of others in a frame that has an origin of its own and no network', async () => {
    const frame = await open().send('GET', '/ui/frame.html', { 'sec-fetch-site': 'cross-site' });
    expect(frame.headers.get('content-security-policy')).toMatch(
      /^sandbox allow-scripts; default-src 'none'.*connect-src 'none'/,
    );
    expect(frame.headers.get('cache-control')).toBe('no-cache');
  });
});

describe('a browser on an open service', () => {
  it('is let in by the token of the address, which becomes a cookie and goes from the address', async () => {
    const { send } = open();
    const opened = await send('GET', `/?token=${TOKEN}&view=lab`, { ...HTML, 'sec-fetch-site': 'none' });
    expect([opened.status, opened.headers.get('location')]).toEqual([303, '/?view=lab']);
    expect(opened.headers.get('set-cookie')).toMatch(/^cuvette-8000=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/);
    const cookie = cookieIn(opened);
    const answer = await send('GET', '/sessions', { 'sec-fetch-site': 'same-origin', cookie });
    expect(await answer.json()).toEqual({ id: 'open', isPage: true });
  });

  it('gets no cookie for a wrong token', async () => {
    const opened = await open().send('GET', '/?token=wrong', HTML);
    expect([opened.status, opened.headers.get('set-cookie'), opened.headers.get('location')]).toEqual([303, null, '/']);
  });

  it.each(['same-origin', 'same-site', 'cross-site', 'none'])(
    'without the cookie may read nothing and run nothing (%s)',
    async (site) => {
      const { status } = open();
      expect(await status('GET', '/sessions', { 'sec-fetch-site': site })).toBe(401);
      expect(await status('POST', '/exec', { 'sec-fetch-site': site })).toBe(401);
      expect(await status('POST', '/exec', { 'sec-fetch-site': site, authorization: 'Bearer wrong' })).toBe(401);
    },
  );

  it('of an origin that the settings allow needs none', async () => {
    const origin = 'https://chat.example.com';
    const { status } = open({ corsOrigins: origin });
    expect(await status('POST', '/exec', { origin, 'sec-fetch-site': 'cross-site' })).toBe(200);
  });

  it('signs in by the token, and out', async () => {
    const { send, status } = open();
    expect(await status('POST', '/login', { ...FROM_PAGE, authorization: 'Bearer wrong' })).toBe(401);
    const login = await send('POST', '/login', { ...FROM_PAGE, authorization: `Bearer ${TOKEN}` });
    const cookie = cookieIn(login);
    expect([login.status, await status('POST', '/exec', { ...FROM_PAGE, cookie })]).toEqual([204, 200]);
    expect(await status('POST', '/logout', { ...FROM_PAGE, cookie })).toBe(204);
    expect(await status('POST', '/exec', { ...FROM_PAGE, cookie })).toBe(401);
  });

  it('does not hinder programs, which send no such headers', async () => {
    const { send } = open();
    expect(await (await send('POST', '/exec')).json()).toEqual({ id: 'open', isPage: false });
  });
});

describe('the cookie', () => {
  async function signedIn(flags: Record<string, unknown> = {}, more: Partial<SignInOptions> = {}) {
    const service = open({ apiKey: KEY, ...flags }, more);
    const login = await service.send('POST', '/login', { ...FROM_PAGE, authorization: `Bearer ${KEY}` });
    return { ...service, cookie: cookieIn(login), login };
  }

  it('stands for who signed in with the key', async () => {
    const { send, cookie, status } = await signedIn();
    expect(await (await send('POST', '/exec', { ...FROM_PAGE, cookie })).json()).toEqual({ id: 'key', isPage: true });
    expect(await status('POST', '/login', { ...FROM_PAGE, authorization: `Bearer ${TOKEN}` })).toBe(401);
    expect((await send('GET', `/?token=${TOKEN}`, HTML)).headers.get('set-cookie')).toBeNull();
  });

  it.each([
    ['another site', { 'sec-fetch-site': 'cross-site' }],
    ['another server of this machine', { 'sec-fetch-site': 'same-site' }],
    ['a frame of an output', { 'sec-fetch-site': 'cross-site', origin: 'null' }],
    ['an old browser with another origin', { origin: 'http://127.0.0.1:3000' }],
  ])('does not count for a page of %s', async (_who, headers) => {
    const { status, cookie } = await signedIn();
    for (const method of ['GET', 'POST', 'PUT', 'DELETE'])
      expect([401, 403]).toContain(await status(method, '/sessions', { ...headers, cookie }));
  });

  it('changes something only where the page itself asks', async () => {
    const { status, cookie } = await signedIn();
    expect(await status('POST', '/exec', { cookie })).toBe(401);
    expect(await status('POST', '/exec', { cookie, 'sec-fetch-site': 'none' })).toBe(401);
    expect(await status('POST', '/exec', { cookie, origin: `http://${HOST}` })).toBe(200);
    expect(await status('GET', '/sessions', { cookie, 'sec-fetch-site': 'none' })).toBe(200);
  });

  it('is of no use at another port, and asks for TLS where a proxy speaks it', async () => {
    const { status, cookie, send } = await signedIn();
    const other = { host: '127.0.0.1:9000', 'sec-fetch-site': 'same-origin' };
    expect(await status('GET', '/sessions', { ...other, cookie })).toBe(401);
    const login = await send('POST', '/login', { authorization: `Bearer ${KEY}`, 'x-forwarded-proto': 'https' });
    expect(login.headers.get('set-cookie')).toContain('Secure');
  });

  it('is forgotten after a day without use, and after a week', async () => {
    let time = 0;
    const { status, cookie } = await signedIn({}, { now: () => time });
    const ask = () => status('GET', '/sessions', { 'sec-fetch-site': 'same-origin', cookie });
    const hours = (count: number) => count * 3_600_000;
    for (let day = 0; day < 6; day += 1) {
      time += hours(23);
      expect(await ask()).toBe(200);
    }
    time += hours(25);
    expect(await ask()).toBe(401);
  });
});

describe('sign-ins', () => {
  const principal = { id: 'key', kind: 'key' } as const;

  it('are found again by the next server, which has the same token, and hold no cookie', () => {
    const file = join(temporaryFolder(), 'ui', '8000.json');
    const first = createSignIns({ file, ways: 'key' });
    const cookie = first.signIn(principal);
    const next = createSignIns({ file, ways: 'key' });
    expect([next.token, next.find(cookie)]).toEqual([first.token, principal]);
    expect(readFileSync(file, 'utf8')).not.toContain(cookie);
    expect(statSync(file).mode & 0o777).toBe(0o600);
    next.signOut(cookie);
    expect(createSignIns({ file, ways: 'key' }).find(cookie)).toBeUndefined();
  });

  it('are forgotten where something else lets callers in, and where the file is broken', () => {
    const file = join(temporaryFolder(), 'ui', '8000.json');
    const cookie = createSignIns({ file, ways: 'key' }).signIn(principal);
    expect(createSignIns({ file, ways: 'another key' }).find(cookie)).toBeUndefined();
    writeFileSync(file, '{');
    expect(createSignIns({ file, ways: 'key' }).token).toMatch(/^[\w-]{32}$/);
  });

  it('are at most a thousand: the oldest go', () => {
    const signIns = createSignIns({ ways: '' });
    const cookies = Array.from({ length: 1001 }, () => signIns.signIn(principal));
    expect(signIns.find(cookies[0] ?? '')).toBeUndefined();
    expect(signIns.find(cookies[1] ?? '')).toEqual(principal);
  });
});
