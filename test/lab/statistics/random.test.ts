import { describe, expect, test } from 'vitest';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { mean, standardDeviation } from '../../../src/lab/statistics/summary.ts';
import { dot, norm } from '../../../src/lab/statistics/vectors.ts';

describe('the random number generator', () => {
  const draw = (seed: number, name: string) => {
    const random = createRandom(seed, name);
    return Array.from({ length: 5 }, () => random.uniform());
  };

  test('gives the same numbers for the same seed and name, and others for others', () => {
    expect(draw(1, 'split')).toEqual(draw(1, 'split'));
    expect(draw(1, 'split')).not.toEqual(draw(2, 'split'));
    expect(draw(1, 'split')).not.toEqual(draw(1, 'partners'));
  });

  test('has the right distributions', () => {
    const random = createRandom(3, 'spread');
    const normal = Array.from({ length: 20_000 }, () => random.normal());
    expect(Math.abs(mean(normal))).toBeLessThan(0.03);
    expect(Math.abs(standardDeviation(normal) - 1)).toBeLessThan(0.03);
    const integers = Array.from({ length: 6000 }, () => random.integer(6));
    for (let face = 0; face < 6; face++) {
      const share = integers.filter((value) => value === face).length / integers.length;
      expect(Math.abs(share - 1 / 6)).toBeLessThan(0.03);
    }
  });

  test('shuffles without loss, every order equally likely', () => {
    const random = createRandom(4, 'shuffle');
    const counts = new Map<string, number>();
    for (let i = 0; i < 6000; i++) {
      const order = random.shuffle('abc').join('');
      counts.set(order, (counts.get(order) ?? 0) + 1);
    }
    expect(counts.size).toBe(6);
    for (const count of counts.values()) expect(Math.abs(count - 1000)).toBeLessThan(150);
  });

  test('makes unit directions, uniformly', () => {
    const random = createRandom(5, 'direction');
    const one = random.direction(256);
    expect(norm(one)).toBeCloseTo(1, 6);
    expect(Math.abs(dot(one, random.direction(256)))).toBeLessThan(0.3);
  });

  test('cannot choose from nothing', () => {
    expect(() => createRandom(1, 'none').choose([])).toThrow(RangeError);
  });
});
