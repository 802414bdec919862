/** Computes the cumulative function of the normal distribution, and quantiles of Student's and of the chi-squared distribution. */

import { betaCumulative, betaQuantile } from './beta.ts';

/** The share of a normal distribution below z, by Student's distribution with so many degrees of freedom that they do not differ in ten digits. */
export function normalCumulative(z: number): number {
  const tail = betaCumulative(DEGREES / (DEGREES + z * z), DEGREES / 2, 0.5) / 2;
  return z > 0 ? 1 - tail : tail;
}

const DEGREES = 1e7;

/** The value of Student's t that the upper share lies above; the share is at most a half. */
export function studentQuantile(upper: number, degrees: number): number {
  const x = betaQuantile(2 * upper, degrees / 2, 0.5);
  return Math.sqrt(degrees * (1 / x - 1));
}

/** The value that 1 % of a chi-squared distribution lies below, by Wilson and Hilferty's cube; within a hundredth for ten degrees of freedom and more. */
export function lowChiSquared(degrees: number): number {
  const part = 2 / (9 * degrees);
  return degrees * (1 - part - 2.326347874040841 * Math.sqrt(part)) ** 3;
}
