/**
 * Finds the axes that a subspace is searched among: the differences between the class means, and the leading principal components of natural differences
 * between counterfactuals. What never differs by nature is not among them, so that a search does not find pathways that are dormant in the data.
 */

import { missing } from '../core/missing.ts';
import { between, classMeans } from '../statistics/class-means.ts';
import { symmetricEigen } from '../statistics/symmetric-eigen.ts';
import { addScaled, dot } from '../statistics/vectors.ts';
import type { InterventionSample } from './intervention-sample.ts';
import { besideOthers } from './orthonormal.ts';

/** An axis that natural differences have less of than this share of the first, as squares, is rounding or next to it. */
const LEAST_VARIANCE = 1e-4;
const LEAST_REST = 1e-3;

/** Orthonormal, `most` of them at most; the class means' own come first. */
export function searchAxes(
  { activations, labels, classes }: Pick<InterventionSample, 'activations' | 'labels' | 'classes'>,
  differences: readonly Float32Array[],
  most: number,
): Float32Array[] {
  const axes: Float32Array[] = [];
  const add = (vector: ArrayLike<number>) => {
    const next = axes.length < most ? besideOthers(vector, axes, LEAST_REST) : undefined;
    if (next) axes.push(next);
  };
  const [first = missing('class', 0), ...others] = classMeans(joined(activations), labels, classes);
  for (const mean of others) add(between(mean, first));
  for (const component of principalComponents(differences)) add(component);
  return axes;
}

/** By the products of rows with each other, which are fewer than those of columns. */
function principalComponents(rows: readonly Float32Array[]): Float64Array[] {
  const count = rows.length;
  const row = (i: number) => rows[i] ?? missing('row', i);
  const products = new Float64Array(count * count);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j <= i; j++) {
      const product = dot(row(i), row(j));
      products[i * count + j] = product;
      products[j * count + i] = product;
    }
  }
  const pairs = symmetricEigen(products, count);
  const largest = pairs[0]?.value ?? missing('principal component');
  return pairs
    .filter(({ value }) => value > LEAST_VARIANCE * largest)
    .map(({ vector }) => {
      const component = new Float64Array(row(0).length);
      vector.forEach((weight, i) => {
        addScaled(component, row(i), 0, weight);
      });
      return component;
    });
}

function joined(rows: readonly Float32Array[]): Float32Array {
  const [first = missing('row')] = rows;
  const all = new Float32Array(rows.length * first.length);
  for (const [i, row] of rows.entries()) all.set(row, i * first.length);
  return all;
}
