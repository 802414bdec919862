/** Chooses the next token from logits at random, as likely as the logits say at a temperature. */

import { likeliest, logitOf } from '../../core/logits.ts';
import { missing } from '../../core/missing.ts';
import type { Random } from '../../statistics/random.ts';

export type Choosing = (logits: Float32Array) => number;

export function sampling(temperature: number, random: Random): Choosing {
  return (logits) => {
    const highest = logitOf(logits, likeliest(logits));
    const weights = Float64Array.from(logits, (logit) => Math.exp((logit - highest) / temperature));
    let left = random.uniform() * weights.reduce((sum, weight) => sum + weight, 0);
    for (let token = 0; token < weights.length; token++) {
      left -= weights[token] ?? missing('weight of token', token);
      if (left < 0) return token;
    }
    return likeliest(logits);
  };
}
