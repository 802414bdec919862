/**
 * Finds what a question is about at one site: the subspace that is tested, and the direction in it that scores, doses and pictures use. For a single
 * direction both are the same; in a subspace of several it is the line between the class means of the discovery half, as far as it lies in there, and with
 * more than two classes the line along which those lie furthest apart.
 */

import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import { between, classMeans } from '../statistics/class-means.ts';
import { differenceOfMeans } from '../statistics/difference-of-means.ts';
import { symmetricEigen } from '../statistics/symmetric-eigen.ts';
import { norm, scaled } from '../statistics/vectors.ts';
import { pairsOfClasses } from './classes.ts';
import { classesOf, labelsOf } from './dataset.ts';
import type { Labelled } from './decodability.ts';
import { fitDirection, givenDirection, rowsOf } from './direction.ts';
import type { Evidence } from './evidence.ts';
import { besideOthers } from './orthonormal.ts';
import type { CausalQuestion } from './question.ts';
import { coordinatesIn, lineAlong, type Subspace, vectorIn } from './subspace.ts';

/** What is left of a vector of length 1 beside the others, below which it adds no dimension. */
const LEAST_REST = 1e-3;

export interface TestedPart {
  direction: Float32Array;
  subspace: Subspace;
  /** With more than two classes: from the mean of the second class of each pair to that of the first, within the subspace. */
  lines?: readonly ClassLine[];
  /** Whether the discovery half tells which way the direction points, though nothing is fitted again in permutations. */
  isOriented?: boolean;
}

export interface ClassLine {
  classes: readonly [number, number];
  /** Of length 1. */
  vector: Float32Array;
}

/** `found` is the subspace of a question that has it fitted on interchange, which takes runs of the model. */
export function testedPart(
  wanted: CausalQuestion['direction'],
  { dataset, activations, width }: Labelled,
  { discovery }: Pick<Evidence['split'], 'discovery'>,
  found?: Subspace,
): TestedPart {
  const labels = () => labelsOf(dataset, discovery);
  const rows = () => rowsOf(activations, discovery, width);
  const classes = classesOf(dataset);
  if (classes > 2) {
    const means = discoveryMeans(rows(), labels(), classes);
    const subspace = found ?? (wanted.kind === 'fit' ? spanOfMeans(means, wanted, width) : spanOfGiven(wanted, width));
    return { direction: widestLine(subspace, means), subspace, lines: classLines(subspace, means) };
  }
  if (!found && wanted.kind === 'fit') return line(fitDirection(rows(), labels(), width, wanted));
  if (!found && wanted.kind === 'given' && !hasSeveral(wanted)) return line(givenDirection(wanted.vector, width));
  const subspace = found ?? (wanted.kind === 'given' ? spanOfGiven(wanted, width) : missing('fitted subspace'));
  const difference = within(subspace, differenceOfMeans(rows(), labels()));
  const [first = missing('vector of the subspace')] = subspace.vectors;
  // Classes with equal means have no direction between them: any of the subspace will do.
  return { direction: difference ?? first, subspace, ...(found && { isOriented: true }) };
}

/** Whether the question is about the span of several vectors. */
export function hasSeveral(wanted: CausalQuestion['direction']): boolean {
  return wanted.kind === 'given' && wanted.others !== undefined && wanted.others.length > 0;
}

/** The subspace's lines between the means of every two classes. */
export function classLines(subspace: Subspace, means: readonly Float64Array[]): ClassLine[] {
  const meanOf = (label: number) => means[label] ?? missing('mean of class', label);
  const [first = missing('vector of the subspace')] = subspace.vectors;
  return pairsOfClasses(means.length).map((classes) => {
    const [to, from] = classes;
    return { classes, vector: within(subspace, between(meanOf(to), meanOf(from))) ?? first };
  });
}

export function discoveryMeans(rows: Float32Array, labels: readonly number[], classes: number): Float64Array[] {
  const means = classMeans(rows, labels, classes);
  if (means.every((mean) => mean.every(Number.isFinite))) return means;
  throw new CuvetteError(
    'invalid_input',
    'The rows that the probe was trained on are not of every class, so that they do not tell where each lies. Give rows that it has not seen, or let the protocol fit the direction.',
  );
}

function line(direction: Float32Array): TestedPart {
  return { direction, subspace: lineAlong(direction) };
}

/** The part of a vector in a subspace, at length 1; nothing where there is none. */
function within(subspace: Subspace, vector: Float64Array): Float32Array | undefined {
  const part = vectorIn(subspace, coordinatesIn(subspace, Float32Array.from(vector)));
  const length = norm(part);
  return length > 0 ? scaled(part, 1 / length) : undefined;
}

/** Of as many dimensions as the class means have among them, at most one less than there are classes. */
function spanOfMeans(
  means: readonly Float64Array[],
  { method }: Extract<CausalQuestion['direction'], { kind: 'fit' }>,
  width: number,
): Subspace {
  if (method !== 'difference-of-means') {
    throw new CuvetteError(
      'invalid_input',
      `By ${method} a direction between two classes is found, and there are ${means.length}. Fit by difference-of-means, or by interchange.`,
    );
  }
  const [first = missing('class', 0), ...others] = means;
  const vectors: Float32Array[] = [];
  for (const mean of others) {
    const next = besideOthers(between(mean, first), vectors, LEAST_REST);
    if (next) vectors.push(next);
  }
  // Classes with equal means have no direction between them: any will do, as none separates them.
  return vectors.length > 0
    ? { vectors, width }
    : lineAlong(Float32Array.from({ length: width }, (_, i) => +(i === 0)));
}

/** Points to the last class, as that of two points to label 1. */
function widestLine(subspace: Subspace, means: readonly Float64Array[]): Float32Array {
  const places = means.map((mean) => coordinatesIn(subspace, Float32Array.from(mean)));
  const rank = subspace.vectors.length;
  const at = (place: Float64Array, i: number) => place[i] ?? missing('coordinate', i);
  const middle = Array.from(
    { length: rank },
    (_, i) => places.reduce((sum, place) => sum + at(place, i), 0) / means.length,
  );
  const centred = places.map((place) => place.map((value, i) => value - (middle[i] ?? missing('coordinate', i))));
  const scatter = Float64Array.from({ length: rank * rank }, (_, cell) =>
    centred.reduce((sum, place) => sum + at(place, Math.floor(cell / rank)) * at(place, cell % rank), 0),
  );
  const [{ vector } = missing('axis of the class means')] = symmetricEigen(scatter, rank);
  const last = centred.at(-1) ?? missing('class');
  const along = vector.reduce((sum, value, i) => sum + value * at(last, i), 0);
  return vectorIn(subspace, along < 0 ? vector.map((value) => -value) : vector);
}

function spanOfGiven(
  { vector, others = [] }: Extract<CausalQuestion['direction'], { kind: 'given' }>,
  width: number,
): Subspace {
  const vectors: Float32Array[] = [];
  for (const [index, given] of [vector, ...others].entries()) {
    const next = besideOthers(givenDirection(given, width), vectors, LEAST_REST);
    if (!next) {
      throw new CuvetteError(
        'invalid_input',
        `Direction ${index + 1} of the subspace lies in the span of those before it, and adds nothing. Leave it out.`,
      );
    }
    vectors.push(next);
  }
  return { vectors, width };
}
