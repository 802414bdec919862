/** Starts Debian's Chromium for tests: one browser for a file of tests, a page of its own for each test. */

import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll } from 'vitest';

const CHROMIUM = '/usr/bin/chromium';

const FLAGS = [
  '--headless',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

function startBrowser(): Promise<Browser> {
  // Playwright makes a user data folder of its own, and removes it.
  return chromium.launch({ executablePath: CHROMIUM, args: FLAGS });
}

export interface TestBrowser {
  /** A page in a context of its own, which throws away what it kept. */
  open(address: string, options?: BrowserContextOptions): Promise<Page>;
}

export function useBrowser(): TestBrowser {
  let browser: Browser | undefined;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());
  return {
    async open(address, options = {}) {
      if (!browser) throw new Error('The browser is started before the first test of a file.');
      const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, ...options });
      // Ends what hangs: nothing that works takes as long, on however slow a machine.
      context.setDefaultTimeout(240_000);
      const page = await context.newPage();
      await page.goto(address);
      return page;
    },
  };
}
