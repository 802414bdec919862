/** Chooses the target: the next tokens that should tell the two classes of prompts apart. */

import { CuvetteError } from '../../errors.ts';
import type { Engine } from '../core/engine.ts';
import { logitOf } from '../core/logits.ts';
import type { Evidence } from './evidence.ts';
import type { CausalQuestion } from './question.ts';
import { type Token, tokensOf, tokenWithText } from './single-tokens.ts';

/** The words of the question; else the two tokens whose mean logits differ most between the classes. */
export async function chooseTarget(
  engine: Engine,
  question: Pick<CausalQuestion, 'target'>,
  [negative, positive]: readonly [Float64Array, Float64Array],
): Promise<Evidence['target']> {
  if (question.target) {
    const likelihood = (token: number) => logitOf(negative, token) + logitOf(positive, token);
    const [forPositive, forNegative] = await Promise.all([
      tokensOf(engine, question.target.positive, likelihood),
      tokensOf(engine, question.target.negative, likelihood),
    ]);
    checkApart(forPositive, forNegative);
    return { positive: forPositive, negative: forNegative, chosen: 'given' };
  }
  let [most, least] = [0, 0];
  const difference = (token: number) => logitOf(positive, token) - logitOf(negative, token);
  for (let token = 1; token < positive.length; token++) {
    if (difference(token) > difference(most)) most = token;
    if (difference(token) < difference(least)) least = token;
  }
  if (most === least) {
    throw new CuvetteError(
      'invalid_input',
      'The model says the same after both classes of prompts, to the last digit: no target can be found. Name the target words.',
    );
  }
  return {
    positive: [await tokenWithText(engine, most)],
    negative: [await tokenWithText(engine, least)],
    chosen: 'discovery',
  };
}

function checkApart(positive: readonly Token[], negative: readonly Token[]): void {
  const ids = new Set(positive.map((token) => token.id));
  const overlap = negative.find((token) => ids.has(token.id));
  if (!overlap) return;
  throw new CuvetteError(
    'invalid_input',
    `The target word ${JSON.stringify(overlap.text)} is both positive and negative. The two lists must have no token in common.`,
  );
}
