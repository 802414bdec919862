/** Measures how well probabilities are calibrated, and turns scores into probabilities by Platt scaling. */

import { missing } from '../core/missing.ts';
import { sigmoid } from './logistic.ts';

/** The mean squared distance of probabilities from what happened. */
export function brierScore(probabilities: ArrayLike<number>, labels: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < labels.length; i++) {
    const probability = probabilities[i] ?? missing('probability', i);
    total += (probability - (labels[i] ?? missing('label', i))) ** 2;
  }
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
  const found = Array.from({ length: bins }, () => ({ count: 0, sum: 0, positive: 0 }));
  for (let i = 0; i < labels.length; i++) {
    const probability = probabilities[i] ?? missing('probability', i);
    const number = Math.min(bins - 1, Math.floor(probability * bins));
    const bin = found[number] ?? missing('bin', number);
    bin.count++;
    bin.sum += probability;
    bin.positive += labels[i] ?? missing('label', i);
  }
  let expectedError = 0;
  const result = found.map(({ count, sum, positive }, bin) => {
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
  const scoreOf = (i: number) => scores[i] ?? missing('score of label', i);

  const lossAt = (slope: number, intercept: number) => {
    let loss = 0;
    for (let i = 0; i < labels.length; i++) {
      const value = slope * scoreOf(i) + intercept;
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
      const score = scoreOf(i);
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
