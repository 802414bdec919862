/** Reads logits by token, and finds the highest. */

import { missing } from './missing.ts';

export function logitOf(logits: Float32Array | Float64Array, token: number): number {
  return logits[token] ?? missing('logit of token', token);
}

/** Of several tokens with the same logit, the first. */
export function likeliest(logits: Float32Array): number {
  let best = 0;
  let highest = logitOf(logits, best);
  for (let token = 1; token < logits.length; token++) {
    const logit = logits[token] ?? missing('logit of token', token);
    if (logit > highest) {
      best = token;
      highest = logit;
    }
  }
  return best;
}
