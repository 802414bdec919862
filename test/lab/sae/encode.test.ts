/** Tests what the formats of SAEs do not show of encoding: ties, empty rows, and products that an engine computes. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Sae } from '../../../src/lab/core/sae.ts';
import { activateSae, decodeSae, encodeSaePlainly, prepareSaeInput } from '../../../src/lab/sae/encode.ts';
import { plainSae } from './plain-sae.ts';

test('SAE encoding: top-k keeps the k largest, as sorting does', () => {
  const values = fc.array(fc.integer({ min: -5, max: 9 }), { minLength: 1, maxLength: 40 });
  fc.assert(
    fc.property(values, fc.integer({ min: 1, max: 45 }), (numbers, k) => {
      const kept = activateSae(withFeatures(numbers.length, { kind: 'topk', k }), Float32Array.from(numbers));
      const positive = numbers.filter((number) => number > 0).sort((a, b) => b - a);
      expect(
        Array.from(kept)
          .filter((number) => number > 0)
          .sort((a, b) => b - a),
      ).toEqual(positive.slice(0, k));
      expect(numbers.every((number, i) => kept[i] === 0 || kept[i] === number)).toBe(true);
    }),
  );
});

test('SAE encoding: of equal features the first are kept', () => {
  const kept = activateSae(withFeatures(5, { kind: 'topk', k: 2 }), Float32Array.of(1, 3, 1, 1, 0));
  expect([...kept]).toEqual([1, 3, 0, 0, 0]);
});

test('SAE encoding: every row is encoded by itself', () => {
  const kept = activateSae(withFeatures(3, { kind: 'topk', k: 1 }), Float32Array.of(1, 2, 0, 9, 0, 8));
  expect([...kept]).toEqual([0, 2, 0, 9, 0, 0]);
});

test('SAE encoding: a feature at its threshold is not active', () => {
  const activation = { kind: 'jumprelu' as const, threshold: Float32Array.of(1, 1, -1) };
  expect([...activateSae(withFeatures(3, activation), Float32Array.of(1, 1.5, -0.5))]).toEqual([0, 1.5, 0]);
});

test('SAE encoding: of each group at most one feature is active', () => {
  const kept = activateSae(withFeatures(6, { kind: 'groupmax', groups: 2 }), Float32Array.of(1, 3, 2, -1, -2, -3));
  expect([...kept]).toEqual([0, 3, 0, 0, 0, 0]);
});

test('SAE encoding: an engine that multiplies by itself gets the same features', () => {
  const sae: Sae = { ...plainSae(3, 4), subtractsDecoderBias: true, normalization: 'layer-norm' };
  const rows = Float32Array.of(1, 2, 4, -3, 0.5, 2);
  const input = prepareSaeInput(sae, rows);
  const products = new Float32Array(8);
  for (let row = 0; row < 2; row++) {
    for (let feature = 0; feature < 4; feature++) {
      for (let i = 0; i < 3; i++) {
        const place = row * 4 + feature;
        products[place] = (products[place] ?? 0) + (input[row * 3 + i] ?? 0) * (sae.encoder[feature * 3 + i] ?? 0);
      }
    }
  }
  const plainly = encodeSaePlainly(sae, rows);
  activateSae(sae, products).forEach((number, i) => {
    expect(number).toBeCloseTo(plainly[i] ?? Number.NaN, 5);
  });
});

test('SAE encoding leaves its input unchanged', () => {
  const rows = Float32Array.of(1, 2, 4);
  encodeSaePlainly({ ...plainSae(3, 4), normalization: 'constant-norm', subtractsDecoderBias: true }, rows);
  expect([...rows]).toEqual([1, 2, 4]);
});

test('SAE encoding: a row of zeros has finite features', () => {
  for (const normalization of ['constant-norm', 'layer-norm'] as const) {
    const sae: Sae = { ...plainSae(3, 4), normalization };
    const rows = new Float32Array(3);
    const features = encodeSaePlainly(sae, rows);
    expect([...features, ...decodeSae(sae, features, rows)].every(Number.isFinite)).toBe(true);
  }
});

/** One that gives products back as they are, but for its activation function. */
function withFeatures(features: number, activation: Sae['activation']): Sae {
  return { ...plainSae(1, features), encoderBias: new Float32Array(features), activation };
}
