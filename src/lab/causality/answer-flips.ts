/** Counts answer flips at the natural dose: prompts whose likeliest next token changes to one of the other class. */

import { likeliest } from '../core/logits.ts';
import { missing } from '../core/missing.ts';
import { shareOf } from '../statistics/proportion.ts';
import { swap } from './displacements.ts';
import type { Evidence, Share } from './evidence.ts';
import { type InterventionSample, labelOf } from './intervention-sample.ts';
import { logitsOf, type ProtocolRun, portionOf, portions, runChecked } from './readings.ts';

/**
 * Counts prompts that the model answers with a target token of their own class, and with one of the partner's class once the direction's
 * component is interchanged. In an untrained model, the difference between two unlikely logits can be moved; its answer cannot.
 */
export async function measureAnswerFlips(
  run: ProtocolRun,
  prompts: readonly number[][],
  sample: InterventionSample,
  target: Evidence['target'],
  gapSign: number,
): Promise<Share> {
  const idsFor = (label: number) =>
    ((label === 1) === gapSign > 0 ? target.positive : target.negative).map((token) => token.id);
  const { vocabulary } = run.engine.describe();
  let flips = 0;
  for (const [from, to] of portions(prompts.length, portionOf(2 * vocabulary))) {
    const indices = Array.from({ length: to - from }, (_, i) => from + i);
    const variants = indices.flatMap((prompt) => [{ prompt, interventions: [] }, swap(sample, prompt, 'along')]);
    const results = await runChecked(run, { prompts, variants, logits: { positions: [-1] } });
    const answers = results.map((_, i) => likeliest(logitsOf(results, i, vocabulary)));
    const answerOf = (variant: number) => answers[variant] ?? missing('answer of variant', variant);
    flips += indices.filter((prompt, i) => {
      const [before, after] = [answerOf(2 * i), answerOf(2 * i + 1)];
      const label = labelOf(sample, prompt);
      return idsFor(label).includes(before) && idsFor(1 - label).includes(after);
    }).length;
  }
  return shareOf(flips, prompts.length);
}
