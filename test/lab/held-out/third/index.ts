/** The third held-out set: small transformers whose causal structure is known, made without knowledge of the instrument. */

import type { Family } from '../family.ts';
import { causalReaders } from './causal-readers.ts';
import { causalSettings } from './causal-settings.ts';
import { softmax } from './softmax.ts';
import { template } from './template.ts';
import { trainedFamilies } from './trained/families.ts';
import { undetermined } from './undetermined.ts';
import { weak } from './weak.ts';

export const thirdFamilies: Family[] = [
  ...causalReaders,
  ...causalSettings,
  ...weak,
  ...softmax,
  ...template,
  ...undetermined,
  ...trainedFamilies,
];
