import { expect, test } from 'vitest';
import { auroc } from '../../../src/lab/statistics/auroc.ts';
import { aurocOfPair, pairwiseAuroc } from '../../../src/lab/statistics/pairwise-auroc.ts';

const labels = [0, 0, 1, 1, 2, 2];
const pair = (classes: readonly [number, number], values: number[]) => ({
  classes,
  scores: { values: Float64Array.from(values), resolution: 0 },
});

test('of two classes is the AUROC', () => {
  const values = [0.1, 0.6, 0.5, 0.9];
  expect(pairwiseAuroc([pair([1, 0], values)], [0, 0, 1, 1])).toBe(auroc(values, [0, 0, 1, 1]));
});

test('of three classes is the mean over pairs, each of their own rows along their own line', () => {
  const pairs = [
    pair([1, 0], [0, 1, 2, 3, 99, -99]),
    pair([2, 0], [0, 3, 99, -99, 1, 2]),
    pair([2, 1], [99, -99, 1, 2, 0, -1]),
  ];
  expect(pairs.map((one) => aurocOfPair(one, labels))).toEqual([1, 0.5, 0]);
  expect(pairwiseAuroc(pairs, labels)).toBe(0.5);
});

test('leaves out pairs of which a sample has one class only', () => {
  const pairs = [pair([1, 0], [0, 1, 2, 3, 0, 0]), pair([2, 0], [0, 1, 0, 0, 2, 3])];
  expect(pairwiseAuroc(pairs, labels, [0, 1, 2, 3])).toBe(1);
  expect(aurocOfPair(pairs[1] ?? pair([1, 0], []), labels, [0, 1, 2, 3])).toBeNaN();
});
