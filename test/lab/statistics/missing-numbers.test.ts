import { expect, test } from 'vitest';
import { auroc } from '../../../src/lab/statistics/auroc.ts';
import { brierScore, plattScaling, reliability } from '../../../src/lab/statistics/calibration.ts';
import { choleskySolver } from '../../../src/lab/statistics/cholesky.ts';
import { leastSquares } from '../../../src/lab/statistics/least-squares.ts';
import { permuteWithin } from '../../../src/lab/statistics/permutation.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { mean, quantile } from '../../../src/lab/statistics/summary.ts';
import { dot } from '../../../src/lab/statistics/vectors.ts';

test.each<[string, () => unknown, string]>([
  ['a label of an AUROC', () => auroc([0.1, 0.9, 0.5], [0, 1]), 'no label of score 2,'],
  ['a probability of a Brier score', () => brierScore([0.5], [0, 1]), 'no probability 1,'],
  ['a probability of a reliability diagram', () => reliability([0.5], [0, 1]), 'no probability 1,'],
  ['a probability that is none', () => reliability([Number.NaN], [1]), 'no bin NaN,'],
  ['a score of Platt scaling', () => plattScaling([1, 2], [0, 1, 1]), 'no score of label 2,'],
  ['a point of a line', () => leastSquares([1, 2, 3], [1, 2]), 'no y of point 2,'],
  [
    'a label of a permutation',
    () => permuteWithin([0, 1], [[0, 1, 2]], createRandom(1, 'permutation')),
    'no label of row 2,',
  ],
  ['a number of a product', () => dot(Float32Array.of(1, 2), Float32Array.of(1, 2), 1), 'no number 2,'],
  ['a number of a matrix', () => choleskySolver(Float64Array.of(1, 0, 0), 2), 'no row of the matrix 1,'],
  [
    'a right-hand side',
    () => choleskySolver(Float64Array.of(1, 0, 0, 1), 2)(Float64Array.of(1)),
    'no right-hand side of row 1,',
  ],
  ['a value below the lowest rank', () => quantile([1, 2], -1), 'no value of rank -1,'],
])('%s that is missing throws, and is not taken for zero', (_, compute, message) => {
  expect(compute).toThrow(message);
});

test('the mean and the quantile of no values are not a number', () => {
  expect(mean([])).toBeNaN();
  expect(quantile([], 0.5)).toBeNaN();
});
