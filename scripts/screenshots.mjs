/** Makes pictures of the workbench's views, light and dark, wide and on a phone, of the built page on the tests' stand-in: `node scripts/screenshots.mjs [folder]`. */

import { mkdirSync, statSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { runnerImport } from 'vite';

const ROOT = resolve(import.meta.dirname, '..');
const folder = resolve(process.argv[2] ?? join(ROOT, 'docs', 'images'));
const load = async (path) => {
  const { module } = await runnerImport(join(ROOT, path), { root: ROOT, configFile: false, logLevel: 'error' });
  return module;
};

const SIZES = {
  light: { colorScheme: 'light', viewport: { width: 1360, height: 860 } },
  dark: { colorScheme: 'dark', viewport: { width: 1360, height: 860 } },
  phone: { colorScheme: 'light', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
  'phone-dark': { colorScheme: 'dark', viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true },
};

const isPhone = (page) => page.viewportSize().width < 760;
const openInspector = async (page) => {
  if (isPhone(page)) await page.getByRole('button', { name: 'Variables, files and interpreters' }).click();
};

/** How to come to each view, from a session. */
const VIEWS = {
  session: (page) => page.getByText('validating').waitFor(),
  cells: async (page) => {
    await page.getByRole('article', { name: 'Execution 1, done' }).waitFor();
    await page.locator('.list-scroller').evaluate((element) => {
      element.scrollTop = 0;
    });
  },
  variables: async (page) => {
    await openInspector(page);
    await page.getByRole('button', { name: /^weights / }).waitFor();
  },
  table: async (page) => {
    await openInspector(page);
    await page.getByRole('button', { name: /^df / }).click();
    await page.getByRole('table', { name: 'Table' }).getByText('1931-01-01').first().waitFor();
  },
  files: async (page) => {
    await openInspector(page);
    await page.getByRole('tab', { name: 'Files' }).click();
    await page.getByRole('button', { name: /rainfall\.csv/ }).waitFor();
  },
  lab: async (page, url) => {
    await page.goto(`${url}#/lab`);
    await page.getByText('Questions asked').waitFor();
  },
  protocol: async (page, url) => {
    await page.goto(`${url}#/lab/run:causality_protocol`);
    await page.getByLabel('capture_id').waitFor();
  },
  verdict: async (page, url) => {
    await page.goto(`${url}#/lab/run:causality_protocol`);
    await page.getByLabel('capture_id').fill('cap_1');
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.getByRole('link', { name: 'Look at its evidence' }).click();
    await page.getByRole('heading', { name: 'Decision' }).waitFor();
  },
  operate: async (page, url) => {
    await page.goto(`${url}#/operate`);
    await page.getByText('What the doctor finds').waitFor();
  },
  empty: async (page, url) => {
    await page.goto(`${url}#/s/empty`);
    await page.getByText('Nothing ran in').waitFor();
  },
  help: async (page) => {
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
  },
};

const { startStandIn } = await load('test/web/stand-in.ts');
const { drawScene } = await load('test/web/scene.ts');
const { answerLab, OPERATION } = await load('test/web/lab-scene.ts');
const { sampleRecord } = await load('test/lab/report/sample-record.ts');

const standIn = await startStandIn();
const empty = standIn.addSession('empty', ['new-study']);
const { session } = drawScene(standIn);
empty.used_at = '2026-11-17T09:00:00Z';
answerLab(standIn, sampleRecord());
standIn.answer(/^\/operate$/, () => Response.json(OPERATION));

mkdirSync(folder, { recursive: true });
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
});
const wanted = process.argv.slice(3);
for (const [size, options] of Object.entries(SIZES)) {
  for (const [view, go] of Object.entries(VIEWS)) {
    if (wanted.length > 0 && !wanted.includes(view) && !wanted.includes(`${view}-${size}`)) continue;
    const context = await browser.newContext({ ...options, reducedMotion: 'reduce', locale: 'en-GB' });
    const page = await context.newPage();
    await page.goto(`${standIn.url}#/s/${session.id}`);
    await page.getByRole('article').first().waitFor();
    await page.getByRole('textbox', { name: 'Code to run in this session' }).waitFor();
    await go(page, standIn.url);
    await page.evaluate(() => new Promise((done) => setTimeout(done, 300)));
    const path = join(folder, `workbench-${view}-${size}.png`);
    await page.screenshot({ path });
    console.log(`${path} ${Math.round(statSync(path).size / 1000)} kB`);
    await context.close();
  }
}
await browser.close();
await standIn.stop();
