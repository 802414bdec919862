/** Computes proportions with 95 % intervals. */

import { betaQuantile } from './beta.ts';
import type { Interval } from './bootstrap.ts';

/** The 97.5 % quantile of the normal distribution. */
const Z = 1.959963984540054;

/** By Wilson's score. */
export function wilson(count: number, of: number): Interval {
  if (of === 0) return { low: 0, high: 1 };
  const rate = count / of;
  const centre = rate + Z ** 2 / (2 * of);
  const spread = Z * Math.sqrt((rate * (1 - rate)) / of + Z ** 2 / (4 * of ** 2));
  const scale = 1 + Z ** 2 / of;
  return { low: Math.max(0, (centre - spread) / scale), high: Math.min(1, (centre + spread) / scale) };
}

/** By Clopper and Pearson, which never covers less than 95 %. */
export function clopperPearson(count: number, of: number): Interval {
  return {
    low: count === 0 ? 0 : betaQuantile(0.025, count, of - count + 1),
    high: count === of ? 1 : betaQuantile(0.975, count + 1, of - count),
  };
}

export function shareOf(count: number, of: number): { count: number; of: number; rate: number; interval: Interval } {
  return { count, of, rate: of === 0 ? 0 : count / of, interval: wilson(count, of) };
}
