/**
 * The three tests of what a direction does: steering along it, interchange of its component between counterfactuals, and ablation
 * to its mean. Each is a share of the natural gap between the classes.
 */

import { missing } from '../core/missing.ts';
import { bootstrapInterval } from '../statistics/bootstrap.ts';
import { holm } from '../statistics/holm.ts';
import { chanceOf } from '../statistics/permutation.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import { type Displaced, displaceAlong, displaceAtRandom, partsOf, swap } from './displacements.ts';
import type { Dose, Effect, Evidence } from './evidence.ts';
import { LEAST_GAP } from './limits.ts';
import { isClamped, type Margins, type Meter, marginOf } from './meter.ts';
import { balancedMean, eachOf, partnerOf, type Subjects, signOf, signOfGap, wholeOf } from './subjects.ts';

const BOOTSTRAPS = 1000;
/** In logits: effects that differ by less are as large as each other, for all that float32 can tell. */
const ROUNDING = 1e-5;

type Effects = Pick<Evidence, 'behaviour' | 'steering' | 'ablation' | 'temperature'> & {
  interchange: Omit<Evidence['interchange'], 'answerFlips' | 'partners'>;
};

export async function measureEffects(
  meter: Meter,
  subjects: Subjects,
  multiplicity: Evidence['multiplicity'],
  doseOf: (absolute: number) => Dose,
): Promise<Effects> {
  const along = await displaceAlong(meter, subjects);
  const natural = naturalMargins(meter.base, subjects);
  const swapped = await swapRest(meter, subjects, natural.between);
  const nulls = await displaceAtRandom(meter, subjects, multiplicity.nulls);

  const parts = partsOf(subjects, meter.base, along);
  const tests = [
    testEffect(subjects, 'steering', parts.steering, natural.own, nulls.steering),
    testEffect(subjects, 'interchange', parts.interchange, natural.between, nulls.interchange),
    testEffect(subjects, 'ablation', parts.ablation, natural.own, nulls.ablation),
  ] as const;
  const [s, i, n] = adjustedOf(tests, multiplicity.tests);
  const [steering, interchange, ablation] = tests;
  const { margins, sign } = natural.own;
  return {
    behaviour: describeBehaviour(meter.base, subjects, margins),
    steering: {
      ...steering,
      adjusted: s,
      dose: doseOf(subjects.swing / 2),
      wrongWay: shareOf(steering.each.filter((part) => part * sign < 0).length, steering.each.length),
      uncorrected: uncorrectedSteering(subjects, along) / steering.whole,
      deltaRelative: deltaRelative(meter.base, along),
    },
    interchange: { ...interchange, adjusted: i, ...swapped, flips: preferenceFlips(meter.base, subjects, along) },
    ablation: {
      ...ablation,
      adjusted: n,
      gap: balancedMean(subjects, margins) - balancedMean(subjects, parts.ablation),
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

/** What the model does by itself, as margins by the sign of the label. */
interface Natural {
  margins: Float64Array;
  /** Of all rows, also for a sample of them. */
  sign: 1 | -1;
  /** That a share is taken of. */
  least: number;
}

/** Of each row, and between it and its partner, where the gap is there twice. */
function naturalMargins({ raw }: Margins, subjects: Subjects): { own: Natural; between: Natural } {
  const margin = (place: number) => marginOf(raw, place);
  const own = eachOf(subjects, (place) => signOf(subjects, place) * margin(place));
  const between = eachOf(
    subjects,
    (place) => signOf(subjects, place) * (margin(place) - margin(partnerOf(subjects, place))),
  );
  const sign = signOfGap(balancedMean(subjects, own));
  return {
    own: { margins: own, sign, least: LEAST_GAP },
    between: { margins: between, sign, least: 2 * LEAST_GAP },
  };
}

function wholeIn(subjects: Subjects, { margins, sign, least }: Natural, rows?: readonly number[]): number {
  return wholeOf(balancedMean(subjects, margins, rows), sign, least);
}

/** Swaps the whole activation, and all but the direction's component. */
async function swapRest(
  meter: Meter,
  subjects: Subjects,
  natural: Natural,
): Promise<{ full: number; complement: number }> {
  const count = subjects.labels.length;
  const margins = await meter.measure(2 * count, (index) =>
    swap(subjects, index % count, index < count ? 'all' : 'rest'),
  );
  const whole = wholeIn(subjects, natural);
  const moved = (values: Float64Array) =>
    eachOf(subjects, (place) => signOf(subjects, place) * (marginOf(meter.base.raw, place) - marginOf(values, place)));
  return {
    // Whether anything passes is asked before any correction: a change of temperature is something, too.
    full: balancedMean(subjects, moved(margins.raw.subarray(0, count))) / whole,
    complement: balancedMean(subjects, moved(margins.corrected.subarray(count))) / whole,
  };
}

function testEffect(
  subjects: Subjects,
  name: string,
  parts: Float64Array,
  natural: Natural,
  nulls: readonly number[],
): Effect {
  const whole = wholeIn(subjects, natural);
  const value = balancedMean(subjects, parts) / whole;
  const shares = nulls.map((part) => part / whole);
  return {
    value,
    whole,
    interval: bootstrapInterval(
      subjects.clusters,
      (rows) => balancedMean(subjects, parts, rows) / wholeIn(subjects, natural, rows),
      BOOTSTRAPS,
      createRandom(subjects.seed, `bootstrap of ${name}`),
    ),
    each: Array.from(parts),
    null: shares,
    p: chanceOf(Math.abs(value) - ROUNDING / Math.abs(whole), shares.map(Math.abs)),
    adjusted: 1,
  };
}

function describeBehaviour({ raw }: Margins, subjects: Subjects, own: Float64Array): Evidence['behaviour'] {
  return {
    gap: balancedMean(subjects, own),
    interval: bootstrapInterval(
      subjects.clusters,
      (places) => balancedMean(subjects, own, places),
      BOOTSTRAPS,
      createRandom(subjects.seed, 'bootstrap of the gap'),
    ),
    margins: Array.from(raw),
    labels: subjects.labels,
    expressed: shareOf(own.filter((value) => value > 0).length, own.length),
  };
}

function uncorrectedSteering(subjects: Subjects, { forth, back }: Displaced): number {
  return balancedMean(
    subjects,
    eachOf(subjects, (place) => (marginOf(forth.raw, place) - marginOf(back.raw, place)) / 2),
  );
}

/** Δlogit of what the sign asks for, less that of the controls, over both signs. */
function deltaRelative(base: Margins, { forth, back }: Displaced): number {
  const change = (after: Float64Array, before: Float64Array) => mean(after) - mean(before);
  const up = change(forth.positive, base.positive) - change(forth.control, base.control);
  const down = change(back.negative, base.negative) - change(back.control, base.control);
  return (up + down) / 2;
}

/** Rows that come to prefer what their partners prefer, and did not before. */
function preferenceFlips(
  { raw }: Margins,
  subjects: Subjects,
  { swapped }: Displaced,
): Effects['interchange']['flips'] {
  const flipped = eachOf(subjects, (place) => {
    const [own, other] = [marginOf(raw, place), marginOf(raw, partnerOf(subjects, place))];
    const now = marginOf(swapped.corrected, place);
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
