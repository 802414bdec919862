/**
 * Measures the three effects of a direction: steering to the class means, interchange of its component between counterfactuals, and ablation to the
 * middle. Each is expressed as a share of the natural gap between the classes.
 */

import { expandedInterval } from '../statistics/bootstrap.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import type { Dose, Share } from './common-evidence.ts';
import { type Displaced, displaceNaturally, EFFECT_KINDS, marginLost, partsOf } from './displacements.ts';
import type { Effect, Evidence } from './evidence.ts';
import {
  balancedMean,
  eachOf,
  type InterventionSample,
  partnerOf,
  referenceEffect,
  type SampleRows,
  signOf,
  signOfGap,
} from './intervention-sample.ts';
import { type MarginReader, type Margins, marginOf, partOfMargins } from './logit-margins.ts';
import { componentSwaps, swapAll } from './swaps.ts';
import { LEAST_GAP } from './thresholds.ts';

const BOOTSTRAPS = 1000;

type Tested = 'null' | 'p' | 'adjusted';

/** All but what random directions tell. */
export interface Effects {
  behaviour: Evidence['behaviour'];
  steering: Omit<Evidence['steering'], Tested>;
  interchange: Omit<Evidence['interchange'], Tested | 'answerFlips' | 'answers' | 'partners'>;
  ablation: Omit<Evidence['ablation'], Tested>;
  temperature: Omit<Evidence['temperature'], 'untoldAtRandom'>;
}

export async function measureEffects(reader: MarginReader, sample: InterventionSample, dose: Dose): Promise<Effects> {
  const along = await displaceNaturally(reader, sample, [...EFFECT_KINDS, 'beyond']);
  const natural = naturalMargins(reader.base, sample);
  const behaviour = describeBehaviour(reader.base, sample, natural.own.margins);
  const swapped = await swapOthers(reader, sample, natural.between);

  const parts = partsOf(sample, reader.base, along);
  const steering = shareIn(sample, 'steering', parts.steering, natural.own);
  const { sign } = natural.own;
  const steered = parts.steering.filter((part) => !Number.isNaN(part));
  return {
    behaviour,
    steering: {
      ...steering,
      dose,
      wrongWay: shareOf(steered.filter((part) => part * sign < 0).length, steered.length),
      uncorrected: uncorrectedSteering(sample, along) / steering.whole,
      deltaRelative: deltaRelative(reader.base, along),
      saturation: saturationOf(sample, along, steering.whole),
    },
    interchange: {
      ...shareIn(sample, 'interchange', parts.interchange, natural.between),
      ...swapped,
      flips: preferenceFlips(reader.base, sample, along),
    },
    ablation: {
      ...shareIn(sample, 'ablation', parts.ablation, natural.own),
      gap: behaviour.gap - balancedMean(sample, parts.ablation),
    },
    temperature: describeTemperature(along),
  };
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
export function naturalMargins({ raw }: Margins, sample: SampleRows): { own: Natural; between: Natural } {
  const margin = (index: number) => marginOf(raw, index);
  const own = eachOf(sample, (index) => signOf(sample, index) * margin(index));
  const between = eachOf(sample, (index) => signOf(sample, index) * (margin(index) - margin(partnerOf(sample, index))));
  const sign = signOfGap(balancedMean(sample, own));
  return {
    own: { margins: own, sign, least: LEAST_GAP },
    between: { margins: between, sign, least: 2 * LEAST_GAP },
  };
}

/** The rows' parts as a share of what is natural in the same rows: those whose part cannot be told are in neither. */
export function shareIn(sample: SampleRows, name: string, parts: Float64Array, natural: Natural): Omit<Effect, Tested> {
  const margins = natural.margins.map((margin, index) => (Number.isNaN(marginOf(parts, index)) ? Number.NaN : margin));
  const referenceIn = (rows?: readonly number[]) =>
    referenceEffect(balancedMean(sample, margins, rows), natural.sign, natural.least);
  const whole = referenceIn();
  return {
    value: balancedMean(sample, parts) / whole,
    whole,
    interval: expandedInterval(
      sample.clusters,
      (rows) => balancedMean(sample, parts, rows) / referenceIn(rows),
      BOOTSTRAPS,
      createRandom(sample.seed, `bootstrap of ${name}`),
    ),
    each: Array.from(parts, (part) => (Number.isNaN(part) ? null : part)),
  };
}

/** Interchanges the whole activation, and all but the direction's component. */
async function swapOthers(
  reader: MarginReader,
  sample: InterventionSample,
  natural: Natural,
): Promise<Pick<Evidence['interchange'], 'full' | 'complement'>> {
  const count = sample.labels.length;
  const swaps = componentSwaps(sample);
  const margins = await reader.measure(2 * count, (index) =>
    index < count ? swapAll(sample, index) : swaps.rest(index % count),
  );
  const [all, rest] = [partOfMargins(margins, 0, count), partOfMargins(margins, count, 2 * count)];
  // Without the correction for temperature, as a change of temperature is an effect of the site, too.
  const moved = marginLost(sample, reader.base, { ...all, corrected: all.raw });
  const { value, interval } = shareIn(sample, 'the whole activation', moved, natural);
  return {
    full: { value, interval },
    complement: shareIn(sample, 'all but the direction', marginLost(sample, reader.base, rest), natural).value,
  };
}

export function describeBehaviour({ raw }: Margins, sample: SampleRows, own: Float64Array): Evidence['behaviour'] {
  return {
    gap: balancedMean(sample, own),
    interval: expandedInterval(
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

/** From the middle to the mean of a row's own class, and as far again: where the second step moves less, the read-out saturates. */
function saturationOf(
  sample: InterventionSample,
  { forth, back, ablated, beyond }: Displaced<'forth' | 'back' | 'ablated' | 'beyond'>,
  whole: number,
): Evidence['steering']['saturation'] {
  const own = (index: number) => marginOf((signOf(sample, index) === 1 ? forth : back).corrected, index);
  const step = (from: (index: number) => number, to: (index: number) => number) =>
    balancedMean(
      sample,
      eachOf(sample, (index) => signOf(sample, index) * (to(index) - from(index))),
    ) / whole;
  return {
    within: step((index) => marginOf(ablated.corrected, index), own),
    beyond: step(own, (index) => marginOf(beyond.corrected, index)),
  };
}

/** Counts rows that prefer the partner's class after interchange, and did not before. */
function preferenceFlips({ raw }: Margins, sample: InterventionSample, { swapped }: Displaced): Share {
  const flipped = eachOf(sample, (index) => {
    const [own, other] = [marginOf(raw, index), marginOf(raw, partnerOf(sample, index))];
    const now = marginOf(swapped.corrected, index);
    return own * now < 0 && other * now > 0 ? 1 : 0;
  });
  return shareOf(flipped.filter((value) => value === 1).length, flipped.length);
}

function describeTemperature(along: Displaced): Effects['temperature'] {
  const scales = EFFECT_KINDS.flatMap((kind) => [...along[kind].scale]);
  const told = scales.filter((scale) => !Number.isNaN(scale));
  const known = told.length > 0 ? told : [1];
  return {
    mean: mean(known),
    low: Math.min(...known),
    high: Math.max(...known),
    untold: shareOf(scales.length - told.length, scales.length),
  };
}
