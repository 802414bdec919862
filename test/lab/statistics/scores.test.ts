import { describe, expect, test } from 'vitest';
import { auroc } from '../../../src/lab/statistics/auroc.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { createScorer, project } from '../../../src/lab/statistics/scores.ts';

const WIDTH = 16;

describe('scores of activations', () => {
  test('are products with the direction, with a resolution by the length of both', () => {
    const rows = Float32Array.of(3, 4, 0, 5);
    const { values, resolution } = createScorer(rows, 2)(Float32Array.of(10, 0));
    expect([...values]).toEqual([30, 0]);
    expect(resolution).toBeCloseTo(1e-4 * 5 * 10, 12);
  });

  test('of what is not a number are refused', () => {
    for (const odd of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => createScorer(Float32Array.of(1, 2, odd, 4), 2)).toThrow('not finite');
  });
});

describe('the AUROC with a resolution', () => {
  const pair = (positive: number, negative: number) => auroc([positive, negative], [1, 0], 0.1);

  test('equals that without one where scores are further apart', () => {
    const random = createRandom(1, 'scores');
    const scores = random.shuffle(Array.from({ length: 50 }, (_, i) => i));
    const labels = scores.map(() => (random.uniform() < 0.5 ? 0 : 1));
    expect(auroc(scores, labels, 0.9)).toBe(auroc(scores, labels));
    expect([pair(2, 1), pair(1, 2)]).toEqual([1, 0]);
  });

  test('changes evenly as one score passes the other', () => {
    expect(pair(1, 1)).toBe(0.5);
    expect(pair(1.05, 1)).toBeCloseTo(0.75, 12);
    expect(pair(1, 1.05)).toBeCloseTo(0.25, 12);
    expect(pair(1.0999999, 1)).toBeCloseTo(1, 5);
  });

  test('follows its definition, pair by pair', () => {
    const random = createRandom(2, 'scores');
    for (const resolution of [0, 0.01, 0.5, 10]) {
      const scores = Array.from({ length: 60 }, () => Math.round(20 * random.normal()) / 20);
      const labels = scores.map(() => (random.uniform() < 0.4 ? 1 : 0));
      const sides = [1, 0].map((label) => scores.filter((_, i) => labels[i] === label));
      const [positives = [], negatives = []] = sides;
      const counted = positives.flatMap((one) =>
        negatives.map((other) => {
          if (Math.abs(one - other) > resolution) return one > other ? 1 : 0;
          return resolution === 0 ? 0.5 : 0.5 + (one - other) / (2 * resolution);
        }),
      );
      const expected = counted.reduce((total, value) => total + value, 0) / counted.length;
      expect(auroc(scores, labels, resolution)).toBeCloseTo(expected, 10);
    }
  });

  test('hardly changes when all activations change in their last bits', () => {
    const random = createRandom(1, 'rows');
    // Every row is there twice: what tells the two apart is rounding alone.
    const once = Float32Array.from({ length: 20 * WIDTH }, () => 5 + random.normal());
    const rows = Float32Array.of(...once, ...once);
    const other = rows.map((value) => value * (1 + 6e-8 * Math.sign(random.normal())));
    const labels = Array.from({ length: 40 }, () => (random.uniform() < 0.5 ? 0 : 1));
    let plain = 0;
    for (let i = 0; i < 50; i++) {
      const direction = random.direction(WIDTH).map((value) => 7 * value);
      const [ours = 0, theirs = 0] = [rows, other].map((one) => {
        const { values, resolution } = createScorer(one, WIDTH)(direction);
        return auroc(values, labels, resolution);
      });
      expect(Math.abs(ours - theirs)).toBeLessThan(1e-4);
      plain += auroc(project(rows, direction), labels) === auroc(project(other, direction), labels) ? 0 : 1;
    }
    expect(plain).toBeGreaterThan(10);
  });
});
