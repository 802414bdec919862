/** A family whose weights are random numbers: words have labels, and the model knows nothing of them. */

import { createRandom, type Random } from '../../../../src/lab/statistics/random.ts';
import type { Family, ModelFolder } from '../family.ts';
import { folderOf, type Linear, type Shape } from '../model-folder.ts';
import { pairs } from '../prompts.ts';
import { createLexicon } from '../vocabulary.ts';

export const randomWeights: Family = {
  name: 'random-weights',
  truth: { verdict: 'undetermined' },
  why: 'GPT-NeoX, four blocks of random weights. Which words have which label is random too: each word occurs once, and neither the activations nor the margin can go with its label beyond chance.',
  make(seed) {
    const random = createRandom(seed, 'held-out random weights');
    const lexicon = createLexicon(random, { contentWords: 60 });
    const shape = { kind: 'neox', width: 64, layers: 4, heads: 4, headWidth: 16, hidden: 128 } as const;
    const files = randomFolder(lexicon.words, shape, random);
    const dataset = pairs(createRandom(seed, 'held-out random dataset'), 60, lexicon.content);
    return {
      files,
      question: { dataset, site: { layer: 2, position: -1 }, target: lexicon.targets, direction: 'fit' },
    };
  },
};

export function randomFolder(words: readonly string[], shape: Shape, random: Random): ModelFolder {
  const { width, hidden } = shape;
  const inner = shape.heads * shape.headWidth;
  const linear = (rows: number, columns: number, gain = 1): Linear => ({
    rows,
    columns,
    values: new Float64Array(rows * columns).map(() => (gain * random.normal()) / Math.sqrt(columns)),
  });
  const norm = () => new Float64Array(width).map(() => 1 + 0.2 * random.normal());
  const layers = Array.from({ length: shape.layers }, () => ({
    attentionNorm: norm(),
    query: linear(inner, width),
    key: linear(inner, width),
    value: linear(inner, width),
    output: linear(width, inner),
    mlpNorm: norm(),
    inner: linear(hidden, width),
    gateOpen: linear(hidden, width),
    down: linear(width, hidden),
  }));
  const ends = {
    embedding: linear(words.length, width, 8),
    positions: linear(0, width),
    finalNorm: norm(),
    unembedding: linear(words.length, width, 1.5),
  };
  return folderOf({ words, layers, ...ends }, shape);
}
