import { describe, expect, test } from 'vitest';
import { leastSquares } from '../../../src/lab/statistics/least-squares.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { robustSlopes } from '../../../src/lab/statistics/robust-slope.ts';

const random = createRandom(1, 'slopes');
const x = Array.from({ length: 64 }, () => random.normal());

describe('the robust slope', () => {
  test('is exact for a line', () => {
    const { slope, error } = robustSlopes(x)(x.map((value) => 0.7 * value - 3));
    expect(slope).toBeCloseTo(0.7, 10);
    expect(error).toBeLessThan(1e-6);
  });

  test('is that of least squares where residuals are normal, and its error is what it says', () => {
    const errors = Array.from({ length: 400 }, () => {
      const y = x.map((value) => 1.2 * value + 0.3 * random.normal());
      const { slope, error } = robustSlopes(x)(y);
      return { own: slope - 1.2, squares: leastSquares(x, y).slope - 1.2, error };
    });
    const spread = (values: number[]) => Math.sqrt(values.reduce((sum, value) => sum + value ** 2, 0) / values.length);
    const own = spread(errors.map((one) => one.own));
    expect(own).toBeLessThan(1.1 * spread(errors.map((one) => one.squares)));
    const told = errors.reduce((sum, { error }) => sum + error, 0) / errors.length;
    expect(told / own).toBeGreaterThan(0.8);
    expect(told / own).toBeLessThan(1.25);
  });

  test('does not follow a few points that lie elsewhere, wherever that is', () => {
    const order = [...x.keys()].sort((a, b) => (x[a] ?? 0) - (x[b] ?? 0));
    for (const far of [order.slice(0, 6), order.slice(-6), order.slice(29, 35)]) {
      const y = x.map((value, i) => (far.includes(i) ? value + 25 : value));
      expect(Math.abs(robustSlopes(x)(y).slope - 1)).toBeLessThan(0.05);
    }
    const tilted = x.map((value, i) => (order.slice(-6).includes(i) ? value + 25 : value));
    expect(Math.abs(leastSquares(x, tilted).slope - 1)).toBeGreaterThan(1);
  });

  test('is not a number where all x are equal', () => {
    expect(robustSlopes([2, 2, 2])([1, 2, 3]).slope).toBeNaN();
  });
});
