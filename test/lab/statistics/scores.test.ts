import { describe, expect, test } from 'vitest';
import { auroc } from '../../../src/lab/statistics/auroc.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { createScorer, levelled, project, scoreRows } from '../../../src/lab/statistics/scores.ts';
import { norm } from '../../../src/lab/statistics/vectors.ts';

const WIDTH = 16;

describe('scores of activations', () => {
  test('are products with the direction, and the bias', () => {
    const rows = Float32Array.of(1, 2, 3, 4);
    expect([...scoreRows(rows, Float32Array.of(10, 1), 0.5)]).toEqual([12.5, 34.5]);
    expect([...project(rows, Float32Array.of(10, 1))]).toEqual([12, 34]);
  });

  test('that rounding tells apart are equal, and no others', () => {
    const scores = Float64Array.of(3, 1 + 2e-7, 1, 1 + 2e-6, 1 - 2e-7);
    const level = levelled(scores, 1);
    expect([...level]).toEqual([3, 1 - 2e-7, 1 - 2e-7, 1 + 2e-6, 1 - 2e-7]);
    expect([...scores]).toEqual([3, 1 + 2e-7, 1, 1 + 2e-6, 1 - 2e-7]);
  });

  test('close together in a long row do not all become one', () => {
    const steps = Float64Array.from({ length: 1000 }, (_, i) => i * 5e-7);
    expect(new Set(levelled(steps, 1)).size).toBeGreaterThan(300);
  });

  test('keep their ranks when all activations change in their last bits', () => {
    const random = createRandom(1, 'rows');
    // Every row is there twice: what tells the two apart is rounding alone.
    const once = Float32Array.from({ length: 20 * WIDTH }, () => 5 + random.normal());
    const rows = Float32Array.of(...once, ...once);
    const other = rows.map((value) => value * (1 + 6e-8 * Math.sign(random.normal())));
    const labels = Array.from({ length: 40 }, () => (random.uniform() < 0.5 ? 0 : 1));
    let plain = 0;
    for (let i = 0; i < 50; i++) {
      const direction = random.direction(WIDTH).map((value) => 7 * value);
      const [ours, theirs] = [rows, other].map((one) => auroc(createScorer(one, WIDTH)(direction), labels));
      expect(ours).toBe(theirs);
      plain += auroc(project(rows, direction), labels) === auroc(project(other, direction), labels) ? 0 : 1;
    }
    expect(plain).toBeGreaterThan(10);
  });

  test('are level whatever the length of the direction', () => {
    const rows = Float32Array.of(1, 1, 1, 1.0000001);
    for (const length of [1e-6, 1, 1e6]) {
      const direction = Float32Array.of(length, length);
      const [one, other] = createScorer(rows, 2)(direction);
      expect(one).toBe(other);
      expect(one).toBeCloseTo(Math.SQRT2 * norm(direction), 6);
    }
  });
});
