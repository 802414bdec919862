import { describe, expect, test } from 'vitest';
import { bootstrapInterval, expandedInterval } from '../../../src/lab/statistics/bootstrap.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { lowChiSquared, normalCumulative, studentQuantile } from '../../../src/lab/statistics/student.ts';

describe('distributions', () => {
  test('have the values of printed tables', () => {
    expect(normalCumulative(-1.959963984540054)).toBeCloseTo(0.025, 7);
    expect(normalCumulative(1)).toBeCloseTo(0.841344746, 7);
    expect([1, 5, 30].map((degrees) => Number(studentQuantile(0.025, degrees).toFixed(3)))).toEqual([
      12.706, 2.571, 2.042,
    ]);
    expect(Math.abs(lowChiSquared(20) - 8.26)).toBeLessThan(0.05);
    expect(Math.abs(lowChiSquared(80) - 53.54)).toBeLessThan(0.1);
  });
});

test('the expanded interval of six values holds their mean about as often as it says, and the plain one does not', () => {
  const random = createRandom(1, 'coverage');
  const [runs, count] = [600, 6];
  let [expanded, plain] = [0, 0];
  for (let run = 0; run < runs; run++) {
    const values = Array.from({ length: count }, () => random.normal());
    const strata = [values.map((_, i) => [i])];
    const mean = (rows: readonly number[]) =>
      rows.reduce((sum, row) => sum + (values[row] ?? Number.NaN), 0) / rows.length;
    const holds = ({ low, high }: { low: number; high: number }) => (low <= 0 && high >= 0 ? 1 : 0);
    expanded += holds(expandedInterval(strata, mean, 400, random));
    plain += holds(bootstrapInterval(strata, mean, 400, random));
  }
  expect(plain / runs).toBeLessThan(0.9);
  expect(expanded / runs).toBeGreaterThan(0.92);
});
