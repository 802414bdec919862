/** Computes the AUROC of scores with its bootstrap interval. */

import { clustersOf, labelsOf } from '../causality/dataset.ts';
import type { Labelled } from '../causality/decodability.ts';
import type { DatasetRow } from '../causality/question.ts';
import { separateClasses } from '../causality/several-classes.ts';
import type { ClassLine } from '../causality/tested-part.ts';
import { pick } from '../core/missing.ts';
import { auroc } from '../statistics/auroc.ts';
import { bootstrapInterval } from '../statistics/bootstrap.ts';
import { createRandom } from '../statistics/random.ts';
import type { Scores } from '../statistics/scores.ts';

const BOOTSTRAPS = 400;

/** AUROC of the chosen rows, with its 95 % interval by bootstrap over pairs. Scores are of all rows. */
export function separationOf(
  dataset: readonly DatasetRow[],
  chosen: readonly number[],
  { values, resolution }: Scores,
  seed: number,
): { auroc: number; interval: [number, number] } {
  const [picked, labels] = [pick(values, chosen, 'score of row'), labelsOf(dataset, chosen)];
  const statistic = (indices: readonly number[]) =>
    auroc(pick(picked, indices, 'score of row'), pick(labels, indices, 'label of row'), resolution);
  const random = createRandom(seed, 'bootstrap of the AUROC');
  const { low, high } = bootstrapInterval(clustersOf(dataset, chosen), statistic, BOOTSTRAPS, random);
  return { auroc: auroc(picked, labels, resolution), interval: [low, high] };
}

/** The mean AUROC over pairs of classes, each along the line between their means. */
export function separationOfClasses(
  data: Labelled,
  chosen: readonly number[],
  direction: Float32Array,
  lines: readonly ClassLine[],
): { auroc: number; interval: [number, number] } {
  const { auroc: value, interval } = separateClasses(data, chosen, { direction, lines }, BOOTSTRAPS, 'the AUROC');
  return { auroc: value, interval: [interval.low, interval.high] };
}
