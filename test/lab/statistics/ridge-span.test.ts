import { describe, expect, test } from 'vitest';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { spanOf } from '../../../src/lab/statistics/ridge-span.ts';

const WIDTH = 32;

/** Rows that vary along the first axes only. */
function rows(count: number, axes: number): Float32Array[] {
  const random = createRandom(1, 'span');
  return Array.from({ length: count }, () =>
    Float32Array.from({ length: WIDTH }, (_, i) => (i < axes ? random.normal() : 0)),
  );
}

function axis(...axes: number[]): Float32Array {
  return Float32Array.from({ length: WIDTH }, (_, i) => (axes.includes(i) ? 1 : 0));
}

describe('the part of a vector in the span of rows', () => {
  test('is all of it, none of it, or the part along the axes where rows vary', () => {
    const project = spanOf(rows(200, 24), WIDTH);
    expect(project(axis(3))[3]).toBeGreaterThan(0.97);
    expect(Math.max(...project(axis(30)).map(Math.abs))).toBeLessThan(1e-6);
    const both = project(axis(3, 30));
    expect(both[3]).toBeGreaterThan(0.97);
    expect(both[30]).toBeCloseTo(0, 6);
  });

  test('hardly counts an axis along which rows hardly vary', () => {
    const nearly = rows(200, 24).map((row) => row.map((value, i) => (i === 3 ? 0.01 * value : value)));
    expect(spanOf(nearly, WIDTH)(axis(3))[3]).toBeLessThan(0.05);
  });

  test('is nothing where rows do not differ', () => {
    expect([...spanOf([new Float32Array(WIDTH)], WIDTH)(axis(3))]).toEqual([...new Float32Array(WIDTH)]);
  });
});
