/** Families of a trained model whose weights were shuffled: it has learned nothing, and no direction of it may be called causal. */

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CausalQuestion } from '../../../../src/lab/causality/question.ts';
import { agreementPairs, neutralPrompts } from '../../../../src/lab/demo/datasets.ts';
import { readLayout } from '../../../../src/lab/models/architectures/architectures.ts';
import type { Family } from '../family.ts';
import { shuffledWeights } from '../models/twin.ts';

/** Asked with words that the trained model answers with, or left to choose the words that differ most. */
export function twinFamilies(folder: string): Family[] {
  const words: Pick<CausalQuestion, 'target'> = { target: { positive: [' are'], negative: [' is'] } };
  return [twinFamily(folder), { ...twinFamily(folder, words), name: 'twin, given words' }];
}

/** Of the model in a folder that speaks the language of the one that ships. */
export function twinFamily(folder: string, words: Pick<CausalQuestion, 'target'> = {}): Family {
  return {
    name: 'twin',
    truth: { verdict: 'undetermined' },
    why: 'Each matrix has the weights of a trained model in another order: what is read at one token depends on all of the others, and on none more than by chance.',
    make(seed) {
      const texts = readdirSync(folder).filter((name) => name.endsWith('.json'));
      return {
        files: {
          ...Object.fromEntries(texts.map((name) => [name, readFileSync(join(folder, name))])),
          'model.safetensors': shuffledWeights(join(folder, 'model.safetensors'), seed),
        },
        question: {
          site: { layer: readLayout(folder).spec.layers >> 1, place: 'resid_post', position: -1 },
          direction: { kind: 'fit', method: 'difference-of-means' },
          dataset: agreementPairs(seed, 32),
          neutralPrompts: neutralPrompts(seed, 24),
          seed,
          ...words,
        },
      };
    },
  };
}
