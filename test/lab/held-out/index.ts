/** Lists the sets of held-out families: small transformers whose causal structure is known, each with a question and its true answer. Each set was made by somebody who knew the verdicts' definitions and not the protocol. */

import type { Family } from './family.ts';
import { firstFamilies } from './first/index.ts';
import { secondFamilies } from './second/index.ts';
import { thirdFamilies } from './third/index.ts';

export const heldOutSets: Record<'first' | 'second' | 'third', Family[]> = {
  first: firstFamilies,
  second: secondFamilies,
  third: thirdFamilies,
};
