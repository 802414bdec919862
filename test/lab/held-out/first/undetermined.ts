/** Families where there is nothing to find: the label cannot be read at the site, the model does not behave by it, or the data cannot tell. */

import { missing } from '../../../../src/lab/core/missing.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { gather, layer, line } from '../blueprint.ts';
import type { Family, Label } from '../family.ts';
import { pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { createScene, jitter, signOf } from '../scene.ts';

const truth = { verdict: 'undetermined' } as const;
const toEnd = (...axes: string[]) => gather('ending', 'content', axes);

const shuffledLabels: Family = {
  name: 'shuffled-labels',
  truth,
  why: 'Llama. The model reads a concept, but the labels are dealt out evenly without regard to it: neither the site nor the margin goes with them.',
  make(seed) {
    const scene = createScene('shuffled-labels', seed, {
      shape: { kind: 'llama', width: 64 },
      contentWords: 32,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2.5 }))],
    });
    const { random, lexicon } = scene;
    // Each kind of word has as many of one label as of the other.
    const dealt: Record<Label, number> = { 1: 0, 0: 0 };
    const dataset = singles(random, { 1: 48, 0: 48 }, lexicon.content).map((example) => {
      const label: Label = dealt[example.label]++ % 2 === 0 ? 1 : 0;
      return { ...example, label };
    });
    return question(scene, dataset, 0);
  },
};

const beforeTheCopy: Family = {
  name: 'before-the-copy',
  truth,
  why: 'GPT-2, four blocks. The concept reaches the end in the third block, and is read there. The site is the end after the first: the model behaves by the label, but the label is not there yet.',
  make(seed) {
    const scene = createScene('before-the-copy', seed, {
      shape: { kind: 'gpt2', width: 64 },
      contentWords: 60,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer(), layer(), layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2.5 }))],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 0);
  },
};

const flatBehaviour: Family = {
  name: 'flat-behaviour',
  truth,
  why: 'Llama. The label is at the site, but nothing reads it, and the margin goes with the other words of the prompt only: there is no behaviour to explain.',
  make(seed) {
    const scene = createScene('flat-behaviour', seed, {
      shape: { kind: 'llama', width: 96 },
      contentWords: 40,
      chatter: 0.5,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer(), layer()],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 1);
  },
};

const eitherOrWithOpening: Family = {
  name: 'either-or-with-opening',
  truth,
  why: 'GPT-NeoX. The answer, and with it the label, is yes if content word and opening word agree. The site is the end before the opening word is brought there: it has the content word, which by itself says nothing of the label.',
  make(seed) {
    const scene = createScene('either-or-with-opening', seed, {
      shape: { kind: 'neox', width: 96 },
      contentWords: 30,
      others: { report: { genre: 1, opens: 1 }, story: { genre: -1, opens: 1 } },
      meaning: (label, random) => ({ concept: signOf(label) * (0.9 + 0.2 * random.uniform()) }),
      layers: [
        layer([toEnd('concept')]),
        layer([gather('ending', 'opens', ['genre'])]),
        // Twice the distance of the sum from 0, less 2: −2 or 2.
        layer(
          [],
          [
            { reads: { concept: 1, genre: 1 }, writes: { out: 2 } },
            { reads: { concept: -1, genre: -1 }, writes: { out: 2 } },
            { reads: {}, bias: 1, writes: { out: -2 } },
          ],
        ),
      ],
    });
    const { random, lexicon } = scene;
    // Each word once with either opening.
    const opening = (index: number) => ({ opening: () => [index < 30 ? 'report' : 'story'] });
    const kinds = pairs(random, 60, lexicon.content, opening);
    // Where the opening is story, a word of kind 1 makes label 0.
    const agreed = ({ prompt, label }: { prompt: string; label: Label }): Label =>
      prompt.startsWith('report') === (label === 1) ? 1 : 0;
    return question(
      scene,
      kinds.map((example) => ({ ...example, label: agreed(example) })),
      0,
    );
  },
};

const sameOnBothSides: Family = {
  name: 'same-on-both-sides',
  truth,
  why: 'GPT-2. A strong axis is read, and the words of both labels have the very same values along it: fourteen pairs, of which nothing can be told.',
  make(seed) {
    const values = createRandom(seed, 'held-out values');
    const strengths = Array.from({ length: 14 }, () => 1.2 * values.normal());
    const order = { 1: values.shuffle(strengths), 0: values.shuffle(strengths) };
    const scene = createScene('same-on-both-sides', seed, {
      shape: { kind: 'gpt2', width: 32 },
      contentWords: 14,
      meaning: (label, _, index) => ({ concept: order[label][index] ?? missing('strength', index) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2 }))],
    });
    return question(scene, pairs(scene.random, 14, scene.lexicon.content), 0);
  },
};

export const undeterminedFamilies: readonly Family[] = [
  shuffledLabels,
  beforeTheCopy,
  flatBehaviour,
  eitherOrWithOpening,
  sameOnBothSides,
];
