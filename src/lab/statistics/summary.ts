/** Computes mean, sum, standard deviation and quantiles. */

import { missing } from '../core/missing.ts';

export function mean(values: ArrayLike<number>): number {
  return sum(values) / values.length;
}

export function sum(values: ArrayLike<number>): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i] ?? missing('value', i);
  return total;
}

/** Of the values as a whole; with `degrees` 1, as an estimate from a sample. */
export function standardDeviation(values: ArrayLike<number>, degrees: 0 | 1 = 0): number {
  const centre = mean(values);
  let total = 0;
  for (let i = 0; i < values.length; i++) total += ((values[i] ?? missing('value', i)) - centre) ** 2;
  return Math.sqrt(total / (values.length - degrees));
}

/** With linear interpolation between neighbours, as numpy does by default. Of no values it is NaN, as their mean is. */
export function quantile(values: ArrayLike<number>, share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  const place = (sorted.length - 1) * share;
  const low = Math.floor(place);
  const below = sorted[low] ?? missing('value of rank', low);
  const next = Math.min(low + 1, sorted.length - 1);
  const above = sorted[next] ?? missing('value of rank', next);
  return below + (place - low) * (above - below);
}
