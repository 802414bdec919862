/** Describes the rows that interventions are made on, in the order of `split.intervened`, and takes class-balanced means over them. */

import { missing } from '../core/missing.ts';
import type { Site } from './readings.ts';
import type { Subspace } from './subspace.ts';
import { LEAST_GAP } from './thresholds.ts';

/** What is the same at every site. */
export interface SampleRows {
  seed: number;
  width: number;
  labels: number[];
  /** How many there are. */
  classes: number;
  /** Strata of clusters for the bootstrap. */
  clusters: number[][][];
  /** Each row's counterfactual. */
  partners: number[];
}

export interface InterventionSample extends SampleRows {
  site: Site;
  activations: Float32Array[];
  /** What is tested. */
  subspace: Subspace;
}

/** One number for each row. */
export function eachOf({ labels }: SampleRows, valueAt: (index: number) => number): Float64Array {
  return Float64Array.from({ length: labels.length }, (_, index) => valueAt(index));
}

export function labelOf({ labels }: SampleRows, index: number): number {
  return labels[index] ?? missing('label of row', index);
}

export function partnerOf({ partners }: SampleRows, index: number): number {
  return partners[index] ?? missing('partner of row', index);
}

export function activationOf({ activations }: Pick<InterventionSample, 'activations'>, index: number): Float32Array {
  return activations[index] ?? missing('activation of row', index);
}

/** The class of a row's counterfactual. */
export function partnersLabel(sample: SampleRows, index: number): number {
  return labelOf(sample, partnerOf(sample, index));
}

/** The mean of the classes' means, so that a larger class does not weigh more. Rows whose value is not a number are left out: nobody could tell it. */
export function balancedMean(sample: SampleRows, values: Float64Array, indices?: readonly number[]): number {
  const byClass = Array.from({ length: sample.classes }, () => ({ sum: 0, count: 0 }));
  const take = (index: number) => {
    const label = labelOf(sample, index);
    const own = byClass[label] ?? missing('class', label);
    const value = values[index] ?? missing('value of row', index);
    if (Number.isNaN(value)) return;
    own.sum += value;
    own.count++;
  };
  if (indices) indices.forEach(take);
  else for (let index = 0; index < values.length; index++) take(index);
  return byClass.reduce((total, { sum, count }) => total + sum / (count || 1), 0) / sample.classes;
}

/** The sign of the natural gap; 1 for a gap near zero, whose sign is noise. */
export function signOfGap(gap: number): 1 | -1 {
  return gap <= -LEAST_GAP ? -1 : 1;
}

/** The natural effect that shares are taken of, with its sign, and at least `least`, as a share of nearly zero could be any number. */
export function referenceEffect(natural: number, sign: 1 | -1, least: number): number {
  return sign * Math.max(sign * natural, least);
}
