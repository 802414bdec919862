/** Chooses the next token from logits. */

import type { Random } from '../../statistics/random.ts';

export type Choosing = (logits: Float32Array) => number;

/** Of equal ones the first. */
export const likeliest: Choosing = (logits) => {
  let best = 0;
  let highest = Number.NEGATIVE_INFINITY;
  for (let token = 0; token < logits.length; token++) {
    const logit = logits[token] ?? 0;
    if (logit <= highest) continue;
    highest = logit;
    best = token;
  }
  return best;
};

export function sampling(temperature: number, random: Random): Choosing {
  return (logits) => {
    const highest = logits[likeliest(logits)] ?? 0;
    const weights = Float64Array.from(logits, (logit) => Math.exp((logit - highest) / temperature));
    let left = random.uniform() * weights.reduce((sum, weight) => sum + weight, 0);
    for (let token = 0; token < weights.length; token++) {
      left -= weights[token] ?? 0;
      if (left < 0) return token;
    }
    return likeliest(logits);
  };
}
