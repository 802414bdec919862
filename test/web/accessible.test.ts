/** Every view, light and dark, wide and narrow: axe finds no serious fault, and all of it can be used by keyboard. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sampleRecord } from '../lab/report/sample-record.ts';
import { useBrowser } from './browser.ts';
import { answerLab, OPERATION } from './lab-scene.ts';
import { drawScene } from './scene.ts';
import { type StandIn, startStandIn } from './stand-in.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = useBrowser();
let standIn: StandIn;
let id = '';
beforeAll(async () => {
  standIn = await startStandIn();
  id = drawScene(standIn).session.id;
  answerLab(standIn, sampleRecord());
  standIn.answer(/^\/operate$/, () => Response.json(OPERATION));
});
afterAll(() => standIn.stop());

const VIEWS: [string, (page: Page) => Promise<void>][] = [
  ['a session', (page) => page.getByText('validating').waitFor()],
  [
    'a session, at its beginning',
    async (page) => {
      await page.locator('.list-scroller').evaluate((element) => {
        element.scrollTop = 0;
      });
      await page.getByRole('cell', { name: 'Oslo' }).first().waitFor();
    },
  ],
  [
    'files',
    async (page) => {
      await page.keyboard.press('f');
      await page.getByRole('button', { name: /rainfall\.csv/ }).waitFor();
    },
  ],
  [
    'interpreters',
    async (page) => {
      await openInspector(page);
      await page.getByRole('tab', { name: 'Interpreters' }).click();
      await page.getByText('pid 4711').waitFor();
    },
  ],
  [
    'a table',
    async (page) => {
      await openInspector(page);
      await page.getByRole('button', { name: /^df / }).click();
      await page.getByRole('table', { name: 'Table' }).getByText('1931-01-01').first().waitFor();
    },
  ],
  [
    'a tree',
    async (page) => {
      await openInspector(page);
      await page.getByRole('button', { name: /^config / }).click();
      await page.getByRole('button', { name: /^optimizer/ }).waitFor();
    },
  ],
  [
    'the keyboard',
    async (page) => {
      await page.keyboard.press('?');
      await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    },
  ],
  [
    'the lab',
    async (page) => {
      await page.goto(`${standIn.url}#/lab`);
      await page.getByText('Questions asked').waitFor();
    },
  ],
  [
    'a tool of the lab',
    async (page) => {
      await page.goto(`${standIn.url}#/lab/run:causality_protocol`);
      await page.getByLabel('capture_id').waitFor();
    },
  ],
  [
    'a verdict',
    async (page) => {
      await runProtocol(page);
      await page.getByRole('link', { name: 'Look at its evidence' }).click();
      await page.getByRole('heading', { name: 'Decision' }).waitFor();
    },
  ],
  [
    'operations',
    async (page) => {
      await page.goto(`${standIn.url}#/operate`);
      await page.getByText('What the doctor finds').waitFor();
    },
  ],
  [
    'the sign-in',
    async (page) => {
      standIn.token = 'x';
      await page.reload();
      await page.getByRole('heading', { name: 'Sign in to Cuvette' }).waitFor();
      standIn.token = undefined;
    },
  ],
];

async function openInspector(page: Page): Promise<void> {
  if (!(await page.getByRole('tablist', { name: 'Inspector' }).isVisible())) await page.keyboard.press('v');
}

async function runProtocol(page: Page): Promise<void> {
  await page.goto(`${standIn.url}#/lab/run:causality_protocol`);
  await page.getByLabel('capture_id').fill('cap_1');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
}

async function seriousFaults(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate<AxeResults>('axe.run(document, { resultTypes: ["violations"] })');
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id: rule, nodes }) =>
        `${rule}: ${nodes
          .slice(0, 3)
          .map(({ html, failureSummary }) => `${html.slice(0, 160)} ${failureSummary?.slice(0, 240)}`)
          .join(' | ')}`,
    );
}

describe.each([
  ['light', { colorScheme: 'light' as const }],
  ['dark', { colorScheme: 'dark' as const }],
  ['narrow', { viewport: { width: 390, height: 844 } }],
])('in %s', (_, options) => {
  it.each(VIEWS)('%s has no serious fault', async (_name, go) => {
    const page = await browser.open(`${standIn.url}#/s/${id}`, options);
    await page.getByRole('article').first().waitFor();
    await go(page);
    expect(await seriousFaults(page)).toEqual([]);
    // Nothing but tables and code is wider than the screen.
    const wide = ['html', '.page', '.list-scroller', '.panel'];
    const over = await page.evaluate(
      (names) =>
        names.filter(
          (name) =>
            (document.querySelector(name)?.scrollWidth ?? 0) > (document.querySelector(name)?.clientWidth ?? 0) + 1,
        ),
      wide,
    );
    expect(over).toEqual([]);
    await page.context().close();
  });
});

describe('without a mouse', () => {
  it('moves between executions, edits one, and runs it', async () => {
    const page = await browser.open(`${standIn.url}#/s/${id}`);
    await page.getByRole('article').first().waitFor();
    await page.getByRole('textbox', { name: 'Code to run in this session' }).waitFor();
    await page.keyboard.press('k');
    await page.keyboard.press('k');
    await expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('execution-5');
    await page.keyboard.press('e');
    await expect
      .poll(() => page.getByRole('textbox', { name: 'Code to run in this session' }).textContent())
      .toContain('Markdown(summary)');
    await page.keyboard.press('Shift+Enter');
    await page.getByRole('article', { name: 'Execution 7, done' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await page.context().close();
  });

  it('cancels a run of the lab, and compares two verdicts', async () => {
    const page = await browser.open(`${standIn.url}#/lab/run:causality_protocol`);
    await page.getByLabel('capture_id').fill('forever');
    await page.getByRole('button', { name: 'Run', exact: true }).press('Enter');
    await page.getByText('measuring').waitFor();
    await page.getByRole('button', { name: 'Cancel' }).press('Enter');
    await page.getByText('It was cancelled.').waitFor();
    await runProtocol(page);
    await page.getByRole('link', { name: 'Look at its evidence' }).waitFor();
    await runProtocol(page);
    await page.getByRole('link', { name: 'Look at its evidence' }).click();
    await page.getByRole('checkbox').first().press('Space');
    await expect.poll(() => page.getByRole('heading', { name: 'Decision' }).count()).toBe(2);
    await page.context().close();
  });
});
