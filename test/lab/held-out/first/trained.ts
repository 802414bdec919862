/** Families whose model was trained from random weights instead of built by hand. */

import { createRandom } from '../../../../src/lab/statistics/random.ts';
import type { Family, Made } from '../family.ts';
import { CONTENT, pairs } from '../prompts.ts';
import { trainModel } from '../trained/train.ts';

const trainedBottleneck: Family = {
  name: 'trained-bottleneck',
  truth: { verdict: 'causal' },
  why: 'GPT-2, trained to answer by the content word. The second block does not attend: what the first has left at the end is all that the answer is computed from, and two sets of words that training had to tell apart lie apart along one direction.',
  make: (seed) => trained('trained-bottleneck', seed, -1),
};

const trainedDeadWord: Family = {
  name: 'trained-dead-word',
  truth: { verdict: 'epiphenomenal-template' },
  why: 'GPT-2, trained to answer by the content word. The second block does not attend, so that nothing looks at the content word after the first, where the label can still be read.',
  make: (seed) => trained('trained-dead-word', seed, CONTENT),
};

export const trainedFamilies: readonly Family[] = [trainedBottleneck, trainedDeadWord];

function trained(name: string, seed: number, position: number): Made {
  const { files, lexicon } = trainModel(name, seed);
  const dataset = pairs(createRandom(seed, `held-out dataset ${name}`), 60, lexicon.content);
  return { files, question: { dataset, site: { layer: 0, position }, target: lexicon.targets, direction: 'fit' } };
}
