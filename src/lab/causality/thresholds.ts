/** The thresholds of the decision, and the number of random directions that they call for. */

import type { Evidence } from './evidence.ts';
import type { CausalQuestion } from './question.ts';

/** The smallest natural gap, in logits. With less, the model does not treat the classes differently, and there is no behaviour to cause. */
export const LEAST_GAP = 0.1;

/** The smallest share of the direction that lies where activations vary. */
export const ON_MANIFOLD = 0.6;
/** The largest harm to neutral text at the natural dose; the divergence in nats. */
export const PERPLEXITY_RATIO = 1.5;
export const DIVERGENCE = 0.1;

/** The family-wise error rate of all tests of a lab session. */
export const SIGNIFICANCE = 0.05;

/** Steering, interchange and ablation. */
const EFFECTS = 3;
const FEWEST_NULLS = 99;

/** Counts the tests. Random directions must be so many that the smallest possible p value is still significant after Holm's correction. */
export function countTests({ nulls }: CausalQuestion, family: number): Evidence['multiplicity'] {
  const tests = EFFECTS * family;
  const needed = Math.ceil(tests / SIGNIFICANCE - 1e-9) - 1;
  return { family, tests, needed, nulls: nulls ?? Math.max(FEWEST_NULLS, needed) };
}
