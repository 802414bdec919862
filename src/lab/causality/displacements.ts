/**
 * Displacements of the natural size along a direction, and what they do: each row is moved forth and back by half of the classes'
 * distance, to its partner's component, and to the mean of both classes. The same sizes along random directions are the null.
 */

import type { Variant } from '../core/engine.ts';
import { missing } from '../core/missing.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import { scaled } from '../statistics/vectors.ts';
import { type Margins, type Meter, marginOf } from './meter.ts';
import { balancedMean, eachOf, labelOf, partnerOf, type Subjects, signOf } from './subjects.ts';
import { addAt, takeFrom } from './variants.ts';

/** What is measured of each row under the four displacements, one after the other. */
const KINDS = ['forth', 'back', 'swapped', 'ablated'] as const;

/** Variants of null directions that are measured at a time. */
const AT_ONCE = 4096;

/** What each row, or each null direction, adds to the three effects, in logits. */
export interface Parts<Numbers> {
  steering: Numbers;
  interchange: Numbers;
  ablation: Numbers;
}

/** The margins of all rows under one displacement. */
export type Displaced = Record<(typeof KINDS)[number], Margins>;

/** Interchange is left to the engine, which takes the component from the partner's activation itself. */
export async function displaceAlong(meter: Meter, subjects: Subjects): Promise<Displaced> {
  const doses = naturalDoses(subjects);
  const margins = await measureKinds(meter, subjects, 1, (kind, place) => {
    if (kind === 'swapped') return swap(subjects, place, 'along');
    return addAt(subjects.site, place, scaled(subjects.direction, doseOf(doses, kind, place)));
  });
  return displacedOf(margins, subjects, 0);
}

/** With what the row's partner has. */
export function swap(subjects: Subjects, place: number, part: 'along' | 'rest' | 'all'): Variant {
  const { site, direction, activations } = subjects;
  const partner = partnerOf(subjects, place);
  const source = activations[partner] ?? missing('activation of row', partner);
  return takeFrom(site, place, source, part, direction);
}

/** One number for each random direction. */
export async function displaceAtRandom(meter: Meter, subjects: Subjects, nulls: number): Promise<Parts<number[]>> {
  const { site, seed, width, swing, labels } = subjects;
  const doses = naturalDoses(subjects);
  const random = createRandom(seed, 'null directions');
  const result: Parts<number[]> = { steering: [], interchange: [], ablation: [] };
  const atOnce = Math.max(1, Math.floor(AT_ONCE / (KINDS.length * labels.length)));
  for (let done = 0; done < nulls; done += atOnce) {
    const directions = Array.from({ length: Math.min(atOnce, nulls - done) }, () => {
      const vector = random.direction(width);
      // Steering moves all rows alike, so that they can share a vector.
      return { vector, forth: scaled(vector, swing / 2), back: scaled(vector, -swing / 2) };
    });
    const margins = await measureKinds(meter, subjects, directions.length, (kind, place, which) => {
      const direction = directions[which] ?? missing('random direction', which);
      const isShared = kind === 'forth' || kind === 'back';
      return addAt(site, place, isShared ? direction[kind] : scaled(direction.vector, doseOf(doses, kind, place)));
    });
    directions.forEach((_, which) => {
      const parts = partsOf(subjects, meter.base, displacedOf(margins, subjects, which));
      result.steering.push(balancedMean(subjects, parts.steering));
      result.interchange.push(balancedMean(subjects, parts.interchange));
      result.ablation.push(balancedMean(subjects, parts.ablation));
    });
  }
  return result;
}

/** Half of what lies between both signs, and what a row loses of its own margin. */
export function partsOf(subjects: Subjects, base: Margins, displaced: Displaced): Parts<Float64Array> {
  const { forth, back, swapped, ablated } = displaced;
  const lost = ({ corrected }: Margins) =>
    eachOf(subjects, (place) => signOf(subjects, place) * (marginOf(base.raw, place) - marginOf(corrected, place)));
  return {
    steering: eachOf(subjects, (place) => (marginOf(forth.corrected, place) - marginOf(back.corrected, place)) / 2),
    interchange: lost(swapped),
    ablation: lost(ablated),
  };
}

type Doses = Record<keyof Displaced, Float64Array>;

function doseOf(doses: Doses, kind: keyof Displaced, place: number): number {
  return doses[kind][place] ?? missing(`dose (${kind}) of row`, place);
}

function naturalDoses(subjects: Subjects): Doses {
  const { components, swing } = subjects;
  const meanOf = (label: number) => mean(components.filter((_, place) => labelOf(subjects, place) === label));
  const middle = (meanOf(0) + meanOf(1)) / 2;
  return {
    forth: components.map(() => swing / 2),
    back: components.map(() => -swing / 2),
    swapped: components.map((own, place) => componentOf(subjects, partnerOf(subjects, place)) - own),
    ablated: components.map((own) => middle - own),
  };
}

function componentOf({ components }: Subjects, place: number): number {
  return components[place] ?? missing('component of row', place);
}

/** All kinds of all rows, for so many directions. */
function measureKinds(
  meter: Meter,
  { labels }: Subjects,
  directions: number,
  variantOf: (kind: keyof Displaced, place: number, direction: number) => Variant,
): Promise<Margins> {
  const [count, each] = [labels.length, labels.length * KINDS.length];
  return meter.measure(directions * each, (index) => {
    const number = Math.floor((index % each) / count);
    const kind = KINDS[number] ?? missing('kind of displacement', number);
    return variantOf(kind, index % count, Math.floor(index / each));
  });
}

function displacedOf(margins: Margins, { labels }: Subjects, direction: number): Displaced {
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
