/** Reads the target words of a question from a caller's arguments. */

import { CuvetteError } from '../../errors.ts';
import type { CausalQuestion } from '../causality/question.ts';

interface TargetArguments {
  positive_tokens?: string[] | undefined;
  negative_tokens?: string[] | undefined;
}

/** Nothing where the caller leaves it to the lab to find them. */
export function targetWords({
  positive_tokens: positive,
  negative_tokens: negative,
}: TargetArguments): Pick<CausalQuestion, 'target'> {
  if (positive === undefined && negative === undefined) return {};
  if (positive?.length && negative?.length) return { target: { positive, negative } };
  throw new CuvetteError('invalid_input', 'Give both positive_tokens and negative_tokens, or neither.');
}
