/** Computes how well scores separate several classes: the mean AUROC over pairs of classes (Hand and Till 2001), each pair along a line of its own. */

import { missing } from '../core/missing.ts';
import { auroc } from './auroc.ts';
import type { Scores } from './scores.ts';

export interface PairScores {
  /** The class that should score higher, and the one that should score lower. */
  classes: readonly [number, number];
  /** Of all rows. */
  scores: Scores;
}

/** Of each pair, over the rows that are of its classes; NaN where one of them has none. */
export function aurocOfPair(
  { classes: [higher, lower], scores: { values, resolution } }: PairScores,
  labels: ArrayLike<number>,
  rows?: readonly number[],
): number {
  const [scores, sides]: [number[], number[]] = [[], []];
  const take = (row: number) => {
    const label = labels[row] ?? missing('label of row', row);
    if (label !== higher && label !== lower) return;
    scores.push(values[row] ?? missing('score of row', row));
    sides.push(label === higher ? 1 : 0);
  };
  if (rows) rows.forEach(take);
  else for (let row = 0; row < labels.length; row++) take(row);
  return auroc(scores, sides, resolution);
}

/** Pairs of which a sample has one class only are left out of the mean. */
export function pairwiseAuroc(
  pairs: readonly PairScores[],
  labels: ArrayLike<number>,
  rows?: readonly number[],
): number {
  const values = pairs.map((pair) => aurocOfPair(pair, labels, rows)).filter((value) => !Number.isNaN(value));
  return values.reduce((total, value) => total + value, 0) / values.length;
}
