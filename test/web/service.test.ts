/** The page on the real service, beside a real MCP agent: it shows what the agent does, works in the same session, and outlives the server. */

import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { agreementPairs } from '../../src/lab/demo/datasets.ts';
import { kill, waitFor } from '../e2e/harness.ts';
import { connectMcp } from '../e2e/http/mcp-client.ts';
import { anotherService, type Service, startService, useService } from '../e2e/http/service.ts';
import { useBrowser } from './browser.ts';

const service = await useService({ args: ['--max-sessions', '4'] });
const browser = useBrowser();

/** The address of the banner, which signs a browser in. */
function addressOf({ stdout }: Service): Promise<string> {
  return waitFor('the banner', () => /^Workbench: (http\S+\?token=\S+)$/m.exec(stdout())?.[1]);
}

async function openSession(of: Service, id: string): Promise<Page> {
  const page = await browser.open(await addressOf(of));
  await page.evaluate((hash) => {
    location.hash = hash;
  }, `#/s/${id}`);
  return page;
}

const cell = (page: Page, number: number, state: string) =>
  page.getByRole('article', { name: `Execution ${number}, ${state}` });

async function freePort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return String(port);
}

describe('the page beside an agent', () => {
  test('shows its cells as it runs them, with a table, a figure and an error, and works in the same session', async () => {
    const agent = await connectMcp(service);
    await agent.execute('x = 20');
    const page = await openSession(service, 'default');
    await cell(page, 1, 'done').getByText('agent').waitFor();

    const running = agent.execute(
      'import time\nfor i in range(30):\n    print("tick", i, flush=True)\n    time.sleep(0.1)',
    );
    await cell(page, 2, 'running').getByText('tick 3').waitFor();
    await running;
    await cell(page, 2, 'done').waitFor();

    await agent.execute('import pandas as pd\ndf = pd.DataFrame({"city": ["Oslo", "Rome"], "rain": [763, 837]})\ndf');
    await cell(page, 3, 'done').getByRole('cell', { name: 'Oslo' }).waitFor();
    await agent.execute('df.plot.bar(x="city", y="rain");');
    const picture = cell(page, 4, 'done').getByRole('img');
    await expect
      .poll(() => picture.evaluate((element) => (element instanceof HTMLImageElement ? element.naturalWidth : 0)))
      .toBeGreaterThan(100);
    await agent.execute('a = 1\nb = a / 0');
    await cell(page, 5, 'error').getByText('ZeroDivisionError').first().waitFor();
    expect(await cell(page, 5, 'error').locator('.error-line').textContent()).toContain('b = a / 0');

    await page.getByRole('textbox', { name: 'Code to run in this session' }).click();
    await page.keyboard.type('print(x + 1); y = "from the page"');
    await page.keyboard.press('Shift+Enter');
    const own = cell(page, 6, 'done');
    await own.getByText('21').waitFor();
    await own.getByText('you').waitFor();
    expect((await agent.execute('print(y)')).text).toContain('from the page');

    await page.getByRole('button', { name: /^df / }).click();
    await page.getByRole('table', { name: 'Table' }).getByText('837').waitFor();
    await page.getByRole('button', { name: 'Close' }).click();
    await page.context().close();
  });

  test('interrupts what the agent runs', async () => {
    const agent = await connectMcp(service);
    const page = await openSession(service, 'default');
    const running = agent.execute('import time\nprint("sleeping", flush=True)\ntime.sleep(600)');
    const interrupt = page.getByRole('button', { name: 'Interrupt' });
    await page.getByText('sleeping', { exact: true }).waitFor();
    await interrupt.click();
    expect((await running).text).toMatch(/interrupt|cancel/i);
    await interrupt.waitFor({ state: 'detached' });
    await page.context().close();
  });

  test('pages through a frame of a million rows', async () => {
    const agent = await connectMcp(service);
    await agent.execute(
      'import numpy as np, pandas as pd\nbig = pd.DataFrame({"n": np.arange(1_000_000), "half": np.arange(1_000_000) / 2})',
    );
    const page = await openSession(service, 'default');
    await page.getByRole('button', { name: /^big / }).click();
    const table = page.getByRole('table', { name: 'Table' });
    await table.getByRole('row').nth(3).waitFor();
    await page.getByRole('region', { name: 'Rows' }).evaluate((element) => {
      element.scrollTop = element.scrollHeight;
    });
    await table.getByText('499999.5').waitFor();
    await page.context().close();
  });

  test('takes a file in, shows it, and hands it out', async () => {
    const agent = await connectMcp(service);
    await agent.execute('1');
    const page = await openSession(service, 'default');
    await page.getByRole('tab', { name: 'Files' }).click();
    const file = { name: 'rain.csv', mimeType: 'text/csv', buffer: Buffer.from('city,rain\nOslo,763\n') };
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByRole('button', { name: /rain\.csv/ }).click();
    await page.getByRole('dialog').getByText('Oslo,763').waitFor();
    expect((await agent.execute('print(open("rain.csv").read())')).text).toContain('Oslo,763');
    const download = page.waitForEvent('download');
    await page.getByRole('link', { name: 'Download' }).click();
    expect((await download).suggestedFilename()).toBe('rain.csv');
    await page.context().close();
  });

  test('says that a session was evicted, and goes on when it is used again', async () => {
    const { session_id: id } = await service.python('kept = 5');
    const page = await openSession(service, id);
    await cell(page, 1, 'done').waitFor();
    for (let count = 0; count < 4; count += 1) await service.post('/sessions', {});
    await page.locator('.standing').waitFor();
    await service.python('print("again")', { session_id: id });
    await cell(page, 2, 'done').getByText('again', { exact: true }).waitFor();
    await page.context().close();
  });
});

describe("the lab's view", () => {
  test('attaches the model that ships, runs the protocol from its form, and draws the verdict', async () => {
    const page = await browser.open(await addressOf(service));
    await page.getByRole('link', { name: 'Lab' }).click();
    await page.getByRole('button', { name: 'Attach', exact: true }).click();
    await page.getByText('Questions asked').waitFor();
    const rows = agreementPairs(7, 24);
    const captured = await service.post('/tools/capture_acts', {
      arguments: {
        prompts: rows.map(({ prompt }) => prompt),
        labels: rows.map(({ label }) => label),
        pair_ids: rows.map(({ pair }) => String(pair)),
        layers: [2],
      },
    });
    const { structured } = captured.json<{ structured: { capture_id: string } }>();
    await page.getByRole('link', { name: 'Ask whether it uses a direction' }).click();
    await page.getByLabel('capture_id').first().fill(structured.capture_id);
    await page.getByLabel('fit', { exact: true }).selectOption('difference-of-means');
    await page.getByLabel('layer', { exact: true }).fill('2');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('link', { name: 'Look at its evidence' }).click({ timeout: 240_000 });
    await page.getByRole('heading', { name: 'Decision' }).waitFor();
    expect(await page.locator('.report').getByRole('img').count()).toBeGreaterThan(5);
    await page.context().close();
  });
});

describe('the page and its server', () => {
  test('comes back by itself when the server is killed and started again, and misses nothing', async () => {
    const port = await freePort();
    const first = await startService({ home: service.home, args: ['--port', port] });
    const { session_id: id } = await first.python('import time');
    const page = await openSession(first, id);
    await cell(page, 1, 'done').waitFor();
    const code = 'for i in range(600):\n    print("line", i, flush=True); time.sleep(0.05)\n    if i > 200: break';
    await first.post(`/sessions/${id}/executions`, { code });
    await page.getByText('line 5').waitFor();
    kill(first.pid);
    await page.getByText('The server is away', { exact: false }).first().waitFor();
    await anotherService({ home: service.home, args: ['--port', port] });
    await cell(page, 2, 'done').waitFor();
    const text = await cell(page, 2, 'done').locator('.terminal').allTextContents();
    const numbers = text.join('\n').match(/line \d+/g) ?? [];
    expect(numbers).toEqual(Array.from({ length: 202 }, (_, i) => `line ${i}`));
    await page.context().close();
    await first.stop('SIGKILL');
  });

  test('asks for the key where there is one, refuses a wrong one, and keeps who is signed in', async () => {
    const locked = await anotherService({ home: service.home, args: ['--api-key', 'a-key-of-the-house'] });
    const page = await browser.open(`${locked.url}/`);
    const key = page.getByLabel('Key or token of this service');
    await key.fill('wrong');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('alert').waitFor();
    await key.fill('a-key-of-the-house');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Connect your agent' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Connect your agent' }).waitFor();
    await page.getByRole('link', { name: 'Operate' }).click();
    await page.getByRole('heading', { name: 'What the doctor finds' }).waitFor();
    await page.context().close();
  });
});
