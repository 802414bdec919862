/**
 * Measures the margins of all rows when their part in a subspace is displaced by what is natural there: to the mean of either class, to the partner's
 * place, to the middle between the classes. Random subspaces, each with what is natural in itself, give the null distribution.
 */

import { missing } from '../core/missing.ts';
import {
  activationOf,
  balancedMean,
  eachOf,
  type InterventionSample,
  labelOf,
  partnerOf,
  type SampleRows,
  signOf,
} from './intervention-sample.ts';
import type { MarginReader, Margins } from './logit-margins.ts';
import { marginOf, partOfMargins } from './logit-margins.ts';
import { coordinatesIn, type Subspace, vectorIn } from './subspace.ts';
import { addAt } from './variants.ts';

/**
 * To the mean of class 1 and of class 0 (steering, both from the middle between them), to the partner's place (interchange), to the middle (ablation);
 * and as far again beyond the mean of the row's own class, where a read-out that is at its ceiling moves no more.
 */
export type DisplacementKind = 'forth' | 'back' | 'swapped' | 'ablated' | 'beyond';

/** What the three effects are measured by. */
export const EFFECT_KINDS = ['forth', 'back', 'swapped', 'ablated'] as const;

/** Variants of random directions that are run together. */
const AT_ONCE = 4096;

/** The contribution of each row, or of each random direction, to the three effects, in logits. */
export interface Parts<Numbers> {
  steering: Numbers;
  interchange: Numbers;
  ablation: Numbers;
}

/** The margins of all rows under each intervention. */
export type Displaced<Kind extends DisplacementKind = (typeof EFFECT_KINDS)[number]> = Record<Kind, Margins>;

/** How far each row is displaced in a subspace, in its coordinates. */
export function naturalDisplacements(
  sample: InterventionSample,
  subspace: Subspace,
): (kind: DisplacementKind, index: number) => Float64Array {
  const places = sample.labels.map((_, index) => coordinatesIn(subspace, activationOf(sample, index)));
  const placeOf = (index: number) => places[index] ?? missing('coordinates of row', index);
  const [low, high] = [meanOf(sample, places, 0), meanOf(sample, places, 1)];
  const coordinate = (values: Float64Array, i: number) => values[i] ?? missing('coordinate', i);
  const toward = (share: number) => low.map((value, i) => value + share * (coordinate(high, i) - value));
  const ends = { forth: toward(1), back: toward(0), ablated: toward(0.5), above: toward(1.5), below: toward(-0.5) };
  return (kind, index) => {
    const own = placeOf(index);
    const end =
      kind === 'swapped'
        ? placeOf(partnerOf(sample, index))
        : kind === 'beyond'
          ? ends[signOf(sample, index) === 1 ? 'above' : 'below']
          : ends[kind];
    return own.map((value, i) => coordinate(end, i) - value);
  };
}

/** The tested subspace. */
export async function displaceNaturally<Kind extends DisplacementKind>(
  reader: MarginReader,
  sample: InterventionSample,
  kinds: readonly Kind[],
): Promise<Displaced<Kind>> {
  const margins = await measureKinds(reader, sample, [sample.subspace], kinds);
  return displacedOf(margins, sample, kinds, 0);
}

/** The null distribution of the three effects: a number for each random subspace, in logits, and how many runs there were whose temperature cannot be told. */
export async function displaceAtRandom(
  reader: MarginReader,
  sample: InterventionSample,
  subspaces: readonly Subspace[],
): Promise<Parts<number[]> & { untold: number; runs: number }> {
  const result = {
    steering: [] as number[],
    interchange: [] as number[],
    ablation: [] as number[],
    untold: 0,
    runs: 0,
  };
  const atOnce = Math.max(1, Math.floor(AT_ONCE / (EFFECT_KINDS.length * sample.labels.length)));
  for (let done = 0; done < subspaces.length; done += atOnce) {
    const some = subspaces.slice(done, done + atOnce);
    const margins = await measureKinds(reader, sample, some, EFFECT_KINDS);
    result.runs += margins.corrected.length;
    result.untold += margins.corrected.filter(Number.isNaN).length;
    some.forEach((_, which) => {
      const parts = partsOf(sample, reader.base, displacedOf(margins, sample, EFFECT_KINDS, which));
      result.steering.push(balancedMean(sample, parts.steering));
      result.interchange.push(balancedMean(sample, parts.interchange));
      result.ablation.push(balancedMean(sample, parts.ablation));
    });
  }
  return result;
}

/** The effect of interchange, in logits, when other vectors are given the tested subspace's displacement. */
export async function displaceLikewise(
  reader: MarginReader,
  sample: InterventionSample,
  subspaces: readonly Subspace[],
): Promise<number[]> {
  const displacement = naturalDisplacements(sample, sample.subspace);
  const count = sample.labels.length;
  const margins = await reader.measure(subspaces.length * count, (index) => {
    const subspace = subspaces[Math.floor(index / count)] ?? missing('subspace of variant', index);
    return addAt(sample.site, index % count, vectorIn(subspace, displacement('swapped', index % count)));
  });
  return subspaces.map((_, which) =>
    balancedMean(sample, marginLost(sample, reader.base, partOfMargins(margins, which * count, (which + 1) * count))),
  );
}

/** Steering: half of the difference between both ends. Interchange and ablation: the margin that a row loses. */
export function partsOf(sample: InterventionSample, base: Margins, displaced: Displaced): Parts<Float64Array> {
  const { forth, back, swapped, ablated } = displaced;
  return {
    steering: eachOf(sample, (index) => (marginOf(forth.corrected, index) - marginOf(back.corrected, index)) / 2),
    interchange: marginLost(sample, base, swapped),
    ablation: marginLost(sample, base, ablated),
  };
}

/** What each row loses of its margin, in the sense of its label. */
export function marginLost(sample: SampleRows, base: Margins, { corrected }: Margins): Float64Array {
  return eachOf(sample, (index) => signOf(sample, index) * (marginOf(base.raw, index) - marginOf(corrected, index)));
}

/** The class's mean coordinates. */
function meanOf(sample: InterventionSample, places: readonly Float64Array[], label: 0 | 1): Float64Array {
  const own = places.filter((_, index) => labelOf(sample, index) === label);
  const [first = missing('row with label', label)] = own;
  return first.map(
    (_, i) => own.reduce((total, place) => total + (place[i] ?? missing('coordinate', i)), 0) / own.length,
  );
}

/** Runs every intervention on every row, for each subspace. */
function measureKinds(
  reader: MarginReader,
  sample: InterventionSample,
  subspaces: readonly Subspace[],
  kinds: readonly DisplacementKind[],
): Promise<Margins> {
  const [count, each] = [sample.labels.length, sample.labels.length * kinds.length];
  const displacements = subspaces.map((subspace) => naturalDisplacements(sample, subspace));
  return reader.measure(subspaces.length * each, (index) => {
    const which = Math.floor(index / each);
    const subspace = subspaces[which] ?? missing('subspace', which);
    const displacement = displacements[which] ?? missing('displacement in subspace', which);
    const number = Math.floor((index % each) / count);
    const kind = kinds[number] ?? missing('kind of displacement', number);
    const row = index % count;
    return addAt(sample.site, row, vectorIn(subspace, displacement(kind, row)));
  });
}

function displacedOf<Kind extends DisplacementKind>(
  margins: Margins,
  { labels }: InterventionSample,
  kinds: readonly Kind[],
  which: number,
): Displaced<Kind> {
  const count = labels.length;
  const parts = kinds.map((kind, number) => {
    const from = (which * kinds.length + number) * count;
    return [kind, partOfMargins(margins, from, from + count)] as const;
  });
  return Object.fromEntries(parts) as Displaced<Kind>;
}
