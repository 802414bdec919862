/** Families of which nothing can be said: the label is not at the site, the labels mean nothing, or the model does not choose by them. */

import { missing } from '../../../../src/lab/core/missing.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { randomFolder } from '../first/random-weights.ts';
import { pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { createScene, jitter, signOf } from '../scene.ts';
import { createLexicon } from '../vocabulary.ts';
import { toEnd } from './parts.ts';

const truth = { verdict: 'undetermined' } as const;

const anotherChoice: Family = {
  name: 'another-choice',
  truth,
  why: 'The model reads the concept to choose between left and right, and between the words that are asked about it does not choose by it.',
  make(seed) {
    const scene = createScene('another-choice', seed, {
      shape: { kind: 'llama', width: 96 },
      contentWords: 40,
      chatter: 0.02,
      others: { left: {}, right: {} },
      answers: { left: { turn: 1, ending: 2.5 }, right: { turn: -1, ending: 2.5 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { turn: 1.5 })), layer()],
    });
    return question(scene, pairs(scene.random, 80, scene.lexicon.content), 0);
  },
};

const readersThatCancel: Family = {
  name: 'readers-that-cancel',
  truth,
  why: 'One block reads the concept for the answer and a later one reads it against as strongly, so that the model does not behave by the label.',
  make(seed) {
    const scene = createScene('readers-that-cancel', seed, {
      shape: { kind: 'neox', width: 96 },
      contentWords: 40,
      chatter: 0.02,
      constant: 30,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer([], line({ concept: 1 }, { out: 1.5 })),
        layer([], line({ concept: 1 }, { out: -1.5 })),
        layer(),
      ],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 0);
  },
};

const halfExchanged: Family = {
  name: 'half-exchanged',
  truth,
  why: 'The model reads a concept, and of the six pairs that each word is in, three have their labels exchanged.',
  make(seed) {
    const scene = createScene('half-exchanged', seed, {
      shape: { kind: 'gpt2', width: 64 },
      contentWords: 20,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2.3 }))],
    });
    const exchanges = Array.from({ length: 20 }, () => scene.random.shuffle([true, true, true, false, false, false]));
    const dataset = pairs(scene.random, 120, scene.lexicon.content).map((example, i) => {
      const pair = Math.floor(i / 2);
      const exchanged = exchanges[pair % 20]?.[Math.floor(pair / 20)] ?? missing('exchange', pair);
      return exchanged ? { ...example, label: signOf(example.label) === 1 ? (0 as const) : (1 as const) } : example;
    });
    return question(scene, dataset, 0);
  },
};

const beforeTheWord: Family = {
  name: 'before-the-word',
  truth,
  why: 'The site is the first token, which comes before the content word and so cannot know of it, though the model behaves by the label.',
  make(seed) {
    const scene = createScene('before-the-word', seed, {
      shape: { kind: 'llama', width: 64 },
      contentWords: 40,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2.3 })), layer()],
    });
    return question(scene, singles(scene.random, { 1: 70, 0: 70 }, scene.lexicon.content), 1, 0);
  },
};

const randomLlama: Family = {
  name: 'random-llama',
  truth,
  why: 'All weights are random numbers, and so is which words have which label.',
  make(seed) {
    const random = createRandom(seed, 'second held-out random weights');
    const lexicon = createLexicon(random, { contentWords: 150 });
    const shape = { kind: 'llama', width: 96, layers: 3, heads: 6, headWidth: 16, hidden: 96 } as const;
    const files = randomFolder(lexicon.words, shape, random);
    const dataset = pairs(createRandom(seed, 'second held-out random dataset'), 150, lexicon.content);
    return {
      files,
      question: { dataset, site: { layer: 1, position: -1 }, target: lexicon.targets, direction: 'fit' },
    };
  },
};

export const undeterminedFamilies: readonly Family[] = [
  anotherChoice,
  readersThatCancel,
  halfExchanged,
  beforeTheWord,
  randomLlama,
];
