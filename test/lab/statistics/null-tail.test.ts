import { describe, expect, test } from 'vitest';
import { exceedance } from '../../../src/lab/statistics/null-tail.ts';
import { createRandom, type Random } from '../../../src/lab/statistics/random.ts';

const ROUNDING = 1e-9;

/** How random directions may do: by a sum of many, by a product of two as a single reader has it, and with tails that are heavier. */
const SHAPES: Record<string, (random: Random) => number> = {
  normal: (random) => random.normal(),
  'product of two normals': (random) => random.normal() * random.normal(),
  exponential: (random) => -Math.log(1 - random.uniform()),
  'Student with five degrees': (random) => {
    let square = 0;
    for (let i = 0; i < 5; i++) square += random.normal() ** 2;
    return random.normal() / Math.sqrt(square / 5);
  },
};

describe('how often a random direction does as much', () => {
  test('is counted, the observed one among them, and never 0', () => {
    expect(exceedance(3, [1, -2, 3, -4], ROUNDING).p).toBe(3 / 5);
    expect(exceedance(-9, [1, -2, 3, -4], ROUNDING).p).toBe(1 / 5);
    expect(exceedance(2.999, [1, -2, 3, -4], 0.01).p).toBe(3 / 5);
  });

  test('is told beyond the largest value by the tail, and the more surely the more values there are', () => {
    const random = createRandom(1, 'tail');
    const values = Array.from({ length: 799 }, () => random.normal());
    const few = exceedance(12, values.slice(0, 99), ROUNDING);
    const many = exceedance(12, values, ROUNDING);
    expect(few.p).toBeLessThan(1 / 100);
    expect(many.p).toBeLessThan(few.p);
    expect(many.p).toBeGreaterThan(0);
    expect(many).toMatchObject({ low: 0, high: many.p });
  });

  test('is not told by a tail that is heavier than exponential', () => {
    const values = Array.from({ length: 99 }, (_, i) => (i === 0 ? 1000 : i / 99));
    expect(exceedance(5000, values, ROUNDING).p).toBe(1 / 100);
  });

  test.each(Object.keys(SHAPES))(
    'is below a level no more often than the level says, for values of shape: %s',
    (shape) => {
      const draw = SHAPES[shape] ?? (() => Number.NaN);
      const random = createRandom(2, shape);
      const [level, runs] = [0.005, 6000];
      let found = 0;
      for (let run = 0; run < runs; run++) {
        const values = Array.from({ length: 99 }, () => draw(random));
        if (exceedance(draw(random), values, ROUNDING).p <= level) found++;
      }
      // 30 are expected at most; 46 is three deviations more.
      expect(found).toBeLessThan(46);
    },
  );
});
