import { describe, expect, it } from 'vitest';
import { decide } from '../../../src/lab/causality/decide.ts';
import type { Evidence } from '../../../src/lab/causality/evidence.ts';
import { type ProtocolRecord, VERDICTS } from '../../../src/lab/causality/verdict.ts';
import { guardsOf } from '../../../src/lab/report/guards.ts';
import { formatNumber, formatP, formatPercent, formatShort } from '../../../src/lab/report/numbers.ts';
import { renderReport } from '../../../src/lab/report/report.ts';
import { sampleRecord } from './sample-record.ts';
import { expectWellFormed, withTexts } from './well-formed.ts';

const HOSTILE = '</style><script>alert("1")</script><img src=x onerror=\'alert(2)\'>&\u0000\u001b[31m';

describe('the report on a protocol run', () => {
  it('says the verdict, why, and what is not claimed', () => {
    const record = sampleRecord();
    const page = renderReport(record);
    expect(page).toContain('<strong>Causal</strong>');
    expect(page).toContain('causal : sufficient-and-necessary');
    for (const { condition, because } of record.verdict.path) {
      expect(page).toContain(condition.replace('|G| <', '|G| &lt;'));
      expect(page).toContain(because);
    }
    expect(page.match(/<li class="matched">/g)).toHaveLength(1);
    expect(page).toContain('Nothing is claimed about other sites');
  });

  it.each(VERDICTS)('has a text for the verdict %s', (verdict) => {
    const record = sampleRecord();
    expectWellFormed(renderReport({ ...record, verdict: { ...record.verdict, verdict } }));
  });

  it('states every effect with its interval and both p-values, and the null it was held against', () => {
    const page = renderReport(sampleRecord());
    expect(page).toContain('<td>0.93</td><td>[0.87, 0.99]</td><td>0.005</td><td>0.015</td><td>present</td>');
    expect(page).toContain('along 199 isotropic random directions');
    expect(page).toContain('in a fixed sequence, I, S, N');
    expect(page).toContain('it may spend 0.005');
    expect(page).toContain(
      'permutations of the labels within pairs, in both halves, the direction fitted anew each time',
    );
  });

  it('loads nothing from elsewhere', () => {
    const page = renderReport(sampleRecord());
    expectWellFormed(page);
    expect(page).toContain("default-src 'none'");
    expect(page).not.toMatch(/<script|<link|<img|@import|url\(/);
    const addresses = [...page.matchAll(/(?:href|src)="([^"]{0,40})/g)].map(([, address]) => address);
    expect(addresses.every((address) => address?.startsWith('data:'))).toBe(true);
  });

  it('has the whole record in it, for anyone to decide again', () => {
    const record = sampleRecord();
    const data = /href="data:application\/json;base64,([^"]+)"/.exec(renderReport(record))?.[1] ?? '';
    const found = JSON.parse(Buffer.from(data, 'base64').toString()) as ProtocolRecord;
    expect(found).toEqual(record);
    expect(decide(found.evidence)).toEqual(decide(record.evidence));
  });

  it('is the same page for the same record, and names the manifest if there is one', () => {
    expect(renderReport(sampleRecord())).toBe(renderReport(sampleRecord()));
    expect(renderReport(sampleRecord(), { manifest: 'abc123' })).toContain('<td>abc123</td>');
  });

  it('escapes texts, wherever they come from', () => {
    const page = renderReport(withTexts(sampleRecord(), HOSTILE), { manifest: HOSTILE });
    expect(page).not.toMatch(/<script|<img/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: such characters are what must not be there.
    expect(page).not.toMatch(/[\u0000-\u0008\u001b]/);
    expectWellFormed(page);
  });

  it.each<[string, (evidence: Evidence, isBad: boolean) => void]>([
    ['dormancy', (evidence, isBad) => (evidence.dormancy.rest = isBad ? 0.94 : 0.9)],
    ['harm', (evidence, isBad) => (evidence.harm.component = isBad ? 0.11 : 0.09)],
    ['flips', (evidence, isBad) => (evidence.interchange.answerFlips.rate = isBad ? 0.09 : 0.11)],
    ['temperature', (evidence, isBad) => (evidence.temperature.untold.rate = isBad ? 0.21 : 0.19)],
  ])('judges the guard of %s as the verdict does', (_, change) => {
    for (const isBad of [true, false]) {
      const { evidence } = sampleRecord();
      change(evidence, isBad);
      expect(decide(evidence).verdict === 'causal').toBe(!isBad);
      expect(guardsOf(evidence).every((guard) => guard.passes)).toBe(!isBad);
    }
  });

  it('shows prompts with what the model said before and after', () => {
    const page = renderReport(sampleRecord());
    expect(page).toMatch(/the keys 1<\/p>\s*<dl><dt>says<\/dt><dd><b>&quot; are&quot;<\/b> <small>61 %<\/small>/);
    expect(page).toContain('<dt>component swapped</dt><dd><b>&quot; is&quot;</b> <small>52 %</small>');
  });

  it('has rules for narrow screens', () => {
    expect(renderReport(sampleRecord())).toMatch(/@media \(max-width:560px\)\{/);
  });

  it.each(VERDICTS)('claims of random directions no more than its figures show: %s', (verdict) => {
    const record = sampleRecord();
    const page = renderReport({ ...record, verdict: { ...record.verdict, verdict, sentence: 'As found.' } });
    expect(page).not.toMatch(/random directions do (neither|nothing)|not read/);
  });

  it('says that a name is missing where one is required', () => {
    const { evidence } = sampleRecord();
    evidence.naming = { required: true };
    expect(guardsOf(evidence).at(-1)).toMatchObject({ value: 'none', passes: false });
  });

  it('tells of the structure-matched set if there was one', () => {
    const record = sampleRecord();
    const { scores, resolution, labels } = record.evidence.decodability;
    const interval = { low: 0.52, high: 0.7 };
    record.evidence.structureMatched = { auroc: 0.61, interval, scores, resolution, labels };
    expect(renderReport(record)).toContain('0.61 [0.52, 0.70], 60 rows');
    expect(renderReport(sampleRecord())).not.toContain('<th scope="row">structure-matched set');
  });
});

describe('the methods section of a report', () => {
  it.each([
    ['none', 'all rows were tested'],
    ['given', 'had been trained on were set apart'],
    ['pair', 'no pair is in both halves'],
    ['template', 'no wording is in both halves'],
    ['row', 'Divided by row'],
  ] as const)('say how rows were divided: %s', (by, words) => {
    const record = sampleRecord();
    record.evidence.split.by = by;
    expect(renderReport(record)).toContain(words);
  });

  it('warns of runs whose temperature could not be measured', () => {
    const record = sampleRecord();
    expect(renderReport(record)).not.toContain('the slope cannot be told');
    record.evidence.temperature.untold = { ...record.evidence.temperature.untold, count: 12, of: 60 };
    expect(renderReport(record)).toContain('In 12 of 60 runs along the direction');
  });

  it('claims no pairs and no refitting where there were none', () => {
    const record = sampleRecord();
    record.evidence.data.pairs = 0;
    record.evidence.decodability.permutation.refitted = false;
    record.evidence.direction = { ...record.evidence.direction, kind: 'given', source: 'probe sentiment' };
    const page = renderReport(record);
    expect(page).not.toContain('within pairs');
    expect(page).not.toContain('fitted anew');
    expect(page).toContain('Given (probe sentiment), and not changed.');
  });
});

describe('numbers in a report', () => {
  it('have as many digits as they need', () => {
    expect([0.926, -0.5, 0, 12.345, 158.2, 2.5e7].map(formatNumber)).toEqual([
      '0.93',
      '−0.50',
      '0.00',
      '12.35',
      '158',
      '2.5e+7',
    ]);
    expect([0.0042, -0.0001].map(formatNumber)).toEqual(['0.004', '0.000']);
    expect([0.0042, -0.0042].map(formatShort)).toEqual(['0.00', '0.00']);
  });

  it('are never zero for p values', () => {
    expect([1, 0.041, 0.005, 0.0001].map(formatP)).toEqual(['1.00', '0.041', '0.005', '0.0001']);
    expect(formatP(1 / 20_001)).toBe('0.00005');
  });

  it('are percent for shares', () => {
    expect([0, 0.033, 0.5, 1].map(formatPercent)).toEqual(['0 %', '3.3 %', '50 %', '100 %']);
  });
});
