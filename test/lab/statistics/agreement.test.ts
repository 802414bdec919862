import { describe, expect, test } from 'vitest';
import { auroc } from '../../../src/lab/statistics/auroc.ts';
import { betaCumulative, betaQuantile } from '../../../src/lab/statistics/beta.ts';
import { bootstrapInterval } from '../../../src/lab/statistics/bootstrap.ts';
import { brierScore, plattScaling, reliability } from '../../../src/lab/statistics/calibration.ts';
import { choleskySolver } from '../../../src/lab/statistics/cholesky.ts';
import { differenceOfMeans } from '../../../src/lab/statistics/difference-of-means.ts';
import { holm } from '../../../src/lab/statistics/holm.ts';
import { leastSquares } from '../../../src/lab/statistics/least-squares.ts';
import { fitLogistic } from '../../../src/lab/statistics/logistic.ts';
import { permutationP, permuteWithin } from '../../../src/lab/statistics/permutation.ts';
import { clopperPearson, wilson } from '../../../src/lab/statistics/proportion.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { mean, quantile, standardDeviation } from '../../../src/lab/statistics/summary.ts';
import reference, { distance } from './reference.ts';

describe('statistics agree with numpy, scipy and scikit-learn', () => {
  test('AUROC, with ties', () => {
    for (const { scores, labels, auroc: expected } of reference.auroc) {
      expect(auroc(scores, labels)).toBeCloseTo(expected, 12);
    }
  });

  test('mean, deviation and quantiles', () => {
    for (const { values, ...expected } of reference.summary) {
      expect(mean(values)).toBeCloseTo(expected.mean, 12);
      expect(standardDeviation(values)).toBeCloseTo(expected.deviation, 12);
      if (expected.sampleDeviation !== null) {
        expect(standardDeviation(values, 1)).toBeCloseTo(expected.sampleDeviation, 12);
      }
      for (const [share, value] of Object.entries(expected.quantiles)) {
        expect(quantile(values, Number(share))).toBeCloseTo(value, 12);
      }
    }
  });

  test('intervals of proportions by Wilson and by Clopper and Pearson', () => {
    for (const { count, of, ...expected } of reference.proportion) {
      const [score, exact] = [wilson(count, of), clopperPearson(count, of)];
      expect(distance([score.low, score.high], expected.wilson)).toBeLessThan(1e-12);
      expect(distance([exact.low, exact.high], expected.exact)).toBeLessThan(1e-9);
    }
  });

  test('the beta distribution and its inverse', () => {
    for (const { x, a, b, cumulative } of reference.beta) {
      expect(betaCumulative(x, a, b)).toBeCloseTo(cumulative, 11);
      if (cumulative < 1 - 1e-9) expect(betaQuantile(cumulative, a, b)).toBeCloseTo(x, 8);
    }
  });

  test("Holm's correction", () => {
    for (const { values, adjusted } of reference.holm) expect(distance(holm(values), adjusted)).toBeLessThan(1e-12);
  });

  test('logistic regression with the same penalty, and the difference of means', () => {
    for (const { rows, labels, c, weights, bias, differenceOfMeans: difference } of reference.logistic) {
      const fit = fitLogistic(Float64Array.from(rows), labels, { c });
      expect(fit.converged).toBe(true);
      expect(distance(fit.weights, weights)).toBeLessThan(1e-5);
      expect(Math.abs(fit.bias - bias)).toBeLessThan(1e-4);
      expect(distance(differenceOfMeans(Float64Array.from(rows), labels), difference)).toBeLessThan(1e-12);
    }
  });

  test('Brier score, expected calibration error and Platt scaling', () => {
    for (const { scores, labels, probabilities, brier, expectedError, platt } of reference.calibration) {
      expect(brierScore(probabilities, labels)).toBeCloseTo(brier, 12);
      expect(reliability(probabilities, labels).expectedError).toBeCloseTo(expectedError, 12);
      const found = plattScaling(scores, labels);
      expect(Math.abs(found.slope / platt.slope - 1)).toBeLessThan(1e-3);
      expect(Math.abs(found.intercept - platt.intercept)).toBeLessThan(1e-3);
    }
  });

  test('a line by least squares', () => {
    for (const { x, y, ...expected } of reference.line) {
      const line = leastSquares(x, y);
      expect(line.slope).toBeCloseTo(expected.slope, 10);
      expect(line.intercept).toBeCloseTo(expected.intercept, 10);
      expect(line.explained).toBeCloseTo(expected.explained, 10);
    }
  });

  test('the bootstrap interval of an AUROC over pairs', () => {
    const { scores, labels, low, high } = reference.bootstrap;
    const pairs = Array.from({ length: scores.length / 2 }, (_, pair) => [pair, pair + scores.length / 2]);
    const found = bootstrapInterval(
      [pairs],
      (rows) =>
        auroc(
          rows.map((row) => scores[row] ?? 0),
          rows.map((row) => labels[row] ?? 0),
        ),
      4000,
      createRandom(1, 'bootstrap'),
    );
    expect(Math.abs(found.low - low)).toBeLessThan(0.01);
    expect(Math.abs(found.high - high)).toBeLessThan(0.01);
  });

  test('the p value of a permutation within pairs', () => {
    const { positive, negative, p } = reference.permutation;
    const values = [...positive, ...negative];
    const labels = values.map((_, row) => (row < positive.length ? 1 : 0));
    const pairs = positive.map((_, pair) => [pair, pair + positive.length]);
    const gap = (chosen: ArrayLike<number>) => {
      const of = (label: number) => mean(values.filter((_, row) => chosen[row] === label));
      return of(1) - of(0);
    };
    const random = createRandom(1, 'permutation');
    const nulls = Array.from({ length: 9999 }, () => gap(permuteWithin(labels, pairs, random)));
    // The sum of the same numbers in another order differs in the last digits.
    expect(Math.abs(permutationP(gap(labels) - 1e-12, nulls) - p)).toBeLessThan(0.01);
  });

  test('linear equations by Cholesky', () => {
    const { matrix, b, x } = reference.cholesky;
    expect(distance(choleskySolver(Float64Array.from(matrix), b.length)(Float64Array.from(b)), x)).toBeLessThan(1e-10);
  });

  test('xoshiro128** as its authors wrote it down', () => {
    const random = createRandom(7, 'reference');
    expect(reference.random.map(() => random.uniform())).toEqual(reference.random);
  });
});
