/**
 * Measures whether the behaviour is about the target words: how often as many other words, drawn from the control tokens, differ as much between the
 * classes. In a model that has learned nothing any words do.
 */

import { missing } from '../core/missing.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import type { Share } from './common-evidence.ts';
import type { Evidence } from './evidence.ts';
import { labelOf, type SampleRows } from './intervention-sample.ts';

const DRAWS = 999;

export interface WordGaps {
  /** Takes the logits of an unmodified prompt, over the whole vocabulary. */
  add(index: number, logits: Float32Array): void;
  /** How many of the draws differ as much as the target. Nothing where there are too few control tokens to draw from. */
  compare(): Share | undefined;
}

export function createWordGaps(
  sample: SampleRows,
  target: Evidence['target'],
  controls: Evidence['controls'],
): WordGaps {
  const sums = [new Map<number, number>(), new Map<number, number>()] as const;
  const counts = [0, 0];
  const tokens = [...target.positive, ...target.negative, ...controls.tokens].map(({ id }) => id);
  const meanOf = (label: 0 | 1, token: number) =>
    (sums[label].get(token) ?? missing('logit of token', token)) / (counts[label] ?? missing('rows of class', label));
  const gapOf = (words: readonly number[]) => mean(words.map((token) => meanOf(1, token) - meanOf(0, token)));

  return {
    add(index, logits) {
      const label = labelOf(sample, index);
      counts[label] = (counts[label] ?? missing('rows of class', label)) + 1;
      for (const token of tokens) {
        const logit = logits[token] ?? missing('logit of token', token);
        sums[label].set(token, (sums[label].get(token) ?? 0) + logit);
      }
    },
    compare() {
      const [positive, negative] = [target.positive.map(({ id }) => id), target.negative.map(({ id }) => id)];
      const others = controls.tokens.map(({ id }) => id);
      if (others.length < 2 * (positive.length + negative.length)) return undefined;
      const random = createRandom(sample.seed, 'other words');
      const gap = Math.abs(gapOf(positive) - gapOf(negative));
      const asMuch = Array.from({ length: DRAWS }, () => {
        const drawn = random.shuffle(others);
        const first = gapOf(drawn.slice(0, positive.length));
        const second = gapOf(drawn.slice(positive.length, positive.length + negative.length));
        return Math.abs(first - second) >= gap;
      });
      return shareOf(asMuch.filter(Boolean).length, DRAWS);
    },
  };
}
