/** The area under the ROC curve: how often a positive scores above a negative, ties counting half. */

/** NaN with one class only. */
export function auroc(scores: ArrayLike<number>, labels: ArrayLike<number>): number {
  const order = Uint32Array.from({ length: scores.length }, (_, i) => i);
  order.sort((a, b) => (scores[a] ?? 0) - (scores[b] ?? 0));
  let positives = 0;
  let rankSum = 0;
  for (let start = 0; start < order.length; ) {
    const score = scores[order[start] ?? 0];
    let end = start;
    let tied = 0;
    while (end < order.length && scores[order[end] ?? 0] === score) tied += labels[order[end++] ?? 0] === 1 ? 1 : 0;
    // Equal scores share the mean of their ranks, which count from 1.
    rankSum += tied * ((start + 1 + end) / 2);
    positives += tied;
    start = end;
  }
  const negatives = order.length - positives;
  return (rankSum - (positives * (positives + 1)) / 2) / (positives * negatives);
}
