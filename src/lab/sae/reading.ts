/**
 * Finds out whether an SAE was read with another activation function than it was trained with, from activations alone. It still reconstructs something then,
 * so that the unexplained variance does not show it. What shows it is that a trained SAE is at an optimum: leaving its weakest features out,
 * letting more of them in, rescaling or shifting what it reconstructs makes it worse, or at least hardly better.
 */

import { missing } from '../core/missing.ts';
import type { Sae } from '../core/sae.ts';
import { centreRows } from '../statistics/vectors.ts';
import { decodeSae, encodeSaePlainly } from './encode.ts';
import { rowLengths } from './weights.ts';

/** Unexplained variance (FVU) of the SAE as it was read, and of what each change makes of it. */
export interface SaeReading {
  fvu: number;
  /** With only a part of each row's active features, the strongest: the least of several parts. */
  sparser: number;
  /** With all features that are positive before k, thresholds or gates take some away. On a sample of rows, as `fvuOfSample`. */
  denser: number;
  fvuOfSample: number;
  /** What the features write times the best factor, which is `scale`. */
  rescaled: number;
  scale: number;
  /** Plus the mean of what is left. */
  shifted: number;
  l0: number;
}

/** Of a row's active features. */
const PARTS = [1 / 2, 1 / 4, 1 / 8, 1 / 16];

/** `wanted` is what the SAE should reconstruct: for an autoencoder the rows themselves. */
export function measureReading(sae: Sae, rows: Float32Array, features: Float32Array, wanted: Float32Array): SaeReading {
  const width = wanted.length / (rows.length / sae.width);
  const spread = squaredDistances(wanted, meanRow(wanted, width));
  const decoded = decodeSae(sae, features, rows);
  const background = decodeSae(sae, new Float32Array(features.length), rows);
  const left = wanted.map((value, i) => value - at(decoded, i));
  const error = sumOfSquares(left);
  const scale = bestScale(wanted, decoded, background);
  const rescaled = wanted.map((value, i) => value - at(background, i) - scale * (at(decoded, i) - at(background, i)));
  const errorOf = (part: number) => squaredDistances(wanted, decodeSae(sae, strongest(sae, features, part), rows));
  return {
    fvu: error / spread,
    sparser: Math.min(...PARTS.map(errorOf)) / spread,
    ...compareDenser(sae, rows, features, wanted),
    rescaled: sumOfSquares(rescaled) / spread,
    scale,
    shifted: squaredDistances(left, meanRow(left, width)) / spread,
    l0: features.filter((value) => value > 0).length / (rows.length / sae.width),
  };
}

/**
 * How far FVU may fall by each change. SAEs that are read rightly stay above: they get worse without their weaker features; thresholds also take away
 * what would reconstruct a little; and ReLUs, whose training keeps features too small, gain by rescaling. A mean error may also come from the text,
 * so that it must matter by itself.
 */
const SHARES = { sparser: 0.97, denser: 0.35, rescaled: 0.75, shifted: 0.8 };
const LEAST_SHIFT = 0.01;
/** A penalty on sizes keeps a ReLU's features too small, by up to this factor. */
const MOST_SHRUNK = 1.75;
/**
 * Where k, thresholds or gates have taken weak features away, and where more are active than half the numbers of a row, those which are left must be of use:
 * without the weaker ones, FVU is more by this factor.
 */
const OF_USE = 1.1;
/** L0 may be this many times more or less than the file says: text differs. */
const L0_RANGE = 3;

/** Why this is not the SAE that was trained; undefined if nothing speaks for it. */
export function misreadingOf(sae: Sae, reading: SaeReading): string | undefined {
  const { fvu, fvuOfSample, sparser, denser, rescaled, shifted, scale, l0 } = reading;
  const active = `L0 ${l0.toFixed(1)}`;
  const mustBeOfUse = sae.activation.kind !== 'relu' || l0 > sae.width / 2;
  if (l0 > 1 && sparser < (mustBeOfUse ? OF_USE : SHARES.sparser) * fvu) {
    return `with fewer of its active features (${active}) it reconstructs ${sparser < fvu ? 'better' : 'as well'}, ${percents(sparser, fvu)}, so that its k, thresholds, gates or biases are missing`;
  }
  if (denser < SHARES.denser * fvuOfSample) {
    return `with all features that are positive it reconstructs better, ${percents(denser, fvuOfSample)}, so that its k, thresholds or gates let too few through (${active})`;
  }
  const isShrunk = sae.activation.kind === 'relu' && scale > 1 && scale < MOST_SHRUNK;
  if (!isShrunk && rescaled < SHARES.rescaled * fvu) {
    return `with what its features write times ${scale.toFixed(2)} it reconstructs better, ${percents(rescaled, fvu)}, so that features, decoder or input are scaled otherwise`;
  }
  if (shifted < SHARES.shifted * fvu && fvu - shifted > LEAST_SHIFT) {
    return `with its mean error added it reconstructs better, ${percents(shifted, fvu)}, so that a bias is missing`;
  }
  if (l0 > sae.width) {
    return `more features are active (${active}) than an activation has numbers (${sae.width}), which is not sparse, so that its k, thresholds, gates or biases are missing`;
  }
  if (sae.expectedL0 !== undefined && (l0 > L0_RANGE * sae.expectedL0 || l0 < sae.expectedL0 / L0_RANGE)) {
    return `${l0.toFixed(1)} features are active on average, and its files say ${sae.expectedL0}`;
  }
  return undefined;
}

function percents(changed: number, before: number): string {
  return `leaving ${(changed * 100).toFixed(1)} % unexplained instead of ${(before * 100).toFixed(1)} %`;
}

/** Multiplications that the comparison with more features may take. */
const MOST_PRODUCTS = 2 ** 29;

function compareDenser(
  sae: Sae,
  rows: Float32Array,
  features: Float32Array,
  wanted: Float32Array,
): Pick<SaeReading, 'denser' | 'fvuOfSample'> {
  const count = rows.length / sae.width;
  const sample = Math.min(count, Math.max(4, Math.floor(MOST_PRODUCTS / (sae.features * sae.width))));
  const some = rows.subarray(0, sample * sae.width);
  const target = wanted.subarray(0, (wanted.length / count) * sample);
  const spread = squaredDistances(target, meanRow(target, wanted.length / count));
  const own = decodeSae(sae, features.subarray(0, sample * sae.features), some);
  const fvuOfSample = squaredDistances(target, own) / spread;
  if (sae.activation.kind === 'relu') return { fvuOfSample, denser: fvuOfSample };
  const more = withAllPositive(sae);
  const dense = decodeSae(more, encodeSaePlainly(more, some), some);
  return { fvuOfSample, denser: squaredDistances(target, dense) / spread };
}

function withAllPositive(sae: Sae): Sae {
  if (sae.activation.kind !== 'gated') return { ...sae, activation: { kind: 'relu' } };
  return { ...sae, activation: { ...sae.activation, gateBias: new Float32Array(sae.features).fill(Infinity) } };
}

/** Of each row, the part of its active features that writes most stays. */
function strongest(sae: Sae, features: Float32Array, part: number): Float32Array {
  const lengths = rowLengths(sae.decoder, sae.features);
  const kept = new Float32Array(features.length);
  for (let start = 0; start < features.length; start += sae.features) {
    const active: { feature: number; size: number }[] = [];
    for (let feature = 0; feature < sae.features; feature++) {
      const value = at(features, start + feature);
      if (value > 0) active.push({ feature, size: value * at(lengths, feature) });
    }
    active.sort((a, b) => b.size - a.size);
    for (const { feature } of active.slice(0, Math.ceil(active.length * part))) {
      kept[start + feature] = at(features, start + feature);
    }
  }
  return kept;
}

/** Of what the features write, beside what is there without them. */
function bestScale(wanted: Float32Array, decoded: Float32Array, background: Float32Array): number {
  let common = 0;
  let own = 0;
  for (let i = 0; i < wanted.length; i++) {
    const written = at(decoded, i) - at(background, i);
    common += written * (at(wanted, i) - at(background, i));
    own += written * written;
  }
  return own > 0 ? common / own : 1;
}

function meanRow(rows: Float32Array, width: number): Float32Array {
  return Float32Array.from(centreRows(rows, width).centre);
}

/** The second may be one row, for all of the first. */
function squaredDistances(rows: Float32Array, others: Float32Array): number {
  let total = 0;
  for (let i = 0; i < rows.length; i++) total += (at(rows, i) - at(others, i % others.length)) ** 2;
  return total;
}

function sumOfSquares(numbers: Float32Array): number {
  return numbers.reduce((total, number) => total + number * number, 0);
}

function at(numbers: Float32Array, index: number): number {
  return numbers[index] ?? missing('number', index);
}
