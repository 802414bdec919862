/** Measures a direction on the test half: how far apart the class means lie along it and in all, how long activations are, and which classes it goes between. */

import { missing } from '../core/missing.ts';
import { between, classMeans } from '../statistics/class-means.ts';
import { differenceOfMeans } from '../statistics/difference-of-means.ts';
import { mean } from '../statistics/summary.ts';
import { dot, norm } from '../statistics/vectors.ts';
import { byClass, pairsOfClasses } from './classes.ts';
import { classesOf, labelsOf } from './dataset.ts';
import type { Labelled } from './decodability.ts';
import { rowsOf } from './direction.ts';
import type { Evidence } from './evidence.ts';
import type { SweepSetup } from './sweep.ts';

export type DirectionMeasures = Pick<Evidence['direction'], 'swing' | 'norm' | 'difference'>;

export function measureDirection(
  { dataset, activations, width }: Labelled,
  test: readonly number[],
  direction: Float32Array,
): DirectionMeasures {
  const rows = rowsOf(activations, test, width);
  const labels = labelsOf(dataset, test);
  const usual = mean(test.map((_, i) => norm(rows.subarray(i * width, (i + 1) * width))));
  const classes = classesOf(dataset);
  if (classes === 2) {
    const difference = differenceOfMeans(rows, labels);
    const [swing, length] = [dot(difference, direction), norm(difference)];
    return { swing, norm: usual, difference: { length, along: shareOfSquares(swing, length) } };
  }
  const means = classMeans(rows, labels, classes);
  const meanOf = (label: number) => means[label] ?? missing('mean of class', label);
  const differences = pairsOfClasses(classes).map(([to, from]) => between(meanOf(to), meanOf(from)));
  const rootMean = (lengths: number[]) => Math.sqrt(mean(lengths.map((length) => length ** 2)));
  const length = rootMean(differences.map(norm));
  const along = differences.map((difference) => dot(difference, direction));
  return {
    swing: Math.max(...along.map(Math.abs)),
    norm: usual,
    difference: { length, along: shareOfSquares(rootMean(along), length) },
  };
}

/**
 * The target words that doses ask for. Of two classes, those of the label that the direction points to, if the model answers as labels have it; of more,
 * those of the classes at both ends of the direction.
 */
export function askedWords(
  { dataset, activations, width }: Labelled,
  test: readonly number[],
  direction: Float32Array,
  target: Evidence['target'],
  { swing, gapSign }: { swing: number; gapSign: number },
): SweepSetup['asks'] {
  const words = byClass(target);
  if (words.length === 2) {
    // A dose along a direction that points from label 1 to label 0 asks for the other target.
    const [forth, back] = (swing < 0 ? -gapSign : gapSign) > 0 ? [1, 0] : [0, 1];
    return { forth: words[forth] ?? missing('class', forth), back: words[back] ?? missing('class', back) };
  }
  const means = classMeans(rowsOf(activations, test, width), labelsOf(dataset, test), words.length);
  const places = means.map((mean) => dot(mean, direction));
  const [last, first] = [places.indexOf(Math.max(...places)), places.indexOf(Math.min(...places))];
  return { forth: words[last] ?? missing('class', last), back: words[first] ?? missing('class', first) };
}

function shareOfSquares(part: number, whole: number): number {
  return whole === 0 ? 0 : (part / whole) ** 2;
}
