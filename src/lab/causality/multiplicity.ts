/** How many tests there are, and what that asks of each. */

import type { CausalQuestion, Evidence } from './evidence.ts';

/** Of all tests of a lab session together. */
export const SIGNIFICANCE = 0.05;

/** Steering, interchange and ablation. */
const EFFECTS = 3;
const FEWEST_NULLS = 99;

/** With Holm over all tests of the session, the smallest p value that random directions can give must still be significant. */
export function countTests({ nulls }: CausalQuestion, family: number): Evidence['multiplicity'] {
  const tests = EFFECTS * family;
  const needed = Math.ceil(tests / SIGNIFICANCE - 1e-9) - 1;
  return { family, tests, needed, nulls: nulls ?? Math.max(FEWEST_NULLS, needed) };
}
