/**
 * Tells how often a random direction does as much as the tested one: by counting, and beyond the largest of the values that were drawn by an exponential
 * tail, unless the values show that theirs is heavier.
 */

import { missing } from '../core/missing.ts';
import { betaQuantile } from './beta.ts';
import { lowChiSquared } from './student.ts';

export interface Exceedance {
  /** Never less than what the values allow to claim. */
  p: number;
  /** With 99 % confidence each. */
  low: number;
  high: number;
}

/** Of the values, the largest tenth is the tail; with fewer values than this it is not extrapolated. */
const TAIL = 0.1;
const FEWEST = 50;
/** The level at which bounds are taken, and at which a tail counts as heavier than exponential. */
const DOUBT = 0.01;

/** Of values at least as far from 0 as the observed one. Those that are nearer by less than the rounding count, too. */
export function exceedance(observed: number, values: readonly number[], rounding: number): Exceedance {
  const sizes = Float64Array.from(values, Math.abs).sort();
  const bound = Math.abs(observed) - rounding;
  const count = sizes.length;
  let reached = 0;
  while (reached < count && sizeAt(sizes, reached) >= bound) reached++;
  const p = (1 + reached) / (count + 1);
  const high = reached === count ? 1 : betaQuantile(1 - DOUBT, reached + 1, count - reached);
  const low = reached === 0 ? 0 : betaQuantile(DOUBT, reached, count - reached + 1);
  if (reached > 0 || count < FEWEST) return { p, low, high };
  const beyond = tailBeyond(bound, sizes, rounding);
  return { p: Math.min(p, beyond), low, high: Math.min(high, beyond) };
}

/** An upper bound of the share beyond, or 1 if the tail is too heavy to tell. */
function tailBeyond(bound: number, sizes: Float64Array, rounding: number): number {
  const count = sizes.length;
  const excesses = Math.floor(TAIL * count);
  const start = sizeAt(sizes, excesses);
  let sum = 0;
  for (let rank = 0; rank < excesses; rank++) sum += sizeAt(sizes, rank) - start;
  const mean = Math.max(sum / excesses, rounding);
  const largest = sizeAt(sizes, 0) - start;
  // The largest of so many exponential values is beyond this once in a hundred times.
  const expected = -mean * Math.log(1 - (1 - DOUBT) ** (1 / excesses));
  if (largest > expected) return 1;
  const widest = (mean * 2 * excesses) / lowChiSquared(2 * excesses);
  const share = betaQuantile(1 - DOUBT, excesses + 1, count - excesses);
  return share * Math.exp(-Math.max(0, bound - start) / widest);
}

/** From the largest on. */
function sizeAt(sorted: Float64Array, rank: number): number {
  return sorted[sorted.length - 1 - rank] ?? missing('value of rank', rank);
}
