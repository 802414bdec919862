/** Rejects a row of an attention pattern that is not a distribution over the tokens that its query sees, so that no result rests on one. */

import { CuvetteError } from '../../errors.ts';

/** How far rounding may take the sum from 1, and a weight below 0. */
const SUM_WITHIN = 1e-3;
const LEAST = -1e-5;

/** `where` names the row's hook point. */
export function checkPatternRow(row: Float32Array, position: number, where: string): void {
  const lowest = row.reduce((least, weight) => Math.min(least, weight), 0);
  const later = row.subarray(position + 1).some((weight) => weight !== 0);
  const sum = row.reduce((total, weight) => total + weight, 0);
  if (lowest >= LEAST && !later && Math.abs(sum - 1) <= SUM_WITHIN) return;
  const why = later
    ? `weighs tokens behind position ${position}, which it cannot see`
    : lowest < LEAST
      ? `has the weight ${lowest.toPrecision(3)} at position ${position}`
      : `sums to ${sum.toPrecision(4)} at position ${position}`;
  throw new CuvetteError(
    'invalid_input',
    `The row of ${where} ${why}, and would be no distribution. Give weights of 0 or more that sum to 1; to switch a head off, set its output (hook_z) to 0.`,
  );
}
