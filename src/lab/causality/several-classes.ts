/** Measures how well a subspace separates more than two classes: the mean AUROC over pairs of classes, against permuted labels and random subspaces. */

import { missing } from '../core/missing.ts';
import { bootstrapInterval } from '../statistics/bootstrap.ts';
import { between, classMeans } from '../statistics/class-means.ts';
import { aurocOfPair, type PairScores, pairwiseAuroc } from '../statistics/pairwise-auroc.ts';
import { permuteWithin } from '../statistics/permutation.ts';
import { createRandom } from '../statistics/random.ts';
import { createScorer, resolutionAmong } from '../statistics/scores.ts';
import { mean } from '../statistics/summary.ts';
import { dot } from '../statistics/vectors.ts';
import { pairsOfClasses } from './classes.ts';
import type { Separation } from './common-evidence.ts';
import { classesOf, clustersOf, exchangeableGroups, labelsOf } from './dataset.ts';
import type { Labelled } from './decodability.ts';
import { rowsOf } from './direction.ts';
import type { Evidence } from './evidence.ts';
import { randomSubspace } from './subspace.ts';
import { type ClassLine, classLines, discoveryMeans } from './tested-part.ts';

/** Scores along the direction are for pictures; AUROCs are along the lines. */
export function separateClasses(
  data: Labelled,
  rows: readonly number[],
  { direction, lines }: { direction: Float32Array; lines: readonly ClassLine[] },
  bootstraps: number,
  name: string,
): Separation {
  const pairs = scorePairs(data, rows, lines);
  const labels = labelsOf(data.dataset, rows);
  const interval = bootstrapInterval(
    clustersOf(data.dataset, rows),
    (indices) => pairwiseAuroc(pairs, labels, indices),
    bootstraps,
    createRandom(data.seed, `bootstrap of ${name}`),
  );
  const { values, resolution } = createScorer(rowsOf(data.activations, rows, data.width), data.width)(direction);
  const found = pairs.map((pair) => ({ classes: [...pair.classes], auroc: aurocOfPair(pair, labels) }));
  const all = mean(found.map(({ auroc }) => auroc));
  return { auroc: all, interval, scores: Array.from(values), resolution, labels, between: found };
}

/** Permutes labels of the test half, with the lines as they are. */
export function permuteClasses(
  data: Labelled,
  { test }: Evidence['split'],
  lines: readonly ClassLine[],
  permutations: number,
): number[] {
  const random = createRandom(data.seed, 'permutation');
  const pairs = scorePairs(data, test, lines);
  const labels = labelsOf(data.dataset, test);
  const groups = exchangeableGroups(data.dataset, test);
  return Array.from({ length: permutations }, () => pairwiseAuroc(pairs, permuteWithin(labels, groups, random)));
}

/** Permutes labels in both halves, and takes the class means of the discovery half again for each permutation. */
export function permuteClassMeans(
  data: Labelled,
  { discovery, test }: Evidence['split'],
  permutations: number,
): number[] {
  const random = createRandom(data.seed, 'permutation');
  const score = meansScorer(data, discovery, test);
  const [fitted, tested] = [labelsOf(data.dataset, discovery), labelsOf(data.dataset, test)];
  const groups = {
    fitted: exchangeableGroups(data.dataset, discovery),
    tested: exchangeableGroups(data.dataset, test),
  };
  return Array.from({ length: permutations }, () => {
    const pairs = score(permuteWithin(fitted, groups.fitted, random));
    return pairwiseAuroc(pairs, permuteWithin(tested, groups.tested, random));
  });
}

/** Random subspaces of as many dimensions, with the lines between the class means of the discovery half in each. */
export function separateAtRandom(data: Labelled, { discovery, test }: Evidence['split'], rank: number, count: number) {
  const random = createRandom(data.seed, 'random directions for decodability');
  const labels = labelsOf(data.dataset, test);
  const classes = classesOf(data.dataset);
  const means = discoveryMeans(
    rowsOf(data.activations, discovery, data.width),
    labelsOf(data.dataset, discovery),
    classes,
  );
  return Array.from({ length: count }, () => {
    const lines = classLines(randomSubspace(data.width, rank, random), means);
    return pairwiseAuroc(scorePairs(data, test, lines), labels);
  });
}

function scorePairs(
  { activations, width }: Labelled,
  rows: readonly number[],
  lines: readonly ClassLine[],
): PairScores[] {
  const score = createScorer(rowsOf(activations, rows, width), width);
  return lines.map(({ classes, vector }) => ({ classes, scores: score(vector) }));
}

/**
 * Scores along the lines between class means for many permutations of the fitted rows' labels. A mean is a sum of rows, so that products of rows, each of
 * which is computed once, give all scores: those with the tested rows the scores, those with the fitted rows the lengths of the lines.
 */
function meansScorer(data: Labelled, discovery: readonly number[], test: readonly number[]) {
  const { activations, width, dataset } = data;
  const [fitted, tested] = [rowsOf(activations, discovery, width), rowsOf(activations, test, width)];
  const count = test.length + discovery.length;
  const columns = new Float64Array(discovery.length * count);
  [...test, ...discovery].forEach((row, column) => {
    const one = activations.subarray(row * width, (row + 1) * width);
    for (let other = 0; other < discovery.length; other++)
      columns[other * count + column] = dot(fitted, one, other * width);
  });
  const resolve = resolutionAmong(tested, width);
  const classes = classesOf(dataset);
  return (labels: Uint8Array): PairScores[] => {
    const means = classMeans(columns, labels, classes);
    const meanOf = (label: number) => means[label] ?? missing('mean of class', label);
    return pairsOfClasses(classes).map((pair) => {
      const [to, from] = pair;
      const scores = between(meanOf(to), meanOf(from));
      const own = classMeans(scores.subarray(test.length), labels, classes).map(([value]) => value ?? Number.NaN);
      const squared = (own[to] ?? missing('class', to)) - (own[from] ?? missing('class', from));
      return {
        classes: pair,
        scores: { values: scores.subarray(0, test.length), resolution: resolve(Math.sqrt(Math.max(0, squared))) },
      };
    });
  };
}
