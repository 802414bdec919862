/** Lists the first set of held-out families. */

import type { Family } from '../family.ts';
import { causalFamilies } from './causal.ts';
import { epiphenomenalSoftmaxFamilies } from './epiphenomenal-softmax.ts';
import { epiphenomenalTemplateFamilies } from './epiphenomenal-template.ts';
import { randomWeights } from './random-weights.ts';
import { trainedFamilies } from './trained.ts';
import { undeterminedFamilies } from './undetermined.ts';
import { weakCausalFamilies } from './weak-causal.ts';

export const firstFamilies: Family[] = [
  ...causalFamilies,
  ...weakCausalFamilies,
  ...epiphenomenalSoftmaxFamilies,
  ...epiphenomenalTemplateFamilies,
  ...undeterminedFamilies,
  randomWeights,
  ...trainedFamilies,
];
