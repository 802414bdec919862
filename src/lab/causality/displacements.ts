/**
 * Measures the margins of all rows when their part in a subspace is displaced by what is natural there: to the mean of either class, to the partner's
 * place, to the middle between the classes. Random subspaces, each with what is natural in itself, give the null distribution.
 */

import { missing } from '../core/missing.ts';
import { fromLast } from './classes.ts';
import {
  activationOf,
  balancedMean,
  eachOf,
  type InterventionSample,
  labelOf,
  partnerOf,
  partnersLabel,
  type SampleRows,
} from './intervention-sample.ts';
import { contrastOf, countUntold, type MarginReader, type Margins, marginOf, partOfMargins } from './logit-margins.ts';
import { coordinatesIn, type Subspace, vectorIn } from './subspace.ts';
import { addAt } from './variants.ts';

/**
 * To the mean of a class, by its number (steering, from the middle of all class means), to the partner's place (interchange), to the middle (ablation);
 * and as far again beyond the mean of the row's own class, where a read-out that is at its ceiling moves no more.
 */
export type DisplacementKind = number | 'swapped' | 'ablated' | 'beyond';

/** What the three effects are measured by. */
export function effectKinds({ classes }: Pick<SampleRows, 'classes'>): DisplacementKind[] {
  return [...fromLast(classes), 'swapped', 'ablated'];
}

/** Variants of random directions that are run together. */
const AT_ONCE = 4096;

/** The contribution of each row, or of each random direction, to the three effects, in logits. */
export interface Parts<Numbers> {
  steering: Numbers;
  interchange: Numbers;
  ablation: Numbers;
}

/** The margins of all rows under each intervention. */
export type Displaced = (kind: DisplacementKind) => Margins;

/** How far each row is displaced in a subspace, in its coordinates. */
export function naturalDisplacements(
  sample: InterventionSample,
  subspace: Subspace,
): (kind: DisplacementKind, index: number) => Float64Array {
  const places = sample.labels.map((_, index) => coordinatesIn(subspace, activationOf(sample, index)));
  const placeOf = (index: number) => places[index] ?? missing('coordinates of row', index);
  const { middle, means, beyond } = endsOf(
    Array.from({ length: sample.classes }, (_, label) => meanOf(sample, places, label)),
  );
  const endOf = (kind: DisplacementKind, index: number) => {
    if (kind === 'swapped') return placeOf(partnerOf(sample, index));
    if (kind === 'ablated') return middle;
    const label = kind === 'beyond' ? labelOf(sample, index) : kind;
    return (kind === 'beyond' ? beyond : means)[label] ?? missing('mean of class', label);
  };
  return (kind, index) => {
    const end = endOf(kind, index);
    return placeOf(index).map((value, i) => coordinate(end, i) - value);
  };
}

/** The middle of the class means, each of them, and as far again beyond each. */
function endsOf(classMeans: readonly Float64Array[]) {
  const [first = missing('class'), ...others] = classMeans;
  const classes = classMeans.length;
  // Each place is the first mean and so much of the way from there to each of the others, by class.
  const placeAt = (shareOf: (label: number) => number) =>
    first.map((value, i) =>
      others.reduce((sum, mean, index) => sum + shareOf(index + 1) * (coordinate(mean, i) - value), value),
    );
  return {
    middle: placeAt(() => 1 / classes),
    means: classMeans.map((_, own) => placeAt((label) => (label === own ? 1 : 0))),
    beyond: classMeans.map((_, own) => placeAt((label) => (label === own ? 2 : 0) - 1 / classes)),
  };
}

function coordinate(values: Float64Array, i: number): number {
  return values[i] ?? missing('coordinate', i);
}

/** The tested subspace. */
export async function displaceNaturally(
  reader: MarginReader,
  sample: InterventionSample,
  kinds: readonly DisplacementKind[],
): Promise<Displaced> {
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
  const kinds = effectKinds(sample);
  const atOnce = Math.max(1, Math.floor(AT_ONCE / (kinds.length * sample.labels.length)));
  for (let done = 0; done < subspaces.length; done += atOnce) {
    const some = subspaces.slice(done, done + atOnce);
    const margins = await measureKinds(reader, sample, some, kinds);
    result.runs += margins.scale.length;
    result.untold += countUntold(margins);
    some.forEach((_, which) => {
      const parts = partsOf(sample, reader.base, displacedOf(margins, sample, kinds, which));
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
    balancedMean(sample, contrastLost(sample, reader.base, partOfMargins(margins, which * count, (which + 1) * count))),
  );
}

/** Steering: the margin of each class at its own mean. Interchange: what a row loses against its partner's class. Ablation: what it loses of its margin. */
export function partsOf(sample: InterventionSample, base: Margins, displaced: Displaced): Parts<Float64Array> {
  const ablated = displaced('ablated');
  return {
    steering: steeredMargins(sample, displaced),
    interchange: contrastLost(sample, base, displaced('swapped')),
    ablation: eachOf(sample, (index) => {
      const own = labelOf(sample, index);
      return marginOf(base, index, own) - marginOf(ablated, index, own);
    }),
  };
}

/** Of each row, the mean over classes of the class's margin when the row is moved to its mean: for two classes, half of the difference between both ends. */
export function steeredMargins(sample: SampleRows, displaced: Displaced): Float64Array {
  const ends = Array.from({ length: sample.classes }, (_, label) => displaced(label));
  return eachOf(
    sample,
    (index) => ends.reduce((total, end, label) => total + marginOf(end, index, label), 0) / sample.classes,
  );
}

/** What each row loses of the contrast between its own class and its partner's. */
export function contrastLost(sample: SampleRows, base: Margins, changed: Margins): Float64Array {
  return eachOf(sample, (index) => {
    const [own, other] = [labelOf(sample, index), partnersLabel(sample, index)];
    return contrastOf(base, index, own, other) - contrastOf(changed, index, own, other);
  });
}

/** The class's mean coordinates. */
function meanOf(sample: InterventionSample, places: readonly Float64Array[], label: number): Float64Array {
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

function displacedOf(
  margins: Margins,
  { labels }: InterventionSample,
  kinds: readonly DisplacementKind[],
  which: number,
): Displaced {
  const count = labels.length;
  const parts = new Map(
    kinds.map((kind, number) => {
      const from = (which * kinds.length + number) * count;
      return [kind, partOfMargins(margins, from, from + count)] as const;
    }),
  );
  return (kind) => parts.get(kind) ?? missing('displacement', kind);
}
