/** Whether probabilities mean what they say, and how scores become probabilities. */

import { sigmoid } from './logistic.ts';

/** The mean squared distance of probabilities from what happened. */
export function brierScore(probabilities: ArrayLike<number>, labels: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < labels.length; i++) total += ((probabilities[i] ?? 0) - (labels[i] ?? 0)) ** 2;
  return total / labels.length;
}

export interface ReliabilityBin {
  low: number;
  high: number;
  count: number;
  /** Means of the bin; 0 when it is empty. */
  probability: number;
  rate: number;
}

/** Bins of equal width, and the mean distance between probability and rate, weighted by the bins' counts. */
export function reliability(
  probabilities: ArrayLike<number>,
  labels: ArrayLike<number>,
  bins = 10,
): { expectedError: number; bins: ReliabilityBin[] } {
  const counts = new Float64Array(bins);
  const sums = new Float64Array(bins);
  const positives = new Float64Array(bins);
  for (let i = 0; i < labels.length; i++) {
    const probability = probabilities[i] ?? 0;
    const bin = Math.min(bins - 1, Math.floor(probability * bins));
    counts[bin] = (counts[bin] ?? 0) + 1;
    sums[bin] = (sums[bin] ?? 0) + probability;
    positives[bin] = (positives[bin] ?? 0) + (labels[i] ?? 0);
  }
  let expectedError = 0;
  const result = Array.from(counts, (count, bin) => {
    const [sum, positive] = [sums[bin] ?? 0, positives[bin] ?? 0];
    expectedError += Math.abs(sum - positive) / labels.length;
    return {
      low: bin / bins,
      high: (bin + 1) / bins,
      count,
      probability: count === 0 ? 0 : sum / count,
      rate: count === 0 ? 0 : positive / count,
    };
  });
  return { expectedError, bins: result };
}

/** Platt scaling: probability = sigmoid(slope · score + intercept), with his smoothed targets, so that separable scores have an answer too. */
export function plattScaling(
  scores: ArrayLike<number>,
  labels: ArrayLike<number>,
): { slope: number; intercept: number } {
  let positives = 0;
  for (let i = 0; i < labels.length; i++) positives += labels[i] === 1 ? 1 : 0;
  const high = (positives + 1) / (positives + 2);
  const low = 1 / (labels.length - positives + 2);
  const target = (i: number) => (labels[i] === 1 ? high : low);

  const lossAt = (slope: number, intercept: number) => {
    let loss = 0;
    for (let i = 0; i < labels.length; i++) {
      const value = slope * (scores[i] ?? 0) + intercept;
      loss += Math.log1p(Math.exp(-Math.abs(value))) + Math.max(0, value) - target(i) * value;
    }
    return loss;
  };

  let slope = 0;
  let intercept = Math.log((positives + 1) / (labels.length - positives + 1));
  let loss = lossAt(slope, intercept);
  for (let iteration = 0; iteration < 100; iteration++) {
    let [gs, gi, hss, hsi, hii] = [0, 0, 1e-12, 0, 1e-12];
    for (let i = 0; i < labels.length; i++) {
      const score = scores[i] ?? 0;
      const probability = sigmoid(slope * score + intercept);
      const error = probability - target(i);
      const weight = probability * (1 - probability);
      gs += error * score;
      gi += error;
      hss += weight * score * score;
      hsi += weight * score;
      hii += weight;
    }
    if (Math.abs(gs) < 1e-10 && Math.abs(gi) < 1e-10) break;
    const determinant = hss * hii - hsi * hsi;
    const stepSlope = (hsi * gi - hii * gs) / determinant;
    const stepIntercept = (hsi * gs - hss * gi) / determinant;
    let length = 1;
    while (length > 1e-10 && !(lossAt(slope + length * stepSlope, intercept + length * stepIntercept) < loss))
      length /= 2;
    if (length <= 1e-10) break;
    slope += length * stepSlope;
    intercept += length * stepIntercept;
    loss = lossAt(slope, intercept);
  }
  return { slope, intercept };
}
