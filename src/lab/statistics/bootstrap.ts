/** Computes bootstrap intervals. Rows of one cluster are drawn together. */

import type { Random } from './random.ts';
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
  const values = new Float64Array(repeats);
  for (let repeat = 0; repeat < repeats; repeat++) {
    const rows: number[] = [];
    for (const clusters of strata) {
      for (let i = 0; i < clusters.length; i++) rows.push(...random.choose(clusters));
    }
    values[repeat] = statistic(rows);
  }
  return { low: quantile(values, 0.025), high: quantile(values, 0.975) };
}
