/** Flips at the natural dose: whether the model itself, and not only its preference, changes its answer. */

import { likeliest } from '../core/logits.ts';
import { missing } from '../core/missing.ts';
import { shareOf } from '../statistics/proportion.ts';
import { swap } from './displacements.ts';
import type { Evidence, Share } from './evidence.ts';
import { logitsOf, portionOf, portions, type Run, runChecked } from './readings.ts';
import { labelOf, type Subjects } from './subjects.ts';

/**
 * Prompts that the model answers with a token of the target, and that it answers with one of the partner's once the direction's
 * component is swapped with the partner's. A contrast between tokens that a model would never say can be moved even in one that
 * has learned nothing; what it says cannot.
 */
export async function measureAnswerFlips(
  run: Run,
  prompts: readonly number[][],
  subjects: Subjects,
  target: Evidence['target'],
  gapSign: number,
): Promise<Share> {
  const idsFor = (label: number) =>
    ((label === 1) === gapSign > 0 ? target.positive : target.negative).map((token) => token.id);
  const { vocabulary } = run.engine.describe();
  let flips = 0;
  for (const [from, to] of portions(prompts.length, portionOf(2 * vocabulary))) {
    const places = Array.from({ length: to - from }, (_, i) => from + i);
    const variants = places.flatMap((prompt) => [{ prompt, interventions: [] }, swap(subjects, prompt, 'along')]);
    const results = await runChecked(run, { prompts, variants, logits: { positions: [-1] } });
    const answers = results.map((_, i) => likeliest(logitsOf(results, i, vocabulary)));
    const answerOf = (variant: number) => answers[variant] ?? missing('answer of variant', variant);
    flips += places.filter((place, i) => {
      const [before, after] = [answerOf(2 * i), answerOf(2 * i + 1)];
      const label = labelOf(subjects, place);
      return idsFor(label).includes(before) && idsFor(1 - label).includes(after);
    }).length;
  }
  return shareOf(flips, prompts.length);
}
