/**
 * Measures what swapping the component, and the whole activation, does to what the model says: whether the answer flips, how far the distribution over
 * all other tokens moves, and the answers of the first prompts as examples.
 */

import { likeliest, logitOf } from '../core/logits.ts';
import { missing, pick } from '../core/missing.ts';
import { leastSquares } from '../statistics/least-squares.ts';
import { shareOf } from '../statistics/proportion.ts';
import { byClass, fromLast } from './classes.ts';
import type { Evidence } from './evidence.ts';
import { type InterventionSample, labelOf, partnerOf, partnersLabel } from './intervention-sample.ts';
import { createWordGaps } from './other-words.ts';
import { logitsOf, type ProtocolRun, portionOf, portions, runChecked } from './readings.ts';
import { tokenWithText } from './single-tokens.ts';
import { componentSwaps, swapAll } from './swaps.ts';

const EXAMPLES_PER_CLASS = 3;

export interface Outcomes {
  answerFlips: Evidence['interchange']['answerFlips'];
  answers: Evidence['interchange']['answers'];
  otherWords: Evidence['specificity']['otherWords'];
  harm: Evidence['harm'];
  examples: Evidence['examples'];
}

interface Saying {
  id: number;
  probability: number;
}

export async function measureOutcomes(
  run: ProtocolRun,
  prompts: readonly number[][],
  sample: InterventionSample,
  intervened: readonly number[],
  { target, controls }: Pick<Evidence, 'target' | 'controls'>,
  gapSign: number,
): Promise<Outcomes> {
  const { vocabulary } = run.engine.describe();
  const swaps = componentSwaps(sample);
  const words = byClass(target);
  const targets = new Set(words.flat().map((token) => token.id));
  const wordGaps = createWordGaps(sample, target, controls);
  const said: { before: Saying; component: Saying; whole: Saying }[] = [];
  const harm = { component: 0, whole: 0 };
  for (const [from, to] of portions(prompts.length, portionOf(3 * vocabulary))) {
    const indices = Array.from({ length: to - from }, (_, i) => from + i);
    const variants = indices.flatMap((prompt) => [
      { prompt, interventions: [] },
      swaps.component(prompt),
      swapAll(sample, prompt),
    ]);
    const results = await runChecked(run, { prompts, variants, logits: { positions: [-1] } });
    indices.forEach((index, i) => {
      const [base, component, whole] = [0, 1, 2].map((which) => logitsOf(results, 3 * i + which, vocabulary)) as [
        Float32Array,
        Float32Array,
        Float32Array,
      ];
      wordGaps.add(index, base);
      harm.component += divergence(base, component, targets) / prompts.length;
      harm.whole += divergence(base, whole, targets) / prompts.length;
      said.push({ before: sayingOf(base), component: sayingOf(component), whole: sayingOf(whole) });
    });
  }
  const sayings = (index: number) => said[index] ?? missing('answer to prompt', index);
  // Of two classes, a model may answer with the other's words.
  const isReversed = sample.classes === 2 && gapSign < 0;
  const idsFor = (label: number) =>
    (words[isReversed ? 1 - label : label] ?? missing('target words of class', label)).map((token) => token.id);
  const isOwn = (index: number) => idsFor(labelOf(sample, index)).includes(sayings(index).before.id);
  const rows = said.map((_, index) => index);
  const flippable = rows.filter((index) => isOwn(index) && isOwn(partnerOf(sample, index)));
  const flipped = flippable.filter((index) =>
    idsFor(partnersLabel(sample, index)).includes(sayings(index).component.id),
  );
  const shown = fromLast(sample.classes).flatMap((label) =>
    rows.filter((index) => labelOf(sample, index) === label).slice(0, EXAMPLES_PER_CLASS),
  );
  const rowOf = (index: number) => intervened[index] ?? missing('row of prompt', index);
  const withText = async ({ id, probability }: Saying) => ({ ...(await tokenWithText(run.engine, id)), probability });
  const examples: Outcomes['examples'] = [];
  for (const index of shown) {
    const { before, component, whole } = sayings(index);
    examples.push({
      row: rowOf(index),
      partner: rowOf(partnerOf(sample, index)),
      before: await withText(before),
      component: await withText(component),
      whole: await withText(whole),
    });
  }
  return {
    answerFlips: shareOf(flipped.length, flippable.length),
    answers: shareOf(rows.filter((index) => targets.has(sayings(index).before.id)).length, rows.length),
    otherWords: wordGaps.compare(),
    harm,
    examples,
  };
}

/** Kullback and Leibler's divergence of the distribution over all tokens but the target's, in nats, at the temperature of the unchanged run: to be surer of the same is no harm. */
function divergence(base: Float32Array, raw: Float32Array, targets: ReadonlySet<number>): number {
  const others = Array.from(base.keys()).filter((token) => !targets.has(token));
  const { slope } = leastSquares(pick(base, others, 'logit of token'), pick(raw, others, 'logit of token'));
  const changed = slope > 0 ? raw.map((logit) => logit / slope) : raw;
  const [total, after] = [logSum(base, targets), logSum(changed, targets)];
  let sum = 0;
  for (let token = 0; token < base.length; token++) {
    if (targets.has(token)) continue;
    const log = logitOf(base, token) - total;
    sum += Math.exp(log) * (log - logitOf(changed, token) + after);
  }
  return Math.max(0, sum);
}

function sayingOf(logits: Float32Array): Saying {
  const id = likeliest(logits);
  return { id, probability: Math.exp(logitOf(logits, id) - logSum(logits, NONE)) };
}

const NONE: ReadonlySet<number> = new Set();

function logSum(logits: Float32Array, without: ReadonlySet<number>): number {
  let largest = Number.NEGATIVE_INFINITY;
  for (let token = 0; token < logits.length; token++) {
    if (!without.has(token)) largest = Math.max(largest, logitOf(logits, token));
  }
  let sum = 0;
  for (let token = 0; token < logits.length; token++) {
    if (!without.has(token)) sum += Math.exp(logitOf(logits, token) - largest);
  }
  return sum === 0 ? 0 : largest + Math.log(sum);
}
