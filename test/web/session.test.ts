/** A session in the page: what comes is seen as it comes, what a person does is done, and much of it stays quick. */

import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { useBrowser } from './browser.ts';
import { type StandIn, startStandIn } from './stand-in.ts';

const browser = useBrowser();
let standIn: StandIn;
beforeAll(async () => {
  standIn = await startStandIn();
});
afterAll(() => standIn.stop());

describe('a session in the page', () => {
  it('shows an execution, its output as it is printed, and its end', async () => {
    const session = standIn.addSession('live', ['study']);
    const page = await browser.open(`${standIn.url}#/s/live`);
    await page.getByText('Nothing ran in study yet').waitFor();
    const execution = standIn.execute(session, {
      code: 'for i in range(3): print(i)',
      state: 'running',
      outcome: null,
      wall: null,
    });
    await page.getByRole('article', { name: 'Execution 1, running' }).waitFor();
    standIn.print(session, execution, 'first\n');
    await page.getByText('first').waitFor();
    standIn.print(session, execution, '10 %\r');
    standIn.print(session, execution, '90 %\r');
    await page.getByText('90 %').waitFor();
    expect(await page.getByText('10 %').count()).toBe(0);
    standIn.end(session, execution);
    await page.getByRole('article', { name: 'Execution 1, done' }).waitFor();
    expect(await page.getByRole('status').allTextContents()).toContain('Execution 1 done');
    await page.close();
  });

  it('runs what is typed, recalls it with the arrow, and interrupts what runs', async () => {
    const session = standIn.addSession('typed');
    standIn.onRun = (its, code, interpreter) =>
      standIn.execute(its, { code, interpreter, origin: 'page', state: 'running', outcome: null, wall: null }).number;
    const page = await browser.open(`${standIn.url}#/s/typed`);
    const editor = page.getByRole('textbox', { name: 'Code to run in this session' });
    await editor.click();
    await page.keyboard.type('1 + 1');
    await page.keyboard.press('Shift+Enter');
    await page.getByRole('article', { name: 'Execution 1, running' }).waitFor();
    expect(session.executions[0]).toMatchObject({ code: '1 + 1', interpreter: 'python' });
    await page.keyboard.press('ArrowUp');
    await expect.poll(() => editor.textContent()).toBe('1 + 1');
    await page.getByRole('button', { name: 'Interrupt' }).click();
    await page.getByRole('article', { name: 'Execution 1, cancelled' }).waitFor();
    await page.close();
  });

  it('scrolls through two thousand cells, with few of them in the document', async () => {
    const session = standIn.addSession('many');
    for (let i = 1; i <= 2000; i++)
      standIn.execute(session, {
        code: Array.from({ length: 1 + (i % 9) }, (_, n) => `step_${i}_${n}()`).join('\n'),
        outputs: [{ type: 'stream', index: 0, name: 'stdout', text: 'x\n'.repeat(i % 13) }],
      });
    const page = await browser.open(`${standIn.url}#/s/many/3`);
    await page.getByRole('article', { name: 'Execution 3, done' }).waitFor();
    const scroller = page.locator('.list-scroller');
    // Whatever is drawn for the first time above or below, what is looked at stays where it is.
    for (let step = 0; step < 40; step++) await scroller.evaluate((element) => element.scrollBy(0, 4000));
    const most = await page.locator('article.cell').count();
    expect(most).toBeGreaterThan(3);
    expect(most).toBeLessThan(60);
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Latest' }).click();
    await page.getByRole('article', { name: 'Execution 2000, done' }).waitFor();
    expect(
      await page.evaluate(() => document.getElementById('execution-2000')?.getBoundingClientRect().top ?? 9999),
    ).toBeLessThan(900);
    await page.close();
  });

  it('keeps what is read in place while cells above it are drawn for the first time', async () => {
    const page = await browser.open(`${standIn.url}#/s/many`);
    await page.getByRole('article', { name: 'Execution 2000, done' }).waitFor();
    const scroller = page.locator('.list-scroller');
    const positions = await scroller.evaluate(async (element) => {
      const found: number[] = [];
      for (let step = 0; step < 25; step++) {
        const cells = [...document.querySelectorAll('article.cell')];
        const marked = cells.find((cell) => cell.getBoundingClientRect().top > 200);
        const before = marked?.getBoundingClientRect().top ?? 0;
        element.scrollTop -= 150;
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        if (marked?.isConnected) found.push(marked.getBoundingClientRect().top - before);
      }
      return found;
    });
    expect(positions.length).toBeGreaterThan(15);
    for (const moved of positions) expect(Math.abs(moved - 150)).toBeLessThanOrEqual(2);
    await page.close();
  });

  it('keeps a window of a hundred thousand lines, and pages and searches the rest', async () => {
    const session = standIn.addSession('lines');
    const execution = standIn.execute(session, { code: 'flood()', state: 'running', outcome: null, wall: null });
    const whole = Array.from({ length: 100_000 }, (_, i) => `line ${i} ${'.'.repeat(40)}\n`).join('');
    standIn.answer(/\/sessions\/lines\/executions\/1\/output$/, (_, query) => {
      const word = query.get('search');
      if (word) {
        const offset = whole.indexOf(word);
        return Response.json({ matches: [{ offset, line: whole.slice(offset, offset + 30) }], has_more: false });
      }
      const offset = Number(query.get('offset'));
      const text = whole.slice(offset, offset + Number(query.get('limit')));
      return Response.json({ text, offset, next: offset + text.length, length: whole.length });
    });
    const page = await browser.open(`${standIn.url}#/s/lines`);
    await page.getByRole('article', { name: 'Execution 1, running' }).waitFor();
    const memory = async () => {
      const client = await page.context().newCDPSession(page);
      await client.send('HeapProfiler.collectGarbage');
      const { usedSize } = await client.send('Runtime.getHeapUsage');
      return usedSize;
    };
    const before = await memory();
    for (let at = 0; at < whole.length; at += 32_768) standIn.print(session, execution, whole.slice(at, at + 32_768));
    await page.getByText('line 99999').waitFor();
    expect((await memory()) - before).toBeLessThan(15_000_000);
    expect(
      await page
        .locator('.terminal')
        .first()
        .evaluate((element) => element.textContent?.length ?? 0),
    ).toBeLessThan(450_000);
    standIn.end(session, execution);
    await page.getByRole('button', { name: /lines above/ }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('line 0 ').waitFor();
    await dialog.getByRole('searchbox').fill('line 54321 ');
    await dialog.getByRole('searchbox').press('Enter');
    await dialog.getByRole('button', { name: /line 54321/ }).click();
    await expect.poll(() => dialog.getByLabel('Text').textContent()).toContain('line 54322');
    await page.close();
  });

  it('pages through a million rows, sorted and filtered by the server', async () => {
    const { drawScene } = await import('./scene.ts');
    const { session } = drawScene(standIn);
    const page = await browser.open(`${standIn.url}#/s/${session.id}`);
    await page.getByRole('button', { name: /^df / }).click();
    const table = page.getByRole('table', { name: 'Table' });
    await table.getByText('1931-01-01').first().waitFor();
    const rows = page.getByRole('region', { name: 'Rows' });
    await rows.evaluate((element) => {
      element.scrollTop = element.scrollHeight;
    });
    await table.getByRole('rowheader', { name: '1048575' }).waitFor();
    expect(await table.getByRole('row').count()).toBeLessThan(60);
    await rows.evaluate((element) => {
      element.scrollTop = element.scrollHeight / 2;
    });
    await expect
      .poll(async () => Number(await table.getByRole('rowheader').nth(5).textContent()))
      .toBeGreaterThan(400_000);
    await rows.evaluate((element) => {
      element.scrollTop = 0;
    });
    await table.getByRole('button', { name: /rain/ }).click();
    await table.getByRole('button', { name: /rain/ }).click();
    await table.getByRole('rowheader', { name: '1048575' }).waitFor();
    await page.getByRole('searchbox', { name: 'Show rows that contain' }).fill('Bergen');
    await page.getByText('of 262,144').waitFor();
    await page.close();
  });

  it('shows the same in two tabs', async () => {
    const session = standIn.addSession('tabs');
    const [one, two] = [await browser.open(`${standIn.url}#/s/tabs`), await browser.open(`${standIn.url}#/s/tabs`)];
    const execution = standIn.execute(session, { code: 'shared()', state: 'running', outcome: null, wall: null });
    standIn.print(session, execution, 'seen twice\n');
    await one.getByText('seen twice').waitFor();
    await two.getByText('seen twice').waitFor();
    await one.close();
    await two.close();
  });

  it('uploads a file that is chosen', async () => {
    standIn.addSession('files');
    const received: string[] = [];
    standIn.answer(/\/sessions\/files\/workspace\/file$/, async (_, query, request) => {
      received.push(`${query.get('path')}: ${await request.text()}`);
      return Response.json({ path: query.get('path'), size: 5 }, { status: 201 });
    });
    const page = await browser.open(`${standIn.url}#/s/files`);
    await page.getByRole('tab', { name: 'Files' }).click();
    await page
      .locator('input[type=file]')
      .setInputFiles({ name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from('1,2,3') });
    await expect.poll(() => received).toEqual(['a.csv: 1,2,3']);
    await page.close();
  });
});

afterEach(() => {
  standIn.requests.length = 0;
});
