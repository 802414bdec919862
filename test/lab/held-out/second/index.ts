/** Lists the second set of held-out families. */

import type { Family } from '../family.ts';
import { causalFamilies } from './causal.ts';
import { epiphenomenalFamilies } from './epiphenomenal.ts';
import { trainedFamilies } from './trained/families.ts';
import { undeterminedFamilies } from './undetermined.ts';
import { weakCausalFamilies } from './weak-causal.ts';

export const secondFamilies: Family[] = [
  ...causalFamilies,
  ...weakCausalFamilies,
  ...epiphenomenalFamilies,
  ...undeterminedFamilies,
  ...trainedFamilies,
];
