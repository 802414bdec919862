import { expect, test } from 'vitest';
import { projectOn, tangentAt, turned } from '../../../src/lab/statistics/grassmann.ts';
import { dot } from '../../../src/lab/statistics/vectors.ts';

const axis = (i: number) => Float64Array.from({ length: 4 }, (_, j) => (i === j ? 1 : 0));

test('a line is turned by the angle, toward the tangent', () => {
  const [next = axis(3)] = turned([axis(0)], [axis(1)], Math.PI / 6);
  expect(dot(next, axis(0))).toBeCloseTo(Math.cos(Math.PI / 6), 12);
  expect(dot(next, axis(1))).toBeCloseTo(0.5, 12);
});

test('a plane stays orthonormal, and what lies within it is no turn', () => {
  const columns = [axis(0), axis(1)];
  const tangent = tangentAt(columns, [Float64Array.of(5, 7, 1, 2), Float64Array.of(-3, 2, 0, 1)]);
  expect(tangent.map((one) => [...one])).toEqual([
    [0, 0, 1, 2],
    [0, 0, 0, 1],
  ]);
  const [a = axis(0), b = axis(0)] = turned(columns, tangent, 0.4);
  expect([dot(a, a), dot(b, b), dot(a, b)].map((value) => Math.round(value * 1e12) / 1e12 + 0)).toEqual([1, 1, 0]);
});

test('the part of a vector in a subspace is what it has along its columns', () => {
  expect([...projectOn([axis(0), axis(2)], Float64Array.of(1, 2, 3, 4))]).toEqual([1, 0, 3, 0]);
});
