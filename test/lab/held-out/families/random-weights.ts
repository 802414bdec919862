/** A family whose weights are random numbers: words have labels, and the model knows nothing of them. */

import { createRandom } from '../../../../src/lab/statistics/random.ts';
import type { Family } from '../family.ts';
import { folderOf, type Linear } from '../model-folder.ts';
import { pairs } from '../prompts.ts';
import { createLexicon } from '../vocabulary.ts';

const WIDTH = 64;
const LAYERS = 4;
const HIDDEN = 128;

export const randomWeights: Family = {
  name: 'random-weights',
  truth: { verdict: 'undetermined' },
  why: 'GPT-NeoX, four blocks of random weights. Which words have which label is random too: each word occurs once, and neither the activations nor the margin can go with its label beyond chance.',
  make(seed) {
    const random = createRandom(seed, 'held-out random weights');
    const lexicon = createLexicon(random, { contentWords: 60 });
    const linear = (rows: number, columns: number, gain = 1): Linear => ({
      rows,
      columns,
      values: new Float64Array(rows * columns).map(() => (gain * random.normal()) / Math.sqrt(columns)),
    });
    const norm = () => new Float64Array(WIDTH).map(() => 1 + 0.2 * random.normal());
    const layers = Array.from({ length: LAYERS }, () => ({
      attentionNorm: norm(),
      query: linear(WIDTH, WIDTH),
      key: linear(WIDTH, WIDTH),
      value: linear(WIDTH, WIDTH),
      output: linear(WIDTH, WIDTH),
      mlpNorm: norm(),
      inner: linear(HIDDEN, WIDTH),
      gateOpen: linear(HIDDEN, WIDTH),
      down: linear(WIDTH, HIDDEN),
    }));
    const { words } = lexicon;
    const ends = {
      embedding: linear(words.length, WIDTH, 8),
      positions: linear(0, WIDTH),
      finalNorm: norm(),
      unembedding: linear(words.length, WIDTH, 1.5),
    };
    const shape = { kind: 'neox', width: WIDTH, layers: LAYERS, heads: 4, headWidth: 16, hidden: HIDDEN } as const;
    const dataset = pairs(createRandom(seed, 'held-out random dataset'), 60, lexicon.content);
    return {
      files: folderOf({ words, layers, ...ends }, shape),
      question: { dataset, site: { layer: 2, position: -1 }, target: lexicon.targets, direction: 'fit' },
    };
  },
};
