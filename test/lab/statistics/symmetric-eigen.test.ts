import { describe, expect, test } from 'vitest';
import { createRandom } from '../../../src/lab/statistics/random.ts';
import { symmetricEigen } from '../../../src/lab/statistics/symmetric-eigen.ts';
import { dot } from '../../../src/lab/statistics/vectors.ts';

describe('eigenvectors of a symmetric matrix', () => {
  test('are those of a matrix that is solved by hand, the largest first', () => {
    const [first, second] = symmetricEigen(Float64Array.of(2, 1, 1, 2), 2);
    expect([first?.value, second?.value]).toEqual([expect.closeTo(3, 12), expect.closeTo(1, 12)]);
    expect(Math.abs(first?.vector[0] ?? 0)).toBeCloseTo(Math.SQRT1_2, 12);
  });

  test.each([1, 5, 24])('make the matrix again, and are orthonormal: size %d', (size) => {
    const random = createRandom(size, 'symmetric matrix');
    const factor = Float64Array.from({ length: size * size }, () => random.normal());
    const row = (i: number) => factor.subarray(i * size, (i + 1) * size);
    const matrix = Float64Array.from({ length: size * size }, (_, i) => dot(row(Math.floor(i / size)), row(i % size)));
    const pairs = symmetricEigen(matrix, size);
    const again = matrix.map((_, cell) =>
      pairs.reduce(
        (sum, { value, vector }) => sum + value * (vector[Math.floor(cell / size)] ?? 0) * (vector[cell % size] ?? 0),
        0,
      ),
    );
    again.forEach((value, cell) => {
      expect(value).toBeCloseTo(matrix[cell] ?? Number.NaN, 8);
    });
    pairs.forEach(({ vector }, i) => {
      for (const [j, other] of pairs.entries()) expect(dot(vector, other.vector)).toBeCloseTo(i === j ? 1 : 0, 10);
    });
  });
});
