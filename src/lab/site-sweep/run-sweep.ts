/**
 * Runs a sweep, which screens many sites and directions at once: how well each direction can be read at each site, what swapping its component between
 * counterfactuals moves, and what swapping the whole activation does. Sites share the unmodified runs, the target and the split; their variants run together.
 */

import { CuvetteError } from '../../errors.ts';
import { isExpressed } from '../causality/conditions.ts';
import { chooseControls } from '../causality/controls.ts';
import { checkDataset, classesOf, clustersOf, labelsOf } from '../causality/dataset.ts';
import { facingLabels, type Labelled, measureDecodability } from '../causality/decodability.ts';
import { type FitAt, fitRuns, prepareFits } from '../causality/discovery-fit.ts';
import { contrastLost } from '../causality/displacements.ts';
import { isEquivalent } from '../causality/effect-states.ts';
import { describeBehaviour, naturalMargins, shareIn } from '../causality/effects.ts';
import type { InterventionSample, SampleRows } from '../causality/intervention-sample.ts';
import {
  countUntold,
  createMarginReader,
  type MarginReader,
  partOfMargins,
  uncorrected,
} from '../causality/logit-margins.ts';
import { choosePartners } from '../causality/partners.ts';
import { middleLogits, modelOf, type ProtocolContext, summaryOf } from '../causality/protocol.ts';
import { meanLogits, type ProtocolRun, type Site } from '../causality/readings.ts';
import { splitRows } from '../causality/split.ts';
import { componentSwaps, swapAll } from '../causality/swaps.ts';
import { chooseTarget } from '../causality/target.ts';
import { hasSeveral, type TestedPart, testedPart } from '../causality/tested-part.ts';
import type { Engine, Variant } from '../core/engine.ts';
import { formatHookPoint } from '../core/hook-points.ts';
import { missing, pick } from '../core/missing.ts';
import { resolvePositions } from '../core/positions.ts';
import { ERROR_RATE, levelOfQuestion, spentUpTo } from '../statistics/alpha-spending.ts';
import { createRandom } from '../statistics/random.ts';
import { readSites, siteGroups } from './read-sites.ts';
import { adjustOverMap, chooseNullRows, FIRST_NULLS, type ScreenedCell, testCells } from './site-nulls.ts';
import type { SweepEvidence, SweepQuestion } from './sweep-record.ts';

export async function runSweep(
  engine: Engine,
  question: SweepQuestion,
  context: ProtocolContext,
): Promise<SweepEvidence> {
  checkSweep(engine, question);
  const { dataset, sites, directions, seed } = question;
  const { width } = engine.describe();
  const split = splitRows({ ...question, direction: whatSplits(question) }, createRandom(seed, 'split'));
  const few = chooseNullRows(dataset, split.intervened, seed);
  const run = countingRun(engine, context, question, split, few.indices.length);
  const prompts = await tokenizeFor(run, question);

  const looked = split.discovery.length > 0 ? split.discovery : split.test;
  const classes = classesOf(dataset);
  const logits = await meanLogits(run, pick(prompts, looked, 'prompt'), labelsOf(dataset, looked), classes);
  const target = await chooseTarget(engine, question, logits);
  const controls = await chooseControls(engine, question, target, middleLogits(logits));
  const reader = await createMarginReader(run, pick(prompts, split.intervened, 'prompt'), target, controls);

  const rows: SampleRows = {
    seed,
    width,
    labels: labelsOf(dataset, split.intervened),
    classes,
    clusters: clustersOf(dataset, split.intervened),
    partners: choosePartners(dataset, split.intervened, createRandom(seed, 'partners')).partners,
  };
  const { own } = naturalMargins(reader.base, rows);
  const { gap, interval, expressed } = describeBehaviour(reader.base, rows, own.margins);
  const level = levelOfQuestion(context.family);
  const isTested = ({ cell }: ScreenedCell) => isExpressed({ interval }) && !isEquivalent(cell.whole.interval);

  const wanted = directions.map(({ direction }) => direction);
  const discovered = { dataset, seed, prompts, discovery: split.discovery, target, controls };
  const fitAt = await prepareFits(run, wanted, discovered);
  const found: { cell: ScreenedCell['cell']; test?: Awaited<ReturnType<typeof testCells>>[number] }[] = [];
  for (const group of siteGroups(sites, dataset.length * width)) {
    const activations = await readSites(run, prompts, group);
    const screened = await screenSites({ question, split, reader, rows, fitAt, sites: group, activations });
    const open = screened.filter(isTested);
    const tests = await testCells(reader, open, few, { level, tests: sites.length * directions.length });
    const byCell = new Map(open.map(({ cell }, index) => [cell, tests[index] ?? missing('test of cell', index)]));
    for (const { cell } of screened) {
      const test = byCell.get(cell);
      found.push({ cell, ...(test && { test }) });
    }
  }
  const adjusted = adjustOverMap(
    found.flatMap(({ test }) => (test ? [test] : [])),
    level,
  );
  let next = 0;
  return {
    format: 1,
    version: context.version,
    seed,
    model: modelOf(engine),
    data: summaryOf(question),
    split,
    target,
    controls,
    behaviour: { gap, interval, expressed },
    cells: found.map(({ cell, test }) => ({
      ...cell,
      ...(test && { test: adjusted[next++] ?? missing('adjusted test of cell') }),
    })),
    multiplicity: {
      question: context.family,
      rate: ERROR_RATE,
      level,
      spent: spentUpTo(context.family),
      tests: adjusted.length,
      rows: few.indices.length,
    },
    runs: run.done(),
  };
}

interface Screening {
  question: SweepQuestion;
  split: SweepEvidence['split'];
  reader: MarginReader;
  rows: SampleRows;
  fitAt: FitAt;
  sites: readonly Site[];
  /** Of all rows of the dataset, for each site. */
  activations: readonly Float32Array[];
}

/** Every cell but for the test against random directions; all swaps at all sites in one go. */
async function screenSites(screening: Screening): Promise<ScreenedCell[]> {
  const { question, split, reader, rows, fitAt, sites, activations } = screening;
  const { dataset, seed, directions } = question;
  const { width } = rows;
  const samples: ReturnType<typeof cellBefore>[][] = [];
  for (const [which, site] of sites.entries()) {
    const data: Labelled = {
      dataset,
      activations: activations[which] ?? missing('activations at site', which),
      width,
      seed,
    };
    const own = split.intervened.map((row) => data.activations.subarray(row * width, (row + 1) * width));
    const cells: ReturnType<typeof cellBefore>[] = [];
    for (const { name, direction: wanted } of directions) {
      const fitted = await fitAt(wanted, site, data);
      const part = testedPart(wanted, data, split, fitted?.subspace);
      cells.push(cellBefore(name, wanted, part, data, split, { ...rows, site, activations: own }));
    }
    samples.push(cells);
  }

  const count = rows.labels.length;
  const swaps = samples.flatMap((cells): ((row: number) => Variant)[] => {
    const [{ sample } = missing('direction')] = cells;
    return [(row) => swapAll(sample, row), ...cells.map((cell) => componentSwaps(cell.sample).component)];
  });
  const margins = await reader.measure(swaps.length * count, (index) => {
    const swap = swaps[Math.floor(index / count)] ?? missing('swap of variant', index);
    return swap(index % count);
  });
  const { between } = naturalMargins(reader.base, rows);
  const marginsOf = (swap: number) => partOfMargins(margins, swap * count, (swap + 1) * count);

  return samples.flatMap((cells, which) => {
    const first = which * (1 + directions.length);
    const all = marginsOf(first);
    // Without the correction for temperature, as a change of temperature is an effect of the site, too.
    const moved = shareIn(rows, 'the whole activation', contrastLost(rows, reader.base, uncorrected(all)), between);
    return cells.map(({ name, decodability, sample }, i): ScreenedCell => {
      const swapped = marginsOf(first + 1 + i);
      const { value, interval, whole } = shareIn(
        rows,
        'interchange',
        contrastLost(rows, reader.base, swapped),
        between,
      );
      return {
        cell: {
          site: sample.site,
          direction: name,
          rank: sample.subspace.vectors.length,
          decodability,
          whole: { value: moved.value, interval: moved.interval },
          component: { value, interval, untold: countUntold(swapped) / count },
        },
        sample,
        whole,
      };
    });
  });
}

/** What can be told of a cell without runs of the model. */
function cellBefore(
  name: string,
  wanted: SweepQuestion['directions'][number]['direction'],
  part: TestedPart,
  data: Labelled,
  split: SweepEvidence['split'],
  rows: Omit<InterventionSample, 'subspace'>,
) {
  const isFacing = wanted.kind === 'fit' || part.lines !== undefined;
  const direction = isFacing ? part.direction : facingLabels(data, split.test, part.direction);
  const { auroc, interval, permutation } = measureDecodability(data, split, { ...part, direction }, undefined, 1);
  const sample: InterventionSample = { ...rows, subspace: part.subspace };
  return { name, decodability: { auroc, interval, p: permutation.p }, sample };
}

/** Rows are divided once for all cells: what was trained on is tested nowhere, and whatever is fitted is fitted on the same half. */
function whatSplits({ directions }: SweepQuestion): SweepQuestion['directions'][number]['direction'] {
  const trainedOn = directions.flatMap(({ direction }) =>
    direction.kind === 'given' ? (direction.trainedOn ?? []) : [],
  );
  if (trainedOn.length > 0) return { kind: 'given', vector: [], trainedOn: [...new Set(trainedOn)] };
  const fitted = directions.find(({ direction }) => direction.kind === 'fit' || hasSeveral(direction));
  return fitted?.direction ?? { kind: 'given', vector: [] };
}

function checkSweep(engine: Engine, { sites, directions, dataset, classes }: SweepQuestion): void {
  const { layers, id } = engine.describe();
  const beyond = sites.find((site) => site.layer >= layers);
  if (beyond) {
    throw new CuvetteError(
      'invalid_input',
      `There is no layer ${beyond.layer}: the model ${id} has layers 0 to ${layers - 1}.`,
    );
  }
  const names = [
    ...sites.map((site) => `site ${formatHookPoint(site)} at ${site.position}`),
    ...directions.map(({ name }) => `direction ${name}`),
  ];
  const twice = names.find((name, index) => names.indexOf(name) < index);
  if (twice !== undefined) throw new CuvetteError('invalid_input', `The ${twice} is named twice. Name each once.`);
  checkDataset(dataset, classes);
}

async function tokenizeFor({ engine }: ProtocolRun, { dataset, sites }: SweepQuestion): Promise<number[][]> {
  const texts = dataset.map((row) => row.prompt);
  const prompts = await engine.tokenize(texts);
  const positions = [...new Set(sites.map((site) => site.position))];
  prompts.forEach((tokens, i) => {
    resolvePositions(positions, tokens.length, texts[i]);
  });
  return prompts;
}

function countingRun(
  engine: Engine,
  { signal, onProgress }: ProtocolContext,
  { sites, directions, dataset }: SweepQuestion,
  { intervened }: SweepEvidence['split'],
  few: number,
): ProtocolRun & { done(): number } {
  const swaps = sites.length * (1 + directions.length) * intervened.length;
  const fits = sites.length * fitRuns(directions.map(({ direction }) => direction));
  const about = 3 * dataset.length + swaps + sites.length * FIRST_NULLS * few + fits;
  let done = 0;
  return {
    engine,
    signal,
    advance(count) {
      done += count;
      onProgress?.(done, Math.max(done, about));
    },
    done: () => done,
  };
}
