/** Fits subspaces on interchange to rows of the discovery half, at any site: a few rows, whose unmodified runs all sites share. */

import { pick } from '../core/missing.ts';
import { createRandom } from '../statistics/random.ts';
import { classesOf, labelsOf } from './dataset.ts';
import type { Labelled } from './decodability.ts';
import type { Evidence } from './evidence.ts';
import { chooseFewRows } from './few-rows.ts';
import { type FittedSubspace, fitInterchange } from './interchange-fit.ts';
import { createMarginReader } from './logit-margins.ts';
import type { CausalQuestion, DatasetRow } from './question.ts';
import type { ProtocolRun, Site } from './readings.ts';

/** Rows of the discovery half that a subspace is fitted on, at most. */
const ROWS = 48;
/** Runs of the model that one fit takes, about. */
const RUNS = 6000;

type Wanted = CausalQuestion['direction'];

/** Nothing for a question that has nothing fitted on interchange. */
export type FitAt = (wanted: Wanted, site: Site, data: Labelled) => Promise<FittedSubspace | undefined>;

interface Discovery extends Pick<Evidence, 'target' | 'controls'> {
  dataset: readonly DatasetRow[];
  seed: number;
  /** Of all rows. */
  prompts: readonly number[][];
  discovery: readonly number[];
}

/** Runs of the model that are to be expected of fits at one site. */
export function fitRuns(wanted: readonly Wanted[]): number {
  return RUNS * wanted.filter(isFittedOnInterchange).length;
}

/** `wanted` are all that will be asked for: without any that is fitted, no run is made. */
export async function prepareFits(run: ProtocolRun, wanted: readonly Wanted[], found: Discovery): Promise<FitAt> {
  const { dataset, seed, prompts, discovery, target, controls } = found;
  if (!wanted.some(isFittedOnInterchange)) return async () => undefined;
  const few = chooseFewRows(dataset, discovery, ROWS, createRandom(seed, 'rows to fit on interchange'));
  const rows = pick(discovery, few.indices, 'row of the discovery half');
  const reader = await createMarginReader(run, pick(prompts, rows, 'prompt'), target, controls);
  const classes = classesOf(dataset);
  return async (one, site, { activations, width }) => {
    if (one.kind !== 'fit' || one.method !== 'interchange') return undefined;
    const sample = {
      site,
      seed,
      width,
      classes,
      labels: labelsOf(dataset, rows),
      clusters: [],
      partners: few.partners,
      activations: rows.map((row) => activations.subarray(row * width, (row + 1) * width)),
    };
    return fitInterchange(reader, sample, one.rank ?? classes - 1);
  };
}

function isFittedOnInterchange(wanted: Wanted): boolean {
  return wanted.kind === 'fit' && wanted.method === 'interchange';
}
