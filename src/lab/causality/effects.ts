/**
 * Measures the three effects of a direction: steering to the class means, interchange of its component between counterfactuals, and ablation to the
 * middle. Each is expressed as a share of the natural gap between the classes.
 */

import { missing } from '../core/missing.ts';
import { expandedInterval } from '../statistics/bootstrap.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import type { Dose, Share } from './common-evidence.ts';
import {
  contrastLost,
  type Displaced,
  displaceNaturally,
  effectKinds,
  partsOf,
  steeredMargins,
} from './displacements.ts';
import type { Effect, Evidence } from './evidence.ts';
import {
  balancedMean,
  eachOf,
  type InterventionSample,
  labelOf,
  partnerOf,
  partnersLabel,
  referenceEffect,
  type SampleRows,
  signOfGap,
} from './intervention-sample.ts';
import {
  contrastOf,
  logitIn,
  type MarginReader,
  type Margins,
  marginOf,
  partOfMargins,
  uncorrected,
} from './logit-margins.ts';
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
  const along = await displaceNaturally(reader, sample, [...effectKinds(sample), 'beyond']);
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
      uncorrected:
        balancedMean(
          sample,
          steeredMargins(sample, (kind) => uncorrected(along(kind))),
        ) / steering.whole,
      deltaRelative: deltaRelative(reader.base, sample, along),
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
    temperature: describeTemperature(sample, along),
  };
}

/** Margins of the unmodified model, in favour of the row's own class. */
interface Natural {
  margins: Float64Array;
  /** The sign of the gap over all rows, which a bootstrap sample uses too. */
  sign: 1 | -1;
  /** The smallest gap that shares are taken of. */
  least: number;
}

/** The margins of each row, and how its contrast to its partner's class differs from the partner's, which for two classes holds the gap twice. */
export function naturalMargins(base: Margins, sample: SampleRows): { own: Natural; between: Natural } {
  const own = eachOf(sample, (index) => marginOf(base, index, labelOf(sample, index)));
  const between = eachOf(sample, (index) => {
    const contrast = (row: number) => contrastOf(base, row, labelOf(sample, index), partnersLabel(sample, index));
    return contrast(index) - contrast(partnerOf(sample, index));
  });
  const sign = signOfGap(balancedMean(sample, own));
  return {
    own: { margins: own, sign, least: LEAST_GAP },
    between: { margins: between, sign, least: 2 * LEAST_GAP },
  };
}

/** The rows' parts as a share of what is natural in the same rows: those whose part cannot be told are in neither. */
export function shareIn(sample: SampleRows, name: string, parts: Float64Array, natural: Natural): Omit<Effect, Tested> {
  const partOf = (index: number) => parts[index] ?? missing('part of row', index);
  const margins = natural.margins.map((margin, index) => (Number.isNaN(partOf(index)) ? Number.NaN : margin));
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
  const moved = contrastLost(sample, reader.base, uncorrected(all));
  const { value, interval } = shareIn(sample, 'the whole activation', moved, natural);
  return {
    full: { value, interval },
    complement: shareIn(sample, 'all but the direction', contrastLost(sample, reader.base, rest), natural).value,
  };
}

export function describeBehaviour(base: Margins, sample: SampleRows, own: Float64Array): Evidence['behaviour'] {
  return {
    gap: balancedMean(sample, own),
    interval: expandedInterval(
      sample.clusters,
      (indices) => balancedMean(sample, own, indices),
      BOOTSTRAPS,
      createRandom(sample.seed, 'bootstrap of the gap'),
    ),
    margins: Array.from(sample.classes === 2 ? eachOf(sample, (index) => marginOf(base, index, 1)) : own),
    labels: sample.labels,
    expressed: shareOf(own.filter((value) => value > 0).length, own.length),
  };
}

/** The mean Δlogit of the class that is steered to less that of the controls, over all classes. */
function deltaRelative(base: Margins, sample: SampleRows, along: Displaced): number {
  const logits = (margins: Margins, label: number) => mean(eachOf(sample, (index) => logitIn(margins, index, label)));
  const changes = Array.from({ length: sample.classes }, (_, label) => {
    const steered = along(label);
    return logits(steered, label) - logits(base, label) - (mean(steered.control) - mean(base.control));
  });
  return mean(changes);
}

/** From the middle to the mean of a row's own class, and as far again: where the second step moves less, the read-out saturates. */
function saturationOf(sample: InterventionSample, along: Displaced, whole: number): Evidence['steering']['saturation'] {
  const step = (from: (label: number) => Margins, to: (label: number) => Margins) =>
    balancedMean(
      sample,
      eachOf(sample, (index) => {
        const label = labelOf(sample, index);
        return marginOf(to(label), index, label) - marginOf(from(label), index, label);
      }),
    ) / whole;
  return { within: step(() => along('ablated'), along), beyond: step(along, () => along('beyond')) };
}

/** Counts rows that prefer the partner's class after interchange, and did not before. */
function preferenceFlips(base: Margins, sample: InterventionSample, along: Displaced): Share {
  const swapped = along('swapped');
  const flipped = eachOf(sample, (index) => {
    const contrast = (margins: Margins, row: number) =>
      contrastOf(margins, row, labelOf(sample, index), partnersLabel(sample, index));
    const [own, other] = [contrast(base, index), contrast(base, partnerOf(sample, index))];
    const now = contrast(swapped, index);
    return own * now < 0 && other * now > 0 ? 1 : 0;
  });
  return shareOf(flipped.filter((value) => value === 1).length, flipped.length);
}

function describeTemperature(sample: SampleRows, along: Displaced): Effects['temperature'] {
  const scales = effectKinds(sample).flatMap((kind) => [...along(kind).scale]);
  const told = scales.filter((scale) => !Number.isNaN(scale));
  const known = told.length > 0 ? told : [1];
  return {
    mean: mean(known),
    low: Math.min(...known),
    high: Math.max(...known),
    untold: shareOf(scales.length - told.length, scales.length),
  };
}
