/** The rows that interventions are made on, in the order of `split.intervened`, and sums over them that treat both classes alike. */

import { missing } from '../core/missing.ts';
import { LEAST_GAP } from './limits.ts';
import type { Site } from './readings.ts';

export interface Subjects {
  site: Site;
  seed: number;
  width: number;
  labels: (0 | 1)[];
  /** For resampling. */
  clusters: number[][][];
  activations: Float32Array[];
  /** Components along the direction. */
  components: Float64Array;
  /** Each row's counterfactual. */
  partners: number[];
  direction: Float32Array;
  /** Distance between the class means along the direction. */
  swing: number;
}

/** One number for each row. */
export function eachOf({ labels }: Subjects, valueAt: (place: number) => number): Float64Array {
  return Float64Array.from({ length: labels.length }, (_, place) => valueAt(place));
}

export function labelOf({ labels }: Subjects, place: number): 0 | 1 {
  return labels[place] ?? missing('label of row', place);
}

/** 1 or -1, by the label. */
export function signOf(subjects: Subjects, place: number): 1 | -1 {
  return labelOf(subjects, place) === 1 ? 1 : -1;
}

export function partnerOf({ partners }: Subjects, place: number): number {
  return partners[place] ?? missing('partner of row', place);
}

/** The mean of both classes' means, so that the larger class does not weigh more. */
export function balancedMean(subjects: Subjects, values: Float64Array, places?: readonly number[]): number {
  const [negative, positive] = [
    { sum: 0, count: 0 },
    { sum: 0, count: 0 },
  ];
  const take = (place: number) => {
    const own = labelOf(subjects, place) === 1 ? positive : negative;
    own.sum += values[place] ?? missing('value of row', place);
    own.count++;
  };
  if (places) places.forEach(take);
  else for (let place = 0; place < values.length; place++) take(place);
  return (negative.sum / (negative.count || 1) + positive.sum / (positive.count || 1)) / 2;
}

/** Which way the natural gap points. Where there is next to none that is chance, and it is taken to point up. */
export function signOfGap(gap: number): 1 | -1 {
  return gap <= -LEAST_GAP ? -1 : 1;
}

/** What a share is a share of, with its sign. Where there is less than the least, that: a share of next to nothing is any number. */
export function wholeOf(natural: number, sign: 1 | -1, least: number): number {
  return sign * Math.max(sign * natural, least);
}
