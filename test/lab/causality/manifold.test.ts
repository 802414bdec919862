import { describe, expect, test } from 'vitest';
import { onManifold } from '../../../src/lab/causality/manifold.ts';
import { createRandom } from '../../../src/lab/statistics/random.ts';

/** Rows that vary along the first axes only. */
function rows(count: number, width: number, lived: number): Float32Array {
  const random = createRandom(1, 'manifold');
  return Float32Array.from({ length: count * width }, (_, i) => (i % width < lived ? 5 + random.normal() : 5));
}

function direction(width: number, ...axes: number[]): Float32Array {
  return Float32Array.from({ length: width }, (_, i) => (axes.includes(i) ? 1 / Math.sqrt(axes.length) : 0));
}

describe('the share of a direction that lies where activations vary', () => {
  test('is all of it, none of it, or half', () => {
    const data = rows(300, 32, 24);
    expect(onManifold(direction(32, 3), data, 32).value).toBeGreaterThan(0.97);
    expect(onManifold(direction(32, 30), data, 32).value).toBeLessThan(0.01);
    expect(onManifold(direction(32, 3, 30), data, 32).value).toBeCloseTo(0.5, 1);
  });

  test('is relative to that of natural activations where rows are fewer than coordinates', () => {
    const data = rows(60, 128, 100);
    const found = onManifold(direction(128, 3), data, 128);
    expect(found.reach).toBeLessThan(0.7);
    expect(found.share).toBeLessThan(0.8);
    expect(onManifold(direction(128, 3, 4, 5, 6, 7, 8), data, 128).value).toBeGreaterThan(0.6);
    expect(onManifold(direction(128, 120), data, 128).value).toBeLessThan(0.01);
  });
});
