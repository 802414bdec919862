/** Lists the guards of a run, each with its limit and whether it passes. */

import { answersFlip, isDormant, isHarmful } from '../causality/decide.ts';
import type { Evidence } from '../causality/evidence.ts';
import { FEWEST_FLIPPABLE, HARM, LEAST_HARM, UNTOLD } from '../causality/thresholds.ts';
import { formatCount, formatNumber, formatPercent } from './numbers.ts';

export interface Guard {
  name: string;
  value: string;
  limit: string;
  passes: boolean;
}

export function guardsOf(evidence: Evidence): Guard[] {
  const { dormancy, harm, temperature, naming, interchange, specificity } = evidence;
  const { answerFlips, answers } = interchange;
  const found: Guard[] = [
    {
      name: 'The effect comes from where counterfactuals differ by nature',
      value: `${formatNumber(dormancy.within)} there, ${formatNumber(dormancy.rest)} elsewhere`,
      limit: 'not more elsewhere than there',
      passes: !isDormant(evidence),
    },
    {
      name: 'Harm to all other tokens, in nats',
      value: `${formatNumber(harm.component)}, by the whole activation ${formatNumber(harm.whole)}`,
      limit: `at most ${HARM} times that, or ${LEAST_HARM}`,
      passes: !isHarmful(evidence),
    },
    {
      name: 'Answers that flip',
      value: [
        answerFlips.of > 0
          ? `${formatCount(answerFlips.count)} of ${formatCount(answerFlips.of)} that can`
          : 'none can',
        ...(answerFlips.of < FEWEST_FLIPPABLE ? [`${formatPercent(answers.rate)} of answers are target words`] : []),
        ...(answerFlips.of < FEWEST_FLIPPABLE && specificity.otherWords
          ? [`${formatPercent(specificity.otherWords.rate)} of other words differ as much between the classes`]
          : []),
      ].join('; '),
      limit: `at least 10 % of those that can; where fewer than ${FEWEST_FLIPPABLE} can, half of the answers are target words, or, where those were given, at most 1 % of other words differ as much`,
      passes: answersFlip(evidence),
    },
    {
      name: 'Runs whose temperature cannot be told',
      value: formatPercent(temperature.untold.rate),
      limit: `at most ${formatPercent(UNTOLD)}`,
      passes: temperature.untold.rate <= UNTOLD && temperature.untoldAtRandom.rate <= UNTOLD,
    },
  ];
  if (!naming.required) return found;
  return [
    ...found,
    {
      name: 'The feature has a name',
      value: naming.name ?? 'none',
      limit: 'required for causal',
      passes: naming.name !== undefined,
    },
  ];
}
