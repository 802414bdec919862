/** Lists the held-out families: small transformers whose causal structure is known, each with a question and its true answer. */

import { causalFamilies } from './families/causal.ts';
import { epiphenomenalSoftmaxFamilies } from './families/epiphenomenal-softmax.ts';
import { epiphenomenalTemplateFamilies } from './families/epiphenomenal-template.ts';
import { randomWeights } from './families/random-weights.ts';
import { trainedFamilies } from './families/trained.ts';
import { undeterminedFamilies } from './families/undetermined.ts';
import { weakCausalFamilies } from './families/weak-causal.ts';
import type { Family } from './family.ts';

export const heldOutFamilies: Family[] = [
  ...causalFamilies,
  ...weakCausalFamilies,
  ...epiphenomenalSoftmaxFamilies,
  ...epiphenomenalTemplateFamilies,
  ...undeterminedFamilies,
  randomWeights,
  ...trainedFamilies,
];
