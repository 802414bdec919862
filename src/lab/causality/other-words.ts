/**
 * Measures whether the behaviour is about the target words: how often as many other words, drawn from the control tokens, differ as much between the
 * classes. In a model that has learned nothing any words do.
 */

import { missing } from '../core/missing.ts';
import { shareOf } from '../statistics/proportion.ts';
import { createRandom } from '../statistics/random.ts';
import { mean } from '../statistics/summary.ts';
import { byClass } from './classes.ts';
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
  const words = byClass(target).map((tokens) => tokens.map(({ id }) => id));
  const others = controls.tokens.map(({ id }) => id);
  const tokens = [...words.flat(), ...others];
  const rows = words.map(() => 0);
  const sums = words.map(() => new Map(tokens.map((token) => [token, 0])));

  const meanIn = (label: number, token: number) =>
    (sums[label]?.get(token) ?? missing('logit of token', token)) / (rows[label] ?? missing('rows of class', label));
  /** How much more likely a class makes its words than the other classes do, over all classes. */
  const contrast = (wordsOf: readonly (readonly number[])[]) =>
    mean(
      wordsOf.map((own, label) => {
        const elsewhere = [...rows.keys()].filter((other) => other !== label);
        return mean(own.map((token) => meanIn(label, token) - mean(elsewhere.map((other) => meanIn(other, token)))));
      }),
    );

  return {
    add(index, logits) {
      const label = labelOf(sample, index);
      const sum = sums[label] ?? missing('class', label);
      rows[label] = (rows[label] ?? missing('class', label)) + 1;
      for (const [token, before] of sum) sum.set(token, before + (logits[token] ?? missing('logit of token', token)));
    },
    compare() {
      if (others.length < 2 * words.flat().length) return undefined;
      const random = createRandom(sample.seed, 'other words');
      const gap = Math.abs(contrast(words));
      const asMuch = Array.from({ length: DRAWS }, () => {
        const drawn = random.shuffle(others);
        return Math.abs(contrast(words.map((own) => drawn.splice(0, own.length)))) >= gap;
      });
      return shareOf(asMuch.filter(Boolean).length, DRAWS);
    },
  };
}
