import { describe, expect, test } from 'vitest';
import type { DatasetRow } from '../../../src/lab/causality/question.ts';
import { splitRows } from '../../../src/lab/causality/split.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { axis } from './plain-engine.ts';
import { ask } from './questions.ts';

const fit = { kind: 'fit' as const, method: 'difference-of-means' as const };

function rows(count: number, extra: (row: number) => Partial<DatasetRow>): DatasetRow[] {
  return Array.from({ length: count }, (_, row) => ({ prompt: `${row}`, label: row % 2 === 0 ? 1 : 0, ...extra(row) }));
}

function split(dataset: DatasetRow[], seed = 1) {
  return splitRows(ask({ direction: fit, dataset }), createRandom(seed, 'split'));
}

describe('the split into discovery and test rows', () => {
  test('keeps templates together when there are no pairs', () => {
    const { by, discovery, test: tested } = split(rows(40, (row) => ({ template: `t${(row % 10) >> 1}` })));
    expect(by).toBe('template');
    const templates = (numbers: number[]) => new Set(numbers.map((row) => (row % 10) >> 1));
    expect([...templates(discovery)].filter((template) => templates(tested).has(template))).toEqual([]);
    expect([...discovery, ...tested].sort((a, b) => a - b)).toEqual([...Array(40).keys()]);
  });

  test('goes by rows, balanced by class, when there are neither pairs nor templates', () => {
    const dataset = rows(40, () => ({}));
    const { by, discovery, test: tested } = split(dataset);
    expect(by).toBe('row');
    const positives = (numbers: number[]) => numbers.filter((row) => dataset[row]?.label === 1).length;
    expect([discovery.length, tested.length]).toEqual([20, 20]);
    expect([positives(discovery), positives(tested)]).toEqual([10, 10]);
  });

  test('does not go by templates that have one class each', () => {
    expect(split(rows(40, (row) => ({ template: `t${row % 2}` }))).by).toBe('row');
  });

  test('differs for another seed', () => {
    const dataset = rows(40, (row) => ({ pair: `${row >> 1}` }));
    expect(split(dataset, 1)).toEqual(split(dataset, 1));
    expect(split(dataset, 2).test).not.toEqual(split(dataset, 1).test);
  });

  test('intervenes on whole pairs, at most 256 rows, as many of each class', () => {
    const dataset = rows(1000, (row) => ({ pair: `${row >> 1}` }));
    const question = ask({ direction: { kind: 'given', vector: axis('concept') }, dataset });
    const { test: tested, intervened } = splitRows(question, createRandom(1, 'split'));
    expect(tested).toHaveLength(1000);
    expect(intervened).toHaveLength(256);
    expect(intervened.every((row) => intervened.includes(row ^ 1))).toBe(true);
  });
});
