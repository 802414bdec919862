/** The views of MCP Apps, in a frame as a host shows them, spoken to as a host speaks. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { sampleRecord } from '../lab/report/sample-record.ts';
import { useBrowser } from './browser.ts';
import { type Json, WEB } from './stand-in.ts';

const browser = useBrowser();
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const TABLE =
  '<table class="dataframe"><thead><tr><th></th><th>city</th></tr></thead><tbody><tr><th>0</th><td>Oslo</td></tr></tbody></table>';

/** A host that answers the view's greeting, and then tells what a tool was given and what it answered. */
async function host(name: string, input: Json, result: Json): Promise<Page> {
  const page = await browser.open('about:blank');
  const html = readFileSync(join(WEB, `${name}.html`), 'utf8');
  await page.evaluate(
    ({ view, given, answered }) => {
      const frame = document.createElement('iframe');
      frame.sandbox.add('allow-scripts');
      frame.srcdoc = view;
      frame.style.cssText = 'width:900px;height:700px';
      const say = (message: object) => frame.contentWindow?.postMessage({ jsonrpc: '2.0', ...message }, '*');
      addEventListener('message', ({ data, source }) => {
        if (source !== frame.contentWindow) return;
        if (data.method === 'ui/initialize')
          say({
            id: data.id,
            result: {
              protocolVersion: data.params.protocolVersion,
              hostInfo: { name: 'host', version: '1' },
              hostCapabilities: {},
              hostContext: { theme: 'dark' },
            },
          });
        if (data.method !== 'ui/notifications/initialized') return;
        say({ method: 'ui/notifications/tool-input', params: { arguments: given } });
        say({ method: 'ui/notifications/tool-result', params: answered });
      });
      document.body.append(frame);
    },
    { view: html, given: input, answered: result },
  );
  return page;
}

describe('a view in an MCP host', () => {
  it('shows what execute answered: code, text, a figure', async () => {
    const page = await host(
      'app-execution',
      { code: 'print("hello")' },
      {
        content: [
          { type: 'text', text: '\u001b[31mhello\u001b[0m <b>not bold</b>' },
          { type: 'image', data: PIXEL, mimeType: 'image/png' },
        ],
        _meta: {
          'cuvette/view': { execution: 3, interpreter: 'builtin', outcome: 'ok', wall_seconds: 0.25, html: [TABLE] },
        },
      },
    );
    const view = page.frameLocator('iframe');
    await view.getByText('print("hello")').waitFor();
    await view.getByText('250 ms').waitFor();
    await view.getByRole('cell', { name: 'Oslo' }).waitFor();
    expect(await view.locator('.ansi-fg-1').textContent()).toBe('hello');
    expect(await view.locator('.outputs b').count()).toBe(0);
    expect(await view.getByRole('img').count()).toBe(1);
    expect(await view.locator('html').getAttribute('data-theme')).toBe('dark');
    await page.context().close();
  });

  it('draws the evidence of a verdict, and tells the decision where there is no record', async () => {
    const record = sampleRecord();
    const drawn = await host('app-verdict', {}, { content: [], structuredContent: { record } });
    await drawn.frameLocator('iframe').getByRole('heading', { name: 'Decision' }).waitFor();
    expect(await drawn.frameLocator('iframe').getByRole('img').count()).toBeGreaterThan(5);
    const { verdict, reason, sentence, limits, path } = record.verdict;
    const answer = { verdict, reason, explanation: sentence, limits, decision_path: path };
    const told = await host('app-verdict', {}, { content: [], structuredContent: answer });
    await told.frameLocator('iframe').getByText(sentence).waitFor();
    await drawn.context().close();
    await told.context().close();
  });
});
