import { expect, test } from 'vitest';
import { ERROR_RATE, levelOfQuestion, spentUpTo } from '../../../src/lab/statistics/alpha-spending.ts';

const numbers = Array.from({ length: 2000 }, (_, i) => i + 1);

test('all questions together never spend more than the error rate', () => {
  let sum = 0;
  for (const number of numbers) {
    sum += levelOfQuestion(number);
    expect(spentUpTo(number)).toBeCloseTo(sum, 12);
  }
  expect(sum).toBeLessThan(ERROR_RATE);
  expect(sum).toBeGreaterThan(0.98 * ERROR_RATE);
});

test('the order within a block changes no level, and later blocks have a quarter of it', () => {
  expect(new Set(numbers.slice(0, 2).map(levelOfQuestion))).toEqual(new Set([0.0125]));
  expect(new Set(numbers.slice(2, 6).map(levelOfQuestion))).toEqual(new Set([0.003125]));
  expect(levelOfQuestion(7)).toBeCloseTo(0.0125 / 16, 12);
});
