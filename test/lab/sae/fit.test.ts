/** Tests how the fit of an SAE is measured, and what is refused. */

import { describe, expect, test } from 'vitest';
import type { Sae } from '../../../src/lab/core/sae.ts';
import { strongestFeatures } from '../../../src/lab/sae/features.ts';
import { checkSae, checkSaeShape } from '../../../src/lab/sae/fit.ts';
import { plainSae } from './plain-sae.ts';

const MODEL = { id: 'demo', width: 3, layers: 4 };
const ROWS = Float32Array.of(1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 1, 0);

test('the fit of an SAE that reconstructs its input is perfect', () => {
  const fit = checkSae(identity(), MODEL, ROWS);
  expect(fit).toMatchObject({ rows: 4, l0: 1.25, fvu: 0, meanSquaredError: 0 });
  expect(fit.each).toEqual([
    { l0: 1, fvu: 0 },
    { l0: 1, fvu: 0 },
    { l0: 1, fvu: 0 },
    { l0: 2, fvu: 0 },
  ]);
});

test('the fit of an SAE is measured against the mean row', () => {
  // Half of every row is given back: errors are (0.5 + 2 + 4.5 + 1) / 2 … each a quarter of the squared row.
  const half: Sae = { ...identity(), decoder: identity().decoder.map((number) => number / 2) };
  const fit = checkSae(half, MODEL, ROWS, { force: true });
  expect(fit.meanSquaredError).toBeCloseTo(4 / 12, 6);
  expect(fit.fvu).toBeCloseTo(4 / 10.5, 6);
  expect(fit.each[0]?.fvu).toBeCloseTo(0.25 / (0.25 + 0.5625 + 0.5625), 6);
});

test('the fit of an SAE uses features that an engine has computed', () => {
  expect(checkSae(identity(), MODEL, ROWS, { features: new Float32Array(12), force: true }).l0).toBe(0);
});

describe('refused for its fit', () => {
  test('is an SAE for another model, with both widths and names', () => {
    const other: Sae = { ...plainSae(5, 4), id: 'gpt2-sae', model: 'gpt2', hookName: 'blocks.3.hook_resid_pre' };
    expect(() => checkSaeShape(other, MODEL)).toThrow(
      /SAE gpt2-sae .*is for gpt2, with activations of width 5 \(it says it is of blocks\.3\.hook_resid_pre\), and demo has width 3/,
    );
  });

  test('is an SAE of a layer that the model does not have', () => {
    const deep: Sae = { ...identity(), hookPoint: { layer: 4, place: 'resid_post' } };
    expect(() => checkSae(deep, MODEL, ROWS)).toThrow(/is of layer 4, and demo has layers 0 to 3/);
  });

  test('is one that explains less than half, unless it is forced', () => {
    const blind: Sae = { ...identity(), decoder: new Float32Array(9) };
    expect(() => checkSae(blind, MODEL, ROWS)).toThrow(/leaves 152 % of the variance .*more than 50 %.*Give force/);
    expect(checkSae(blind, MODEL, ROWS, { force: true }).fvu).toBeCloseTo(16 / 10.5, 5);
  });

  test('is one with weights that are not numbers', () => {
    const broken: Sae = { ...identity(), decoderBias: Float32Array.of(Number.NaN, 0, 0) };
    expect(() => checkSae(broken, MODEL, ROWS)).toThrow(/NaN % of the variance/);
  });
});

test('the fit of a transcoder is measured on its output, if that is given', () => {
  const transcoder: Sae = { ...identity(), output: { width: 3, hookNames: ['blocks.1.hook_mlp_out'] } };
  expect(checkSae(transcoder, MODEL, ROWS).fvu).toBeNaN();
  expect(checkSae(transcoder, MODEL, ROWS, { targets: ROWS }).fvu).toBe(0);
  expect(() => checkSae(transcoder, MODEL, ROWS, { targets: ROWS.map((number) => -number) })).toThrow(/variance/);
});

test('the fit of an SAE on equal rows has no variance to explain', () => {
  expect(checkSae(identity(), MODEL, Float32Array.of(1, 2, 3, 1, 2, 3)).fvu).toBe(0);
});

test('the strongest SAE features come first, with their descriptions, and only active ones', () => {
  const sae: Sae = { ...plainSae(1, 5), descriptions: new Map([[4, 'plural']]) };
  expect(strongestFeatures(sae, Float32Array.of(1, 0, 2, 0, 7), 2)).toEqual([
    { feature: 4, activation: 7, description: 'plural' },
    { feature: 2, activation: 2 },
  ]);
  expect(strongestFeatures(sae, Float32Array.of(1, 0, 2, 0, 7), 10)).toHaveLength(3);
});

/** Each number of the row is a feature. */
function identity(): Sae {
  const unit = Float32Array.of(1, 0, 0, 0, 1, 0, 0, 0, 1);
  return {
    ...plainSae(3, 3),
    encoder: unit,
    decoder: unit.slice(),
    encoderBias: new Float32Array(3),
    decoderBias: new Float32Array(3),
  };
}
