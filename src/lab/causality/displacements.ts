/**
 * Measures the margins of all rows under interventions of natural size: steering by plus and minus half of the distance between the class means,
 * interchange with the partner's component, and ablation to the mean of both classes. The same along random directions gives the null distribution.
 */

import type { Variant } from '../core/engine.ts';
import { missing } from '../core/missing.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import { scaled } from '../statistics/vectors.ts';
import { balancedMean, eachOf, type InterventionSample, labelOf, partnerOf, signOf } from './intervention-sample.ts';
import { type MarginReader, type Margins, marginOf } from './logit-margins.ts';
import { addAt, takeFrom } from './variants.ts';

/** Steering both ways, interchange and ablation, in the order in which they are run. */
const KINDS = ['forth', 'back', 'swapped', 'ablated'] as const;

/** Variants of random directions that are run together. */
const AT_ONCE = 4096;

/** The contribution of each row, or of each random direction, to the three effects, in logits. */
export interface Parts<Numbers> {
  steering: Numbers;
  interchange: Numbers;
  ablation: Numbers;
}

/** The margins of all rows under each intervention. */
export type Displaced = Record<(typeof KINDS)[number], Margins>;

/** The interventions along the direction itself. For interchange, the engine takes the component from the partner's activation. */
export async function displaceAlong(reader: MarginReader, sample: InterventionSample): Promise<Displaced> {
  const doses = naturalDoses(sample);
  const margins = await measureKinds(reader, sample, 1, (kind, index) => {
    if (kind === 'swapped') return swap(sample, index, 'along');
    return addAt(sample.site, index, scaled(sample.direction, doseOf(doses, kind, index)));
  });
  return displacedOf(margins, sample, 0);
}

/** Interchanges a part of the activation with that of the row's partner. */
export function swap(sample: InterventionSample, index: number, part: 'along' | 'rest' | 'all'): Variant {
  const { site, direction, activations } = sample;
  const partner = partnerOf(sample, index);
  const source = activations[partner] ?? missing('activation of row', partner);
  return takeFrom(site, index, source, part, direction);
}

/** The null distribution of the three effects, one number for each random direction. */
export async function displaceAtRandom(
  reader: MarginReader,
  sample: InterventionSample,
  nulls: number,
): Promise<Parts<number[]>> {
  const { site, seed, width, swing, labels } = sample;
  const doses = naturalDoses(sample);
  const random = createRandom(seed, 'null directions');
  const result: Parts<number[]> = { steering: [], interchange: [], ablation: [] };
  const atOnce = Math.max(1, Math.floor(AT_ONCE / (KINDS.length * labels.length)));
  for (let done = 0; done < nulls; done += atOnce) {
    const directions = Array.from({ length: Math.min(atOnce, nulls - done) }, () => {
      const vector = random.direction(width);
      // Steering adds the same vector to all rows.
      return { vector, forth: scaled(vector, swing / 2), back: scaled(vector, -swing / 2) };
    });
    const margins = await measureKinds(reader, sample, directions.length, (kind, index, which) => {
      const direction = directions[which] ?? missing('random direction', which);
      const isShared = kind === 'forth' || kind === 'back';
      return addAt(site, index, isShared ? direction[kind] : scaled(direction.vector, doseOf(doses, kind, index)));
    });
    directions.forEach((_, which) => {
      const parts = partsOf(sample, reader.base, displacedOf(margins, sample, which));
      result.steering.push(balancedMean(sample, parts.steering));
      result.interchange.push(balancedMean(sample, parts.interchange));
      result.ablation.push(balancedMean(sample, parts.ablation));
    });
  }
  return result;
}

/** Steering: half of the difference between both signs. Interchange and ablation: the margin that a row loses. */
export function partsOf(sample: InterventionSample, base: Margins, displaced: Displaced): Parts<Float64Array> {
  const { forth, back, swapped, ablated } = displaced;
  const lost = ({ corrected }: Margins) =>
    eachOf(sample, (index) => signOf(sample, index) * (marginOf(base.raw, index) - marginOf(corrected, index)));
  return {
    steering: eachOf(sample, (index) => (marginOf(forth.corrected, index) - marginOf(back.corrected, index)) / 2),
    interchange: lost(swapped),
    ablation: lost(ablated),
  };
}

type Doses = Record<keyof Displaced, Float64Array>;

function doseOf(doses: Doses, kind: keyof Displaced, index: number): number {
  return doses[kind][index] ?? missing(`dose (${kind}) of row`, index);
}

function naturalDoses(sample: InterventionSample): Doses {
  const { components, swing } = sample;
  const meanOf = (label: number) => mean(components.filter((_, index) => labelOf(sample, index) === label));
  const middle = (meanOf(0) + meanOf(1)) / 2;
  return {
    forth: components.map(() => swing / 2),
    back: components.map(() => -swing / 2),
    swapped: components.map((own, index) => componentOf(sample, partnerOf(sample, index)) - own),
    ablated: components.map((own) => middle - own),
  };
}

function componentOf({ components }: InterventionSample, index: number): number {
  return components[index] ?? missing('component of row', index);
}

/** Runs every intervention on every row, for so many directions. */
function measureKinds(
  reader: MarginReader,
  { labels }: InterventionSample,
  directions: number,
  variantOf: (kind: keyof Displaced, index: number, direction: number) => Variant,
): Promise<Margins> {
  const [count, each] = [labels.length, labels.length * KINDS.length];
  return reader.measure(directions * each, (index) => {
    const number = Math.floor((index % each) / count);
    const kind = KINDS[number] ?? missing('kind of displacement', number);
    return variantOf(kind, index % count, Math.floor(index / each));
  });
}

function displacedOf(margins: Margins, { labels }: InterventionSample, direction: number): Displaced {
  const count = labels.length;
  const part = (kind: keyof Displaced): Margins => {
    const from = (direction * KINDS.length + KINDS.indexOf(kind)) * count;
    const cut = (values: Float64Array) => values.subarray(from, from + count);
    return {
      corrected: cut(margins.corrected),
      raw: cut(margins.raw),
      scale: cut(margins.scale),
      positive: cut(margins.positive),
      negative: cut(margins.negative),
      control: cut(margins.control),
    };
  };
  return { forth: part('forth'), back: part('back'), swapped: part('swapped'), ablated: part('ablated') };
}
