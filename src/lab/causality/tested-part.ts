/**
 * Finds what a question is about at one site: the subspace that is tested, and the direction in it that scores, doses and pictures use. For a single
 * direction both are the same; in a subspace of several it is the line between the class means of the discovery half, as far as it lies in there.
 */

import { CuvetteError } from '../../errors.ts';
import { differenceOfMeans } from '../statistics/difference-of-means.ts';
import { addScaled, dot, norm, scaled } from '../statistics/vectors.ts';
import { labelsOf } from './dataset.ts';
import type { Labelled } from './decodability.ts';
import { fitDirection, givenDirection, rowsOf } from './direction.ts';
import type { Evidence } from './evidence.ts';
import type { CausalQuestion } from './question.ts';
import { coordinatesIn, lineAlong, type Subspace, vectorIn } from './subspace.ts';

/** What is left of a vector of length 1 beside the others, below which it adds no dimension. */
const LEAST_REST = 1e-3;

export interface TestedPart {
  direction: Float32Array;
  subspace: Subspace;
}

export function testedPart(
  wanted: CausalQuestion['direction'],
  { dataset, activations, width }: Labelled,
  { discovery }: Evidence['split'],
): TestedPart {
  const labels = () => labelsOf(dataset, discovery);
  const rows = () => rowsOf(activations, discovery, width);
  if (wanted.kind === 'fit') return line(fitDirection(rows(), labels(), width, wanted));
  if (!hasSeveral(wanted)) return line(givenDirection(wanted.vector, width));
  const subspace = spanBy([wanted.vector, ...(wanted.others ?? [])], width);
  const between = vectorIn(subspace, coordinatesIn(subspace, Float32Array.from(differenceOfMeans(rows(), labels()))));
  const length = norm(between);
  // Classes with equal means have no direction between them: any of the subspace will do.
  return { direction: length > 0 ? scaled(between, 1 / length) : givenDirection(wanted.vector, width), subspace };
}

/** Whether the question is about the span of several vectors. */
export function hasSeveral(wanted: CausalQuestion['direction']): boolean {
  return wanted.kind === 'given' && wanted.others !== undefined && wanted.others.length > 0;
}

function line(direction: Float32Array): TestedPart {
  return { direction, subspace: lineAlong(direction) };
}

/** By Gram and Schmidt's method, twice over, as one pass leaves rounding errors. */
function spanBy(given: readonly (readonly number[])[], width: number): Subspace {
  const vectors: Float32Array[] = [];
  for (const [index, vector] of given.entries()) {
    const next = Float64Array.from(givenDirection(vector, width));
    for (const other of [...vectors, ...vectors]) addScaled(next, other, 0, -dot(other, next));
    const length = norm(next);
    if (length < LEAST_REST) {
      throw new CuvetteError(
        'invalid_input',
        `Direction ${index + 1} of the subspace lies in the span of those before it, and adds nothing. Leave it out.`,
      );
    }
    vectors.push(Float32Array.from(next, (value) => value / length));
  }
  return { vectors, width };
}
