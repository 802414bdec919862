/** Very much output: the page stays able to answer, keeps little of it, and shows the rest where it is asked for. */

import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { useBrowser } from './browser.ts';
import { type StandIn, type StandInSession, startStandIn } from './stand-in.ts';

const browser = useBrowser();
let standIn: StandIn;
beforeAll(async () => {
  standIn = await startStandIn();
});
afterAll(() => standIn.stop());

const MEGABYTE = 1_000_000;
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

async function heapOf(page: Page): Promise<number> {
  const client = await page.context().newCDPSession(page);
  await client.send('HeapProfiler.collectGarbage');
  return (await client.send('Runtime.getHeapUsage')).usedSize;
}

/** A person can still do something: the composer takes a key and shows it. */
async function expectAnswers(page: Page): Promise<void> {
  const editor = page.getByRole('textbox', { name: 'Code to run in this session' });
  await editor.click();
  await page.keyboard.type('ok');
  await expect.poll(() => editor.textContent()).toBe('ok');
}

async function open(session: StandInSession): Promise<Page> {
  const page = await browser.open(`${standIn.url}#/s/${session.id}`);
  await page.getByRole('article').first().waitFor();
  return page;
}

describe('the page', () => {
  it('takes a hundred megabytes of text, and keeps less than a megabyte of it', async () => {
    const session = standIn.addSession('text');
    const execution = standIn.execute(session, { code: 'flood()', state: 'running', outcome: null, wall: null });
    const page = await open(session);
    const before = await heapOf(page);
    const piece = `${'y'.repeat(79)}\n`.repeat(400);
    for (let sent = 0; sent < 100 * MEGABYTE; sent += piece.length) {
      standIn.print(session, execution, piece);
      if (sent % (3200 * 400) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    standIn.print(session, execution, 'the last line\n');
    standIn.end(session, execution);
    await page.getByText('the last line').waitFor();
    await page.getByText('lines above').waitFor();
    expect((await heapOf(page)) - before).toBeLessThan(20 * MEGABYTE);
    await expectAnswers(page);
    await page.context().close();
  });

  it('shows few of ten thousand images, and others when they are asked for', async () => {
    const session = standIn.addSession('images');
    const execution = standIn.execute(session, { code: 'draw()', state: 'running', outcome: null, wall: null });
    const page = await open(session);
    const data = { 'image/png': PIXEL.padEnd(2_000, '=') };
    for (let i = 0; i < 10_000; i++)
      standIn.output(session, execution, { type: 'display', data, large: {}, metadata: {} });
    standIn.end(session, execution);
    await page.getByText('9,976 more outputs').waitFor();
    expect(await page.locator('.outputs img').count()).toBe(24);
    await page.getByRole('button', { name: /9,976 more outputs/ }).click();
    await expect.poll(() => page.locator('.outputs img').count()).toBe(72);
    await expectAnswers(page);
    await page.context().close();
  });

  it('asks before it shows HTML of twenty megabytes, and shows it', async () => {
    const session = standIn.addSession('html');
    const html = `<p>start</p>${`<div>${'row '.repeat(350)}</div>`.repeat(14_200)}`;
    standIn.answer(/\/outputs\/0\/text\/html$/, () => new Response(html, { headers: { 'content-type': 'text/html' } }));
    standIn.execute(session, {
      code: 'page()',
      outputs: [{ type: 'display', index: 0, data: {}, large: { 'text/html': html.length }, metadata: {} }],
    });
    const page = await open(session);
    await page.getByRole('button', { name: /text\/html, 20\.\d MB/ }).click();
    await expectAnswers(page);
    await page.frameLocator('iframe').getByText('start').waitFor();
    await page.context().close();
  });

  it('says where text was skipped because it came too fast, and opens the whole of it', async () => {
    const session = standIn.addSession('slow');
    const execution = standIn.execute(session, { code: 'fast()', state: 'running', outcome: null, wall: null });
    const page = await open(session);
    standIn.print(session, execution, 'before\n');
    standIn.send(session, { type: 'skipped', execution: 1, from: 7, to: 1_000_007 });
    execution.text_length = 1_000_007;
    standIn.print(session, execution, 'after\n');
    await page.getByText('after').waitFor();
    await page.getByRole('button', { name: /1,000,000 more characters/ }).waitFor();
    await page.context().close();
  });

  it('drops the text of cells that were left long ago, and fetches it when they are looked at again', async () => {
    const session = standIn.addSession('shed');
    for (let i = 1; i <= 120; i++)
      standIn.execute(session, {
        code: `cell_${i}()`,
        outputs: [{ type: 'stream', index: 0, name: 'stdout', text: `${i} `.repeat(100_000) }],
      });
    const page = await browser.open(`${standIn.url}#/s/shed/2`);
    await page.getByRole('article', { name: 'Execution 2, done' }).waitFor();
    await page.getByRole('button', { name: 'Latest' }).click();
    await page.getByRole('article', { name: 'Execution 120, done' }).waitFor();
    await page.evaluate(() => {
      location.hash = '#/s/shed/3';
    });
    await page.getByRole('article', { name: 'Execution 3, done' }).getByText('3 3 3 3').waitFor();
    expect(await heapOf(page)).toBeLessThan(120 * MEGABYTE);
    await page.context().close();
  });
});

describe('the page, when the server goes', () => {
  it('says so quietly, comes back by itself, and shows what happened meanwhile', async () => {
    const session = standIn.addSession('away');
    standIn.execute(session, { code: 'before()' });
    const page = await open(session);
    await standIn.stop();
    await page.getByText('The server is away. This page comes back by itself.').waitFor();
    standIn.execute(session, { code: 'meanwhile()' });
    await standIn.start();
    await page.getByText('meanwhile').waitFor();
    await page.getByText('The server is away. This page comes back by itself.').waitFor({ state: 'detached' });
    await page.context().close();
  });

  it('asks to sign in when it is known no more', async () => {
    const session = standIn.addSession('known');
    standIn.execute(session, { code: 'before()' });
    const page = await open(session);
    standIn.token = 'new';
    await standIn.stop();
    await standIn.start();
    await page.getByRole('heading', { name: 'Sign in to Cuvette' }).waitFor();
    await page.getByLabel('Key or token of this service').fill('new');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('before').waitFor();
    standIn.token = undefined;
    await page.context().close();
  });
});
