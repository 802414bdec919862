/** The area under the ROC curve: how often a positive scores above a negative, ties counting half. */

/**
 * NaN with one class only. With a resolution, what lies closer than that counts between nothing and one, in proportion: as much as the two are apart.
 */
export function auroc(scores: ArrayLike<number>, labels: ArrayLike<number>, resolution = 0): number {
  const [positives, negatives] = [classOf(scores, labels, 1), classOf(scores, labels, 0)];
  const sums = new Float64Array(negatives.length + 1);
  negatives.forEach((score, i) => {
    sums[i + 1] = (sums[i] ?? 0) + score;
  });
  let [below, within, total] = [0, 0, 0];
  for (const score of positives) {
    while (below < negatives.length && (negatives[below] ?? 0) < score - resolution) below++;
    within = Math.max(within, below);
    while (within < negatives.length && (negatives[within] ?? 0) <= score + resolution) within++;
    const close = within - below;
    const apart = close * score - ((sums[within] ?? 0) - (sums[below] ?? 0));
    total += below + close / 2 + (resolution === 0 ? 0 : apart / (2 * resolution));
  }
  return total / (positives.length * negatives.length);
}

/** In ascending order. */
function classOf(scores: ArrayLike<number>, labels: ArrayLike<number>, label: 0 | 1): Float64Array {
  const found: number[] = [];
  for (let i = 0; i < scores.length; i++) if ((labels[i] === 1) === (label === 1)) found.push(scores[i] ?? 0);
  return Float64Array.from(found).sort();
}
