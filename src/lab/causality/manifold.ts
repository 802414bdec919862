/**
 * Measures whether a direction lies where the model's activations vary. An intervention along a direction that activations never take can activate a
 * pathway that is dormant in all of the data; its effect then says nothing about what the model does by itself.
 */

import { pointOfSite, widthAt } from '../core/hook-points.ts';
import { missing } from '../core/missing.ts';
import { choleskySolver } from '../statistics/cholesky.ts';
import { createRandom } from '../statistics/random.ts';
import { mean, quantile } from '../statistics/summary.ts';
import { centreRows, dot, norm } from '../statistics/vectors.ts';
import type { Evidence } from './evidence.ts';
import { activationsOf, type ProtocolRun, portions, runChecked, type Site } from './readings.ts';

const PROMPTS = 128;
const BASIS = 384;
const HELD_OUT = 96;

/** The variance, as a share of a typical coordinate's, below which a direction counts as off the manifold. */
const MIN_VARIANCE = 0.01;

/** Activations at all positions but the first, which many models use as an attention sink. */
export async function readManifold(
  run: ProtocolRun,
  prompts: readonly number[][],
  site: Site,
  seed: number,
): Promise<Float32Array> {
  const random = createRandom(seed, 'activations of the manifold');
  const width = widthAt(run.engine.describe(), site);
  const rows: Float32Array[] = [];
  const chosen = random.shuffle(prompts.filter((tokens) => tokens.length > 1)).slice(0, PROMPTS);
  for (const [from, to] of portions(chosen.length, 32)) {
    const taps = [{ point: pointOfSite(site), positions: { from: 1 } }];
    const some = chosen.slice(from, to);
    const results = await runChecked(run, { prompts: some, taps });
    for (const [i, tokens] of some.entries()) {
      const all = activationsOf(results, i, (tokens.length - 1) * width);
      for (let offset = 0; offset < all.length; offset += width) rows.push(all.subarray(offset, offset + width));
    }
  }
  const kept = random.shuffle(rows).slice(0, BASIS + HELD_OUT);
  const result = new Float32Array(kept.length * width);
  kept.forEach((row, i) => {
    result.set(row, i * width);
  });
  return result;
}

/**
 * The share of the squared direction that lies in the span of the rows, relative to the same share of held-out rows: with fewer rows than
 * coordinates, no activation lies in the span completely.
 */
export function onManifold(
  direction: Float32Array,
  rows: Float32Array,
  width: number,
): Evidence['guards']['onManifold'] {
  const { centred } = centreRows(rows, width);
  const count = rows.length / width;
  const held = Math.min(HELD_OUT, Math.floor(count / 5));
  const basis = centred.subarray(0, (count - held) * width);
  const reachOf = reachIn(basis, width);
  const reached = Array.from({ length: held }, (_, i) => {
    const offset = (count - held + i) * width;
    return reachOf(centred.subarray(offset, offset + width));
  });
  const share = reachOf(Float64Array.from(direction));
  const reach = reached.length === 0 ? 1 : mean(reached);
  return { value: Math.min(1, share / (reach || 1)), share, reach, rows: count };
}

/** Projects onto the span of the rows with a small ridge, so that a coordinate that hardly varies hardly counts. */
function reachIn(basis: Float64Array, width: number): (vector: Float64Array) => number {
  const count = basis.length / width;
  const row = (i: number) => basis.subarray(i * width, (i + 1) * width);
  const ridge = MIN_VARIANCE * count * typicalVariance(basis, width) || 1e-12;
  const products = new Float64Array(count * count);
  for (let i = 0; i < count; i++) {
    for (let j = 0; j <= i; j++) {
      const product = dot(basis, row(j), i * width) + (i === j ? ridge : 0);
      products[i * count + j] = product;
      products[j * count + i] = product;
    }
  }
  const solve = choleskySolver(products, count);
  return (vector) => {
    const along = Float64Array.from({ length: count }, (_, i) => dot(basis, vector, i * width));
    const square = norm(vector) ** 2;
    return square === 0 ? 1 : dot(along, solve(along)) / square;
  };
}

function typicalVariance(basis: Float64Array, width: number): number {
  const count = basis.length / width;
  const variances = new Float64Array(width);
  basis.forEach((value, i) => {
    const column = i % width;
    variances[column] = (variances[column] ?? missing('variance of column', column)) + value ** 2 / count;
  });
  return quantile(variances, 0.5);
}
