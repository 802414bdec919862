/**
 * Fits a subspace on interchange, as distributed alignment search does (Geiger et al. 2023): the one whose component, taken from the counterfactual, changes
 * the contrast between both classes most nearly as the counterfactual itself has it. It takes nothing but runs of the model, so that it works in every engine:
 * gradients are finite differences along a few axes, of many rows in one request.
 */

import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import { type Columns, projectOn, tangentAt, turned } from '../statistics/grassmann.ts';
import { mean } from '../statistics/summary.ts';
import { symmetricEigen } from '../statistics/symmetric-eigen.ts';
import { addScaled, dot, norm } from '../statistics/vectors.ts';
import { contrastLost } from './displacements.ts';
import { naturalMargins } from './effects.ts';
import type { Evidence } from './evidence.ts';
import {
  activationOf,
  balancedMean,
  type InterventionSample,
  partnerOf,
  referenceEffect,
} from './intervention-sample.ts';
import { type MarginReader, partOfMargins } from './logit-margins.ts';
import { searchAxes } from './search-space.ts';
import { coordinatesIn, type Subspace, vectorIn } from './subspace.ts';
import { addAt } from './variants.ts';

const MOST_AXES = 16;
const MOST_STEPS = 8;
/** Angles that the subspace is turned by along the gradient, all tried at once. */
const ANGLES = [0.02, 0.06, 0.15, 0.35, 0.7, 1.2];
/** A step that recovers less than this more of the squared contrasts is the last. */
const LEAST_GAIN = 0.002;
/** Of the mean variance of an axis: gradients are shrunk where natural differences vary less than this, more or less of it. */
const RIDGES = [0, 0.03, 0.3];
/** Finite differences go so far, in units of the usual natural difference along the axis. */
const REACH = 0.5;

type DiscoverySample = Omit<InterventionSample, 'subspace'>;

export interface FittedSubspace {
  subspace: Subspace;
  search: NonNullable<Evidence['direction']['search']>;
}

/** A subspace of the searched axes, with what its interchange does to each row. */
interface Candidate {
  columns: Columns;
  lost: Float64Array;
  /** The share of the squared contrasts that is recovered; what it overshoots counts against it, too. */
  score: number;
  /** How far the swap lies from natural differences, in units of them. */
  strangeness: number;
}

/** `sample` and `reader` are of the discovery half alone. */
export async function fitInterchange(
  reader: MarginReader,
  sample: DiscoverySample,
  rank: number,
): Promise<FittedSubspace> {
  const differences = sample.activations.map((own, index) => {
    const partner = activationOf(sample, partnerOf(sample, index));
    return own.map((value, axis) => (partner[axis] ?? missing('number', axis)) - value);
  });
  const axes = searchAxes(sample, differences, MOST_AXES);
  checkRank(rank, axes.length, sample.labels.length);
  const span: Subspace = { vectors: axes, width: sample.width };
  const search = createSearch(reader, sample, span, differences);

  let best = await search.start(rank);
  let steps = 0;
  while (steps < MOST_STEPS) {
    const next = await search.improve(best);
    steps++;
    const gain = next.score - best.score;
    best = next;
    if (!(gain > LEAST_GAIN)) break;
  }
  return {
    subspace: { vectors: best.columns.map((column) => vectorIn(span, column)), width: sample.width },
    search: {
      axes: axes.length,
      rows: sample.labels.length,
      steps,
      runs: search.runs(),
      recovered: search.recoveredBy(best),
    },
  };
}

function checkRank(rank: number, axes: number, rows: number): void {
  if (rank <= axes) return;
  throw new CuvetteError(
    'invalid_input',
    `A subspace of rank ${rank} cannot be fitted: the ${rows} rows that it is searched on differ along ${axes} axes that can be told. Ask for rank ${axes} at most.`,
  );
}

function createSearch(
  reader: MarginReader,
  sample: DiscoverySample,
  span: Subspace,
  differences: readonly Float32Array[],
) {
  const count = sample.labels.length;
  const size = span.vectors.length;
  const natural = naturalMargins(reader.base, sample).between;
  /** The whole swap of each row, as far as the axes have it. */
  const swaps = differences.map((difference) => coordinatesIn(span, difference));
  const variances = Float64Array.from(
    { length: size },
    (_, axis) => swaps.reduce((sum, swap) => sum + numberAt(swap, axis) ** 2, 0) / count,
  );
  const reach = Array.from(variances, (variance) => REACH * Math.sqrt(variance));
  /** The gradients of all rows so far, squared: what is read lies along them. */
  const seen = new Float64Array(size * size);
  let runs = 0;

  /** What each row loses of its contrast, for every list of displacements. */
  async function lostBy(displacements: readonly (readonly Float64Array[])[]): Promise<Float64Array[]> {
    runs += displacements.length * count;
    const margins = await reader.measure(displacements.length * count, (index) => {
      const row = index % count;
      const place = displacements[Math.floor(index / count)]?.[row] ?? missing('displacement of row', row);
      return addAt(sample.site, row, vectorIn(span, place));
    });
    return displacements.map((_, which) =>
      contrastLost(sample, reader.base, partOfMargins(margins, which * count, (which + 1) * count)),
    );
  }

  /** One list for each axis: every row a little further along it. */
  function around(places: readonly Float64Array[]): Float64Array[][] {
    return reach.map((far, axis) => places.map((place) => place.map((value, i) => (i === axis ? value + far : value))));
  }

  /** The gradient of what each row loses, from finite differences. Where a run cannot be told it is 0, which moves nothing. */
  function gradientsOf(here: Float64Array, further: readonly Float64Array[]): Float64Array[] {
    const gradients = Array.from({ length: count }, (_, row) =>
      Float64Array.from(further, (lost, axis) => {
        const slope = (numberAt(lost, row) - numberAt(here, row)) / (reach[axis] ?? missing('axis', axis));
        return Number.isFinite(slope) ? slope : 0;
      }),
    );
    for (const gradient of gradients) {
      gradient.forEach((value, i) => {
        for (let j = 0; j < size; j++)
          seen[i * size + j] = numberAt(seen, i * size + j) + value * numberAt(gradient, j);
      });
    }
    return gradients;
  }

  /** The subspaces that gradients vary most in: as they are, and with less of what hardly differs by nature. */
  function alongGradients(rank: number): Float64Array[][] {
    return RIDGES.map((ridge) => {
      const shrink = variances.map((variance) => variance / (variance + ridge * mean(variances)));
      const shrunk = seen.map(
        (value, cell) => value * numberAt(shrink, Math.floor(cell / size)) * numberAt(shrink, cell % size),
      );
      return symmetricEigen(shrunk, size)
        .slice(0, rank)
        .map(({ vector }) => vector);
    });
  }

  const swapped = (columns: Columns) => swaps.map((swap) => projectOn(columns, swap));

  /** Also held against one that was measured before, if there is. */
  async function bestOf(candidates: readonly Columns[], known: readonly Candidate[] = []): Promise<Candidate> {
    const lost = await lostBy(candidates.map(swapped));
    const scored = candidates.map((columns, which) => {
      const own = lost[which] ?? missing('candidate', which);
      const score = scoreOf(own, natural.margins);
      return { columns, lost: own, score, strangeness: strangenessOf(swapped(columns), variances) };
    });
    const all = [...known, ...scored];
    const most = Math.max(...all.map(({ score }) => score));
    // What recovers as much with less that is strange to the data is what the model is likelier to use.
    const equal = all.filter(({ score }) => score >= most - LEAST_GAIN);
    return equal.reduce((best, one) => (one.strangeness < best.strangeness ? one : best));
  }

  return {
    runs: () => runs,

    /** From the class means, or from where gradients lie without the swap and with all of it. */
    async start(rank: number): Promise<Candidate> {
      const nowhere = swaps.map((swap) => new Float64Array(swap.length));
      const [whole = missing('whole swap'), ...further] = await lostBy([swaps, ...around(nowhere), ...around(swaps)]);
      gradientsOf(new Float64Array(count), further.slice(0, size));
      gradientsOf(whole, further.slice(size));
      const first = Array.from({ length: rank }, (_, column) =>
        Float64Array.from({ length: size }, (__, axis) => (axis === column ? 1 : 0)),
      );
      return bestOf([first, ...alongGradients(rank)]);
    },

    /** Itself, where no turn of it recovers more. */
    async improve(candidate: Candidate): Promise<Candidate> {
      const { columns, lost } = candidate;
      const gradients = gradientsOf(lost, await lostBy(around(swapped(columns))));
      const ascent = columns.map((column) => {
        const sum = new Float64Array(size);
        gradients.forEach((gradient, row) => {
          const left = numberAt(natural.margins, row) - numberAt(lost, row);
          if (Number.isNaN(left)) return;
          const swap = swaps[row] ?? missing('swap of row', row);
          addScaled(sum, gradient, 0, left * dot(swap, column));
          addScaled(sum, swap, 0, left * dot(gradient, column));
        });
        return sum;
      });
      const tangent = tangentAt(columns, ascent);
      const turns = Math.hypot(...tangent.map(norm)) > 0 ? ANGLES.map((angle) => turned(columns, tangent, angle)) : [];
      return bestOf([...turns, ...alongGradients(columns.length)], [candidate]);
    },

    /** As a share of the behaviour, both classes with equal weight. */
    recoveredBy({ lost }: Candidate): number {
      const whole = referenceEffect(balancedMean(sample, natural.margins), natural.sign, natural.least);
      return balancedMean(sample, lost) / whole;
    },
  };
}

/** The mean square of displacements, along each axis in units of how natural differences vary there. */
function strangenessOf(displacements: readonly Float64Array[], variances: Float64Array): number {
  const squares = displacements.map((one) =>
    one.reduce((sum, value, i) => sum + value ** 2 / numberAt(variances, i), 0),
  );
  return mean(squares);
}

/** Rows that cannot be told count as not recovered. */
function scoreOf(lost: Float64Array, wanted: Float64Array): number {
  let [left, whole] = [0, 0];
  wanted.forEach((contrast, row) => {
    const own = numberAt(lost, row);
    left += (contrast - (Number.isNaN(own) ? 0 : own)) ** 2;
    whole += contrast ** 2;
  });
  return whole === 0 ? 0 : 1 - left / whole;
}

function numberAt(values: Float64Array, i: number): number {
  return values[i] ?? missing('number', i);
}
