/** Computes bootstrap intervals. Rows of one cluster are drawn together. */

import type { Random } from './random.ts';
import { normalCumulative, studentQuantile } from './student.ts';
import { quantile } from './summary.ts';

export interface Interval {
  low: number;
  high: number;
}

/**
 * The 95 % percentile interval of a statistic of row numbers. Clusters are drawn with replacement within their stratum, so that
 * every sample has as many of each kind as the data.
 */
export function bootstrapInterval(
  strata: readonly (readonly (readonly number[])[])[],
  statistic: (rows: readonly number[]) => number,
  repeats: number,
  random: Random,
): Interval {
  const values = resample(strata, statistic, repeats, random);
  return { low: quantile(values, 0.025), high: quantile(values, 0.975) };
}

/**
 * The same, with quantiles so far out that few clusters are allowed for, as Student's distribution does for the mean (Hesterberg's expanded percentile
 * interval). The plain percentile interval of six pairs holds 95 % only by name.
 */
export function expandedInterval(
  strata: readonly (readonly (readonly number[])[])[],
  statistic: (rows: readonly number[]) => number,
  repeats: number,
  random: Random,
): Interval {
  const values = resample(strata, statistic, repeats, random);
  const clusters = strata.reduce((total, stratum) => total + stratum.length, 0);
  const degrees = Math.max(1, clusters - strata.length);
  const outer = normalCumulative(-Math.sqrt((degrees + 1) / degrees) * studentQuantile(0.025, degrees));
  return { low: quantile(values, outer), high: quantile(values, 1 - outer) };
}

function resample(
  strata: readonly (readonly (readonly number[])[])[],
  statistic: (rows: readonly number[]) => number,
  repeats: number,
  random: Random,
): Float64Array {
  const values = new Float64Array(repeats);
  for (let repeat = 0; repeat < repeats; repeat++) {
    const rows: number[] = [];
    for (const clusters of strata) {
      for (let i = 0; i < clusters.length; i++) rows.push(...random.choose(clusters));
    }
    values[repeat] = statistic(rows);
  }
  return values;
}
