import { describe, expect, it } from 'vitest';
import { drawSweep } from '../../../src/lab/report/site-map.ts';
import { renderSweep } from '../../../src/lab/report/sweep-report.ts';
import { concludeSweep } from '../../../src/lab/site-sweep/conclude.ts';
import { runSweep } from '../../../src/lab/site-sweep/run-sweep.ts';
import type { SweepRecord } from '../../../src/lab/site-sweep/sweep-record.ts';
import { createPlainEngine, plainPairs } from '../causality/plain-engine.ts';
import { context } from '../causality/questions.ts';
import { expectWellFormed, withTexts } from './well-formed.ts';

const PLAIN = { columns: 80, unicode: true, colour: false };

async function sampleSweep(positions: number[]): Promise<SweepRecord> {
  const question = {
    sites: positions.map((position) => ({ layer: 0, place: 'resid_post' as const, position })),
    directions: [{ name: 'fit', direction: { kind: 'fit' as const, method: 'difference-of-means' as const } }],
    dataset: plainPairs(16),
    target: { positive: ['yes'], negative: ['no'] },
    seed: 1,
  };
  const evidence = await runSweep(createPlainEngine(), question, context());
  return { question, evidence, conclusion: concludeSweep(evidence) };
}

describe('the picture of a sweep', () => {
  it('shows what is present with its size, and what is absent as a dot', async () => {
    const text = drawSweep(await sampleSweep([-2, -1]), PLAIN);
    expect(text).toMatch(/^layer 0 +· +█ [01]\.\d\d$/m);
    expect(text).toContain('moves the behaviour at 1 of 2 sites');
  });

  it.each([40, 56])('fits into %i columns, in ASCII too', async (columns) => {
    const record = await sampleSweep([-5, -4, -3, -2, -1]);
    for (const unicode of [true, false]) {
      const text = drawSweep(record, { columns, unicode, colour: false });
      for (const line of text.split('\n')) expect(line.length).toBeLessThanOrEqual(columns);
      if (!unicode) expect(text).toMatch(/^[\n -~]*$/);
    }
  });
});

describe('the page of a sweep', () => {
  it('is well-formed, with the map, every cell and the whole record, whatever its texts are', async () => {
    const record = await sampleSweep([-2, -1]);
    const page = renderSweep(record, { manifest: 'abc' });
    expectWellFormed(page);
    expect(page).toContain('<svg');
    expect(page).toContain('manifest <code>abc</code>');
    expect(page.match(/<tr><td>/g)).toHaveLength(2);
    const json = page.match(/base64,([^"]+)"/)?.[1] ?? '';
    expect(JSON.parse(Buffer.from(json, 'base64').toString())).toEqual(JSON.parse(JSON.stringify(record)));
    const odd = renderSweep(withTexts(record, '<script>&"\u0007'));
    expectWellFormed(odd);
    expect(odd).not.toContain('<script>');
  });
});
