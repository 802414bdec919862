/** Families whose direction nothing reads: it makes the residual stream longer, and so the final norm makes all logits smaller alike. */

import { gather, layer } from '../blueprint.ts';
import type { Family, Label } from '../family.ts';
import { pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { createScene, jitter } from '../scene.ts';
import { ENDINGS } from '../vocabulary.ts';

const truth = { verdict: 'epiphenomenal-softmax' } as const;
/** Takes it to the end, where it is longer than all else. */
const ballast = () => gather('ending', 'content', ['ballast'], 1.6);
const answers = (out: (index: number) => number) =>
  Object.fromEntries(ENDINGS.map((word, index) => [word, { out: out(index) }]));

const ballastAtTheLast: Family = {
  name: 'ballast-at-the-last',
  truth,
  why: 'Llama, one block. Endings answer yes by themselves. Words of label 0 bring ballast along, which no word is read from: it is only divided by in the final norm, and the margin of label 0 is smaller for it, like every other logit.',
  make(seed) {
    const scene = createScene('ballast-at-the-last', seed, {
      shape: { kind: 'llama', width: 64 },
      others: answers(() => 4),
      meaning: (label, random) => ballastOf(0, label, 9 * jitter(random)),
      layers: [layer([ballast()])],
    });
    return question(scene, pairs(scene.random, 48, scene.lexicon.content), 0);
  },
};

const ballastThroughDepth: Family = {
  name: 'ballast-through-depth',
  truth,
  why: 'GPT-2, four blocks. Endings answer no by themselves. Words of label 1 bring ballast along, which passes three blocks unread and makes the no less certain by way of the final norm.',
  make(seed) {
    const scene = createScene('ballast-through-depth', seed, {
      shape: { kind: 'gpt2', width: 96 },
      contentWords: 36,
      others: answers(() => -4),
      meaning: (label, random) => ballastOf(1, label, 9 * jitter(random)),
      layers: [layer([ballast()]), layer(), layer(), layer()],
    });
    return question(scene, pairs(scene.random, 72, scene.lexicon.content), 0);
  },
};

const ballastOnUnevenAnswers: Family = {
  name: 'ballast-on-uneven-answers',
  truth,
  why: 'GPT-NeoX, three blocks. Endings answer yes by themselves, each as strongly as it likes; words of label 0 bring ballast along, which nothing reads. The data is unpaired.',
  make(seed) {
    const scene = createScene('ballast-on-uneven-answers', seed, {
      shape: { kind: 'neox', width: 48 },
      targets: { positive: ['yes', 'sure'], negative: ['no', 'never'] },
      contentWords: 30,
      others: answers((index) => 3 + index),
      meaning: (label, random) => ballastOf(0, label, 10 * jitter(random)),
      layers: [layer([ballast()]), layer(), layer()],
    });
    return question(scene, singles(scene.random, { 1: 45, 0: 45 }, scene.lexicon.content), 1, -1, { ballast: -1 });
  },
};

export const epiphenomenalSoftmaxFamilies: readonly Family[] = [
  ballastAtTheLast,
  ballastThroughDepth,
  ballastOnUnevenAnswers,
];

function ballastOf(heavy: Label, label: Label, weight: number): { ballast: number } {
  return { ballast: label === heavy ? weight : weight / 20 };
}
