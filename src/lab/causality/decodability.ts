/** Measures how well a direction separates the classes (AUROC), against permuted labels, random directions and a control task. */

import { missing, pick } from '../core/missing.ts';
import { auroc } from '../statistics/auroc.ts';
import { bootstrapInterval } from '../statistics/bootstrap.ts';
import { differenceOfMeans } from '../statistics/difference-of-means.ts';
import { permutationP, permuteWithin } from '../statistics/permutation.ts';
import { createRandom, type Random } from '../statistics/random.ts';
import { createScorer, resolutionAmong, type Scorer, type Scores } from '../statistics/scores.ts';
import { mean, quantile } from '../statistics/summary.ts';
import { dot, scaled } from '../statistics/vectors.ts';
import type { Separation } from './common-evidence.ts';
import { clustersOf, exchangeableGroups, labelsOf, rowAt } from './dataset.ts';
import { type Fit, fitDirection, rowsOf } from './direction.ts';
import type { Evidence } from './evidence.ts';
import type { DatasetRow } from './question.ts';
import { permuteClasses, permuteClassMeans, separateAtRandom, separateClasses } from './several-classes.ts';
import type { TestedPart } from './tested-part.ts';

const BOOTSTRAPS = 1000;
const PERMUTATIONS = { fast: 999, slow: 199 };
const RANDOM_DIRECTIONS = 499;
const TASKS = 20;

export interface Labelled {
  dataset: readonly DatasetRow[];
  /** All rows × width. */
  activations: Float32Array;
  width: number;
  seed: number;
}

export function measureDecodability(
  data: Labelled,
  split: Evidence['split'],
  part: TestedPart,
  fit: Fit | undefined,
  nulls: number,
): Evidence['decodability'] {
  const { discovery, test } = split;
  const scored = scoreRows(data, test, part, 'decodability');
  const count = Math.min(nulls, RANDOM_DIRECTIONS);
  const aurocs = part.lines
    ? separateAtRandom(data, split, part.subspace.vectors.length, count)
    : separateAlongRandom(data, test, scored.labels, count);
  const permuted = permute(data, split, part, fit, scored);
  const control = controlTasks(data, discovery.length > 0 ? discovery : test, fit ?? { method: 'difference-of-means' });
  return {
    ...scored,
    bootstraps: BOOTSTRAPS,
    permutation: { p: permutationP(scored.auroc, permuted), null: permuted, refitted: fit !== undefined },
    random: { mean: mean(aurocs), high: quantile(aurocs, 0.95), best: Math.max(...aurocs), null: aurocs },
    controlTask: { auroc: control, selectivity: scored.auroc - control, tasks: TASKS },
  };
}

/** Of random directions, each the better way round. */
function separateAlongRandom(data: Labelled, test: readonly number[], labels: readonly number[], count: number) {
  const random = createRandom(data.seed, 'random directions for decodability');
  const score = scorerOf(data, test);
  return Array.from({ length: count }, () => {
    const value = aurocOf(score(random.direction(data.width)), labels);
    return Math.max(value, 1 - value);
  });
}

/** What is fitted, is fitted again for each permutation; of what is not, or takes runs of the model to fit, labels of the test half alone are permuted. */
function permute(
  data: Labelled,
  split: Evidence['split'],
  { lines, isOriented = false }: TestedPart,
  fit: Fit | undefined,
  scored: Separation,
): number[] {
  if (lines)
    return fit
      ? permuteClassMeans(data, split, PERMUTATIONS.fast)
      : permuteClasses(data, split, lines, PERMUTATIONS.fast);
  return fit ? permuteRefitting(data, split, fit) : permuteLabels(data, split, scored, isOriented);
}

/** The direction, or its opposite if that is the way from label 0 to label 1: which way a given direction points says nothing about its use. */
export function facingLabels(data: Labelled, rows: readonly number[], direction: Float32Array): Float32Array {
  const value = aurocOf(scorerOf(data, rows)(direction), labelsOf(data.dataset, rows));
  return value < 0.5 ? scaled(direction, -1) : direction;
}

export function scoreRows(
  data: Labelled,
  rows: readonly number[],
  { direction, lines }: Pick<TestedPart, 'direction' | 'lines'>,
  name: string,
): Separation {
  if (lines) return separateClasses(data, rows, { direction, lines }, BOOTSTRAPS, name);
  const { values, resolution } = scorerOf(data, rows)(direction);
  const labels = labelsOf(data.dataset, rows);
  const interval = bootstrapInterval(
    clustersOf(data.dataset, rows),
    (indices) => auroc(pick(values, indices, 'score of row'), pick(labels, indices, 'label of row'), resolution),
    BOOTSTRAPS,
    createRandom(data.seed, `bootstrap of ${name}`),
  );
  return { auroc: auroc(values, labels, resolution), interval, scores: Array.from(values), resolution, labels };
}

function aurocOf({ values, resolution }: Scores, labels: ArrayLike<number>): number {
  return auroc(values, labels, resolution);
}

function scorerOf({ activations, width }: Labelled, rows: readonly number[]): Scorer {
  return createScorer(rowsOf(activations, rows, width), width);
}

/** Of a direction that was given, the better way round, as it was itself; of one whose way is known, that way. */
function permuteLabels(data: Labelled, { test }: Evidence['split'], scored: Separation, isOriented: boolean): number[] {
  const random = createRandom(data.seed, 'permutation');
  const groups = exchangeableGroups(data.dataset, test);
  return Array.from({ length: PERMUTATIONS.fast }, () => {
    const value = auroc(scored.scores, permuteWithin(scored.labels, groups, random), scored.resolution);
    return isOriented ? value : Math.max(value, 1 - value);
  });
}

/** Permutes labels in both halves, and fits the direction again for each permutation. */
function permuteRefitting(data: Labelled, { discovery, test }: Evidence['split'], fit: Fit): number[] {
  const random = createRandom(data.seed, 'permutation');
  const { width } = data;
  const [fitted, tested] = [rowsOf(data.activations, discovery, width), rowsOf(data.activations, test, width)];
  const scorer =
    fit.method === 'logistic' ? refitScorer(fitted, tested, width, fit) : meansScorer(fitted, tested, width);
  const labels = { fitted: labelsOf(data.dataset, discovery), tested: labelsOf(data.dataset, test) };
  const groups = {
    fitted: exchangeableGroups(data.dataset, discovery),
    tested: exchangeableGroups(data.dataset, test),
  };
  return Array.from({ length: fit.method === 'logistic' ? PERMUTATIONS.slow : PERMUTATIONS.fast }, () => {
    const scores = scorer(permuteWithin(labels.fitted, groups.fitted, random));
    return aurocOf(scores, permuteWithin(labels.tested, groups.tested, random));
  });
}

function refitScorer(fitted: Float32Array, tested: Float32Array, width: number, fit: Fit) {
  const score = createScorer(tested, width);
  return (labels: Uint8Array) => score(fitDirection(fitted, labels, width, fit));
}

/**
 * Scores by the difference of means for many permutations. It is a sum of products of rows, each of which is computed once: those of the tested
 * rows for their scores, those of the fitted rows for the length of the difference.
 */
function meansScorer(fitted: Float32Array, tested: Float32Array, width: number) {
  const [fittedRows, testedRows] = [fitted.length / width, tested.length / width];
  const count = testedRows + fittedRows;
  // A column for each row of both; the difference of means of the columns is what every row scores.
  const columns = new Float64Array(fittedRows * count);
  for (let row = 0; row < count; row++) {
    const from = row < testedRows ? row : row - testedRows;
    const one = (row < testedRows ? tested : fitted).subarray(from * width, (from + 1) * width);
    for (let other = 0; other < fittedRows; other++) columns[other * count + row] = dot(fitted, one, other * width);
  }
  const resolve = resolutionAmong(tested, width);
  return (labels: Uint8Array): Scores => {
    const scores = differenceOfMeans(columns, labels);
    const [squared = missing('squared length of the difference')] = differenceOfMeans(
      scores.subarray(testedRows),
      labels,
    );
    return { values: scores.subarray(0, testedRows), resolution: resolve(Math.sqrt(Math.max(0, squared))) };
  };
}

/**
 * The mean AUROC of control tasks, whose labels are random: what a probe can memorise. With pairs, all rows of a pair have the same label; the
 * probe is fitted on the row of class 0 and tested on the others. Without pairs, labels are drawn for each row.
 */
function controlTasks(data: Labelled, rows: readonly number[], fit: Fit): number {
  const random = createRandom(data.seed, 'control tasks');
  const paired = rows.filter((row) => rowAt(data.dataset, row).pair !== undefined);
  const halves = paired.length > 0 ? halvesByMember(data, paired) : undefined;
  const values = Array.from({ length: TASKS }, () => {
    const shuffled = random.shuffle(rows);
    const [learned, asked] = halves ?? [shuffled.slice(0, rows.length >> 1), shuffled.slice(rows.length >> 1)];
    const label = halves ? labelsByPair(data, [...learned, ...asked], random) : labelsByRow(rows, random);
    const direction = fitDirection(rowsOf(data.activations, learned, data.width), learned.map(label), data.width, fit);
    return aurocOf(scorerOf(data, asked)(direction), asked.map(label));
  }).filter((value) => !Number.isNaN(value));
  return values.length === 0 ? 0.5 : mean(values);
}

function halvesByMember({ dataset }: Labelled, rows: readonly number[]): [number[], number[]] {
  const isFirst = (row: number) => rowAt(dataset, row).label === 0;
  return [rows.filter(isFirst), rows.filter((row) => !isFirst(row))];
}

function labelsByPair({ dataset }: Labelled, rows: readonly number[], random: Random): (row: number) => number {
  const pairOf = (row: number) => rowAt(dataset, row).pair ?? missing('pair of row', row);
  const pairs = random.shuffle(new Set(rows.map(pairOf)));
  const indices = new Map(pairs.map((pair, index) => [pair, index % 2]));
  return (row) => indices.get(pairOf(row)) ?? missing('control label of row', row);
}

function labelsByRow(rows: readonly number[], random: Random): (row: number) => number {
  const indices = new Map(random.shuffle(rows).map((row, index) => [row, index % 2]));
  return (row) => indices.get(row) ?? missing('control label of row', row);
}
