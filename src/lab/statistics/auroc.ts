/** Computes the area under the ROC curve: how often a positive scores above a negative, ties counting half. */

import { missing } from '../core/missing.ts';

/**
 * NaN with one class only. With a resolution, what lies closer than that counts between nothing and one, in proportion: as much as the two are apart.
 */
export function auroc(scores: ArrayLike<number>, labels: ArrayLike<number>, resolution = 0): number {
  const [positives, negatives] = [classOf(scores, labels, 1), classOf(scores, labels, 0)];
  const sums = new Float64Array(negatives.length + 1);
  let sum = 0;
  negatives.forEach((score, i) => {
    sum += score;
    sums[i + 1] = sum;
  });
  const sumOf = (count: number) => sums[count] ?? missing('sum of negatives up to', count);
  const negative = (i: number) => negatives[i] ?? missing('negative', i);
  let [below, within, total] = [0, 0, 0];
  for (const score of positives) {
    while (below < negatives.length && negative(below) < score - resolution) below++;
    within = Math.max(within, below);
    while (within < negatives.length && negative(within) <= score + resolution) within++;
    const close = within - below;
    const apart = close * score - (sumOf(within) - sumOf(below));
    total += below + close / 2 + (resolution === 0 ? 0 : apart / (2 * resolution));
  }
  return total / (positives.length * negatives.length);
}

/** In ascending order. */
function classOf(scores: ArrayLike<number>, labels: ArrayLike<number>, label: 0 | 1): Float64Array {
  const found: number[] = [];
  for (let i = 0; i < scores.length; i++) {
    const own = labels[i] ?? missing('label of score', i);
    if ((own === 1) === (label === 1)) found.push(scores[i] ?? missing('score', i));
  }
  return Float64Array.from(found).sort();
}
