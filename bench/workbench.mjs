/**
 * Measures the page on the real service, in a real Chromium, while a cell prints 10,000 lines a second: how long after it was printed a line is
 * seen, and the longest task that holds the page; and how much of the page is loaded first. Prints each figure with its bound.
 */

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { chromium } from 'playwright-core';
import { measurePage } from '../scripts/build-page.mjs';
import { printTable, quantile, say } from './table.mjs';

const ROOT = resolve(import.meta.dirname, '..');
const SECONDS = 15;
/** Prints its clock 10,000 times a second, as evenly as it can. */
const CODE = `import time
begin = time.time()
n = 0
while n < ${SECONDS} * 10_000:
    print(f"{time.time():.6f} line {n} of a cell that prints much")
    n += 1
    ahead = n / 10_000 - (time.time() - begin)
    if ahead > 0.002: time.sleep(ahead)
`;

const home = mkdtempSync(join(tmpdir(), 'cw-'));
for (const name of ['r', 'd', 'c', 'p']) mkdirSync(join(home, name), { mode: 0o700 });
const env = { ...process.env, XDG_RUNTIME_DIR: join(home, 'r'), XDG_DATA_HOME: join(home, 'd') };
const service = spawn(process.execPath, [join(ROOT, 'dist/main.js'), 'serve', '--port', '0'], {
  cwd: join(home, 'p'),
  env,
  stdio: ['ignore', 'pipe', 'inherit'],
});
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--headless', '--no-sandbox', '--disable-gpu'],
});
try {
  await measure(await addressOf(service));
} finally {
  await browser.close();
  service.kill('SIGINT');
  await new Promise((done) => service.once('exit', done));
  endAllIn(home);
  rmSync(home, { recursive: true, force: true });
}

async function measure(address) {
  const page = await browser.newPage({ viewport: { width: 1360, height: 860 } });
  await page.addInitScript(watch);
  await page.goto(address);
  await page.getByRole('button', { name: 'New session' }).click();
  const editor = page.getByRole('textbox', { name: 'Code to run in this session' });
  await editor.waitFor();
  await run(page, 'import time');
  await page.getByRole('article', { name: 'Execution 1, done' }).waitFor();
  await page.evaluate(() => window.measured.begin());
  say(`a cell prints 10,000 lines a second for ${SECONDS} seconds`);
  await run(page, CODE);
  await page.getByRole('article', { name: 'Execution 2, done' }).waitFor({ timeout: 240_000 });
  const { delays, tasks } = await page.evaluate(() => window.measured);
  const { first } = measurePage();
  const rows = [
    ['a line is seen after, half of them', ms(quantile(delays, 0.5)), ''],
    ['a line is seen after, 95 %', ms(quantile(delays, 0.95)), bound(quantile(delays, 0.95), 200, ms)],
    ['the longest task of the page', ms(Math.max(0, ...tasks)), bound(Math.max(0, ...tasks), 200, ms)],
    ['JavaScript loaded first, compressed', kB(first), bound(first, 350_000, kB)],
  ];
  printTable([['what', 'measured', 'bound'], ...rows]);
  say(`${delays.length} times that something new was seen, ${tasks.length} tasks of more than 50 ms`);
}

async function run(page, code) {
  // Handed over as a whole, because an editor that is typed into indents by itself.
  await page.getByRole('textbox', { name: 'Code to run in this session' }).click();
  await page.keyboard.insertText(code);
  await page.keyboard.press('Shift+Enter');
}

/** In the page: at each frame, how old the newest line is that is in the document. */
function watch() {
  window.measured = {
    delays: [],
    tasks: [],
    begin() {
      let last = '';
      const look = () => {
        const text = [...document.querySelectorAll('.terminal')].at(-1)?.lastElementChild?.textContent ?? '';
        const line = /(\d{10}\.\d{6}) line \d+ of[^\n]*\n?$/.exec(text)?.[1];
        if (line && line !== last) window.measured.delays.push(Date.now() - Number(line) * 1000);
        last = line ?? last;
        requestAnimationFrame(look);
      };
      requestAnimationFrame(look);
      new PerformanceObserver((list) => {
        for (const { duration } of list.getEntries()) window.measured.tasks.push(duration);
      }).observe({ entryTypes: ['longtask'] });
    },
  };
}

function addressOf(child) {
  let said = '';
  return new Promise((resolve, reject) => {
    child.stdout.on('data', (piece) => {
      said += piece;
      const found = /^Workbench: (http\S+\?token=\S+)$/m.exec(said)?.[1];
      if (found) resolve(found);
    });
    child.once('exit', () => reject(new Error(`The service ended, and said: ${said}`)));
  });
}

/** Zygotes wait for the next server, which there is none of here. */
function endAllIn(folder) {
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(`${folder}/`)) process.kill(Number(pid), 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
  }
}

function ms(value) {
  return `${Math.round(value)} ms`;
}

function kB(bytes) {
  return `${(bytes / 1000).toFixed(0)} kB`;
}

function bound(value, most, show) {
  return `${value <= most ? 'within' : 'NOT within'} ${show(most)}`;
}
