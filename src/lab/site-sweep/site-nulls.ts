/**
 * Tests the cells of a sweep against random directions, with what is natural along each of them at the cell's own site. Directions at one site share
 * them; each site draws its own, by its name, so that no other site beside it changes its numbers. Random directions run on a few rows: that
 * only makes what they do vary more, and so never favours the tested direction.
 */

import { contrastLost, naturalDisplacements } from '../causality/displacements.ts';
import { stateOf } from '../causality/effect-states.ts';
import { naturalMargins } from '../causality/effects.ts';
import { chooseFewRows, type FewRows } from '../causality/few-rows.ts';
import { balancedMean, type InterventionSample, referenceEffect } from '../causality/intervention-sample.ts';
import { countUntold, type MarginReader, type Margins, partOfMargins } from '../causality/logit-margins.ts';
import type { DatasetRow } from '../causality/question.ts';
import { ROUNDING } from '../causality/random-directions.ts';
import { portions } from '../causality/readings.ts';
import { randomSubspace, vectorIn } from '../causality/subspace.ts';
import { SIGNIFICANCE } from '../causality/thresholds.ts';
import { addAt } from '../causality/variants.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import { missing, pick } from '../core/missing.ts';
import { holm } from '../statistics/holm.ts';
import { type Exceedance, exceedance } from '../statistics/null-tail.ts';
import { createRandom, type Random } from '../statistics/random.ts';
import type { SweepCell } from './sweep-record.ts';

/** Random directions of a site to begin with, and at most. */
export const FIRST_NULLS = 99;
const MOST = 799;
/** Rows that random directions are run on. */
const ROWS = 16;
/** Numbers of random directions that are held at a time. */
const NUMBERS = 1 << 24;

/** A cell before it is tested. */
export interface ScreenedCell {
  cell: Omit<SweepCell, 'test'>;
  sample: InterventionSample;
  /** What a share of 1 is, in logits. */
  whole: number;
}

interface SiteNull {
  cells: ScreenedCell[];
  /** The few rows, at this site. */
  sample: InterventionSample;
  base: Margins;
  whole: number;
  random: Random;
  shares: number[];
  untold: number;
}

type RawTest = Omit<NonNullable<SweepCell['test']>, 'adjusted'>;

/** Indices are among the rows that are intervened on. */
export function chooseNullRows(dataset: readonly DatasetRow[], intervened: readonly number[], seed: number): FewRows {
  return chooseFewRows(dataset, intervened, ROWS, createRandom(seed, 'rows for random directions'));
}

/** In the order of the cells. `tests` are all cells that the level is shared by. */
export async function testCells(
  reader: MarginReader,
  cells: readonly ScreenedCell[],
  few: FewRows,
  { level, tests }: { level: number; tests: number },
): Promise<RawTest[]> {
  const sites = [...bySite(cells).values()].map((own) => createNull(reader, own, few));
  let [open, wanted] = [sites, FIRST_NULLS];
  while (open.length > 0) {
    await drawNulls(reader, open, few, wanted);
    open = open.filter((site) => site.cells.some((cell) => !testOf(cell, site, level / tests).stable));
    if (wanted >= MOST) break;
    wanted = Math.min(MOST, 2 * wanted + 1);
  }
  const found = new Map(
    sites.flatMap((site) => site.cells.map((cell) => [cell, testOf(cell, site, level / tests)] as const)),
  );
  return cells.map((cell, index) => found.get(cell) ?? missing('test of cell', index));
}

/** One answer for the map: its level is shared by the cells that were tested, by Holm's method. */
export function adjustOverMap(tests: readonly RawTest[], level: number): NonNullable<SweepCell['test']>[] {
  const adjusted = holm(tests.map(({ p }) => p));
  return tests.map((test, index) => ({
    ...test,
    adjusted: Math.min(1, (SIGNIFICANCE / level) * (adjusted[index] ?? missing('adjusted p of cell', index))),
  }));
}

function bySite(cells: readonly ScreenedCell[]): Map<string, ScreenedCell[]> {
  const sites = new Map<string, ScreenedCell[]>();
  for (const one of cells) {
    const key = siteKey(one.cell);
    sites.set(key, [...(sites.get(key) ?? []), one]);
  }
  return sites;
}

/** Random subspaces have as many dimensions as what is tested. */
function siteKey({ site, rank }: Pick<SweepCell, 'site' | 'rank'>): string {
  return `${formatHookPoint(site)} at ${site.position}, rank ${rank}`;
}

function createNull({ base }: MarginReader, cells: ScreenedCell[], { indices, partners }: FewRows): SiteNull {
  const [{ sample: all, cell } = missing('cell of site')] = cells;
  const sample: InterventionSample = {
    ...all,
    labels: pick(all.labels, indices, 'label of row'),
    activations: pick(all.activations, indices, 'activation of row'),
    clusters: [],
    partners,
  };
  const ownBase = rowsOfMargins(base, indices);
  const { between } = naturalMargins(ownBase, sample);
  return {
    cells,
    sample,
    base: ownBase,
    whole: referenceEffect(balancedMean(sample, between.margins), between.sign, between.least),
    random: createRandom(all.seed, `random directions at ${siteKey(cell)}`),
    shares: [],
    untold: 0,
  };
}

/** Many sites in one request. */
async function drawNulls(
  reader: MarginReader,
  sites: readonly SiteNull[],
  { indices }: FewRows,
  wanted: number,
): Promise<void> {
  const count = indices.length;
  const [{ sample } = missing('site')] = sites;
  const draws = wanted - (sites[0]?.shares.length ?? missing('site'));
  const atOnce = Math.max(1, Math.floor(NUMBERS / (draws * sample.width)));
  for (const [from, to] of portions(sites.length, atOnce)) {
    const drawn = sites.slice(from, to).flatMap((site) =>
      Array.from({ length: draws }, () => {
        const subspace = randomSubspace(sample.width, site.sample.subspace.vectors.length, site.random);
        return { site, subspace, displacement: naturalDisplacements(site.sample, subspace) };
      }),
    );
    const margins = await reader.measure(drawn.length * count, (index) => {
      const one = drawn[Math.floor(index / count)] ?? missing('random direction of variant', index);
      const row = index % count;
      const prompt = indices[row] ?? missing('prompt of row', row);
      return addAt(one.site.sample.site, prompt, vectorIn(one.subspace, one.displacement('swapped', row)));
    });
    drawn.forEach(({ site }, which) => {
      const own = partOfMargins(margins, which * count, (which + 1) * count);
      site.untold += countUntold(own) / count;
      site.shares.push(balancedMean(site.sample, contrastLost(site.sample, site.base, own)) / site.whole);
    });
  }
}

/** Stable: the state is the same with either bound of how often random directions do as much, at a level that Holm's method never goes below. */
function testOf({ cell, whole }: ScreenedCell, { shares, untold }: SiteNull, level: number): RawTest {
  const own = exceedance(cell.component.value, shares, ROUNDING / Math.abs(whole));
  const state = (bound: (one: Exceedance) => number) =>
    stateOf({
      interval: cell.component.interval,
      adjusted: Math.min(1, (SIGNIFICANCE / level) * bound(own)),
    });
  return {
    p: own.p,
    nulls: shares.length,
    untold: untold / shares.length,
    stable: state(({ low }) => low) === state(({ high }) => high),
  };
}

function rowsOfMargins(margins: Margins, indices: readonly number[]): Margins {
  const take = (values: Float64Array) => Float64Array.from(pick(values, indices, 'margin of row'));
  return { classes: margins.classes.map(take), control: take(margins.control), scale: take(margins.scale) };
}
