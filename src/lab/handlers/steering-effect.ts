/** Computes the effect of steering on the next token of one prompt: raw, relative to control tokens, and corrected for a common rescaling of all logits. */

import { likeliest, logitOf } from '../core/logits.ts';
import { leastSquares } from '../statistics/least-squares.ts';
import { mean } from '../statistics/summary.ts';

export interface SteeringEffect {
  target: number;
  rawTarget: number;
  rawControls: number;
  /** Δlogit of the target less the mean Δlogit of the controls. */
  relative: number;
  logProbability: number;
  /** Δlogit of the target, once the steered logits are brought back onto the scale that the controls had before. */
  corrected: number;
  temperature: number;
  controls: number;
  isFlipped: boolean;
}

/** Slopes outside of these say that nothing is left of the model, rather than how hot it is. */
const COLDEST = 0.1;
const HOTTEST = 10;

/** The target is the likeliest token of the unmodified model; it is never its own control. */
export function steeringEffect(
  base: Float32Array,
  steered: Float32Array,
  controlTokens: readonly number[],
): SteeringEffect {
  const target = likeliest(base);
  const controls = controlTokens.filter((token) => token !== target);
  const before = controls.map((token) => logitOf(base, token));
  const after = controls.map((token) => logitOf(steered, token));
  const rawTarget = logitOf(steered, target) - logitOf(base, target);
  const rawControls = mean(after) - mean(before);
  const line = leastSquares(before, after);
  const slope = Number.isNaN(line.slope) ? 1 : Math.min(HOTTEST, Math.max(COLDEST, line.slope));
  const intercept = mean(after) - slope * mean(before);
  return {
    target,
    rawTarget,
    rawControls,
    relative: rawTarget - rawControls,
    logProbability: logProbability(steered, target) - logProbability(base, target),
    corrected: (logitOf(steered, target) - intercept) / slope - logitOf(base, target),
    temperature: slope,
    controls: controls.length,
    isFlipped: likeliest(steered) !== target,
  };
}

function logProbability(logits: Float32Array, token: number): number {
  const most = logitOf(logits, likeliest(logits));
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - most);
  return logitOf(logits, token) - most - Math.log(total);
}
