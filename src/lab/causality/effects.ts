/**
 * Tests the three effects of a direction: steering, interchange of its component between counterfactuals, and ablation to its mean. Each is expressed
 * as a share of the natural gap between the classes.
 */

import { missing } from '../core/missing.ts';
import { bootstrapInterval } from '../statistics/bootstrap.ts';
import { holm } from '../statistics/holm.ts';
import { permutationP } from '../statistics/permutation.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import { type Displaced, displaceAlong, displaceAtRandom, partsOf, swap } from './displacements.ts';
import type { Dose, Effect, Evidence } from './evidence.ts';
import {
  balancedMean,
  eachOf,
  type InterventionSample,
  partnerOf,
  referenceEffect,
  signOf,
  signOfGap,
} from './intervention-sample.ts';
import { isClamped, type MarginReader, type Margins, marginOf } from './logit-margins.ts';
import { LEAST_GAP } from './thresholds.ts';

const BOOTSTRAPS = 1000;
/** In logits: effects that differ by less are equal within the rounding of float32. */
const ROUNDING = 1e-5;

type Effects = Pick<Evidence, 'behaviour' | 'steering' | 'ablation' | 'temperature'> & {
  interchange: Omit<Evidence['interchange'], 'answerFlips' | 'partners'>;
};

export async function measureEffects(
  reader: MarginReader,
  sample: InterventionSample,
  multiplicity: Evidence['multiplicity'],
  doseOf: (absolute: number) => Dose,
): Promise<Effects> {
  const along = await displaceAlong(reader, sample);
  const natural = naturalMargins(reader.base, sample);
  const swapped = await swapRest(reader, sample, natural.between);
  const nulls = await displaceAtRandom(reader, sample, multiplicity.nulls);

  const parts = partsOf(sample, reader.base, along);
  const tests = [
    testEffect(sample, 'steering', parts.steering, natural.own, nulls.steering),
    testEffect(sample, 'interchange', parts.interchange, natural.between, nulls.interchange),
    testEffect(sample, 'ablation', parts.ablation, natural.own, nulls.ablation),
  ] as const;
  const [s, i, n] = adjustedOf(tests, multiplicity.tests);
  const [steering, interchange, ablation] = tests;
  const { margins, sign } = natural.own;
  return {
    behaviour: describeBehaviour(reader.base, sample, margins),
    steering: {
      ...steering,
      adjusted: s,
      dose: doseOf(sample.swing / 2),
      wrongWay: shareOf(steering.each.filter((part) => part * sign < 0).length, steering.each.length),
      uncorrected: uncorrectedSteering(sample, along) / steering.whole,
      deltaRelative: deltaRelative(reader.base, along),
    },
    interchange: { ...interchange, adjusted: i, ...swapped, flips: preferenceFlips(reader.base, sample, along) },
    ablation: {
      ...ablation,
      adjusted: n,
      gap: balancedMean(sample, margins) - balancedMean(sample, parts.ablation),
    },
    temperature: describeTemperature(along),
  };
}

/** Adjusted for all tests of the lab session. */
function adjustedOf(tests: readonly [Effect, Effect, Effect], count: number): [number, number, number] {
  const [
    s = missing('adjusted p of steering'),
    i = missing('adjusted p of interchange'),
    n = missing('adjusted p of ablation'),
  ] = holm(
    tests.map((test) => test.p),
    count,
  );
  return [s, i, n];
}

/** Margins of the unmodified model, times the sign of the label. */
interface Natural {
  margins: Float64Array;
  /** The sign of the gap over all rows, which a bootstrap sample uses too. */
  sign: 1 | -1;
  /** The smallest gap that shares are taken of. */
  least: number;
}

/** The margins of each row, and those between it and its partner, which hold the gap twice. */
function naturalMargins({ raw }: Margins, sample: InterventionSample): { own: Natural; between: Natural } {
  const margin = (index: number) => marginOf(raw, index);
  const own = eachOf(sample, (index) => signOf(sample, index) * margin(index));
  const between = eachOf(sample, (index) => signOf(sample, index) * (margin(index) - margin(partnerOf(sample, index))));
  const sign = signOfGap(balancedMean(sample, own));
  return {
    own: { margins: own, sign, least: LEAST_GAP },
    between: { margins: between, sign, least: 2 * LEAST_GAP },
  };
}

function referenceIn(sample: InterventionSample, { margins, sign, least }: Natural, rows?: readonly number[]): number {
  return referenceEffect(balancedMean(sample, margins, rows), sign, least);
}

/** Interchanges the whole activation, and all but the direction's component. */
async function swapRest(
  reader: MarginReader,
  sample: InterventionSample,
  natural: Natural,
): Promise<{ full: number; complement: number }> {
  const count = sample.labels.length;
  const margins = await reader.measure(2 * count, (index) =>
    swap(sample, index % count, index < count ? 'all' : 'rest'),
  );
  const whole = referenceIn(sample, natural);
  const moved = (values: Float64Array) =>
    eachOf(sample, (index) => signOf(sample, index) * (marginOf(reader.base.raw, index) - marginOf(values, index)));
  return {
    // Without the correction for temperature, as a change of temperature is an effect of the site, too.
    full: balancedMean(sample, moved(margins.raw.subarray(0, count))) / whole,
    complement: balancedMean(sample, moved(margins.corrected.subarray(count))) / whole,
  };
}

function testEffect(
  sample: InterventionSample,
  name: string,
  parts: Float64Array,
  natural: Natural,
  nulls: readonly number[],
): Effect {
  const whole = referenceIn(sample, natural);
  const value = balancedMean(sample, parts) / whole;
  const shares = nulls.map((part) => part / whole);
  return {
    value,
    whole,
    interval: bootstrapInterval(
      sample.clusters,
      (rows) => balancedMean(sample, parts, rows) / referenceIn(sample, natural, rows),
      BOOTSTRAPS,
      createRandom(sample.seed, `bootstrap of ${name}`),
    ),
    each: Array.from(parts),
    null: shares,
    p: permutationP(Math.abs(value) - ROUNDING / Math.abs(whole), shares.map(Math.abs)),
    adjusted: 1,
  };
}

function describeBehaviour({ raw }: Margins, sample: InterventionSample, own: Float64Array): Evidence['behaviour'] {
  return {
    gap: balancedMean(sample, own),
    interval: bootstrapInterval(
      sample.clusters,
      (indices) => balancedMean(sample, own, indices),
      BOOTSTRAPS,
      createRandom(sample.seed, 'bootstrap of the gap'),
    ),
    margins: Array.from(raw),
    labels: sample.labels,
    expressed: shareOf(own.filter((value) => value > 0).length, own.length),
  };
}

function uncorrectedSteering(sample: InterventionSample, { forth, back }: Displaced): number {
  return balancedMean(
    sample,
    eachOf(sample, (index) => (marginOf(forth.raw, index) - marginOf(back.raw, index)) / 2),
  );
}

/** The mean Δlogit of the steered class less that of the controls, over both signs. */
function deltaRelative(base: Margins, { forth, back }: Displaced): number {
  const change = (after: Float64Array, before: Float64Array) => mean(after) - mean(before);
  const up = change(forth.positive, base.positive) - change(forth.control, base.control);
  const down = change(back.negative, base.negative) - change(back.control, base.control);
  return (up + down) / 2;
}

/** Counts rows that prefer the partner's class after interchange, and did not before. */
function preferenceFlips(
  { raw }: Margins,
  sample: InterventionSample,
  { swapped }: Displaced,
): Effects['interchange']['flips'] {
  const flipped = eachOf(sample, (index) => {
    const [own, other] = [marginOf(raw, index), marginOf(raw, partnerOf(sample, index))];
    const now = marginOf(swapped.corrected, index);
    return own * now < 0 && other * now > 0 ? 1 : 0;
  });
  return shareOf(flipped.filter((value) => value === 1).length, flipped.length);
}

function describeTemperature(along: Displaced): Evidence['temperature'] {
  const scales = Object.values(along).flatMap((margins) => [...margins.scale]);
  return {
    mean: mean(scales),
    low: Math.min(...scales),
    high: Math.max(...scales),
    clamped: scales.filter(isClamped).length,
  };
}
