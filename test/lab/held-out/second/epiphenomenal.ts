/** Families where the label can be read along the direction and nothing reads it: it acts by way of the norms alone, or not at all. */

import { gather, layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { blurred, createScene, jitter, signOf } from '../scene.ts';
import { SECOND_TOKEN, saying, secondToken, toEnd } from './parts.ts';

const softmax = { verdict: 'epiphenomenal-softmax' } as const;
const template = { verdict: 'epiphenomenal-template' } as const;

const ballastOutOfAUnit: Family = {
  name: 'ballast-out-of-a-unit',
  truth: softmax,
  why: 'Endings say yes by themselves, and where the concept is negative a unit makes the residual stream longer along an axis that nothing reads, so that the final norm makes all logits smaller.',
  make(seed) {
    const scene = createScene('ballast-out-of-a-unit', seed, {
      shape: { kind: 'gpt2', width: 96 },
      contentWords: 30,
      others: saying(4),
      meaning: (label, random) => ({ concept: 0.6 * signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], [{ reads: { concept: -1 }, writes: { ballast: 24 } }]), layer()],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 1);
  },
};

const ballastUnderSeveralAnswers: Family = {
  name: 'ballast-under-several-answers',
  truth: softmax,
  why: 'Endings say no by themselves, in three words, and words of label 1 bring along what four blocks do not read and the final norm divides by.',
  make(seed) {
    const scene = createScene('ballast-under-several-answers', seed, {
      shape: { kind: 'llama', width: 160 },
      targets: { positive: ['yes', 'sure', 'indeed'], negative: ['no', 'never', 'hardly'] },
      others: saying(-5),
      meaning: (label, random) => ({ ballast: (label === 1 ? 9 : 0.5) * jitter(random) }),
      layers: [layer([gather('ending', 'content', ['ballast'], 1.8)]), layer(), layer(), layer(), layer()],
    });
    return question(scene, pairs(scene.random, 36, scene.lexicon.content), 2);
  },
};

const spentConcept: Family = {
  name: 'spent-concept',
  truth: softmax,
  why: 'The direction is the concept three blocks after its only reader, beside the answer that the reader has left at the same site.',
  make(seed) {
    const scene = createScene('spent-concept', seed, {
      shape: { kind: 'neox', width: 64 },
      contentWords: 30,
      meaning: (label, random) => ({ concept: 1.5 * signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 1.8 })), layer(), layer(), layer()],
    });
    return question(scene, pairs(scene.random, 80, scene.lexicon.content), 3, -1, { concept: 1 });
  },
};

const correlateBesideTheAnswer: Family = {
  name: 'correlate-beside-the-answer',
  truth: softmax,
  why: 'The direction goes with the label at a right angle to the answer at the same site, and neither a block nor a word reads it.',
  make(seed) {
    const scene = createScene('correlate-beside-the-answer', seed, {
      shape: { kind: 'llama', width: 96 },
      contentWords: 40,
      boost: -2,
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        correlate: blurred(label, random, 1),
      }),
      layers: [layer([toEnd('concept', 'correlate')]), layer([], line({ concept: 1 }, { out: 2.5 })), layer(), layer()],
    });
    const dataset = singles(scene.random, { 1: 60, 0: 90 }, scene.lexicon.content);
    return question(scene, dataset, 2, -1, { correlate: 1 });
  },
};

const alongTheLevel: Family = {
  name: 'along-the-level',
  truth: template,
  why: 'The direction adds the same to all numbers of the residual stream, which every norm of the model takes away, while the site has the concept that is read as well.',
  make(seed) {
    const scene = createScene('along-the-level', seed, {
      shape: { kind: 'gpt2', width: 64 },
      contentWords: 30,
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        tint: blurred(label, random, 0.3),
      }),
      layers: [
        layer([{ ...toEnd('concept'), moves: [...toEnd('concept').moves, { from: { tint: 1 }, to: { level: 2 } }] }]),
        layer(),
        layer([], line({ concept: 1 }, { out: 2.3 })),
      ],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 1, -1, { level: 1 });
  },
};

const secondTokenSpent: Family = {
  name: 'second-token-spent',
  truth: template,
  why: 'The site is the content word, second in every prompt, after a head has taken the concept to the end and before anything reads it there, and no head looks back again.',
  make(seed) {
    const scene = createScene('second-token-spent', seed, {
      shape: { kind: 'llama', width: 128 },
      contentWords: 36,
      targets: { positive: ['yes', 'sure'], negative: ['no', 'never'] },
      meaning: (label, random) => ({ concept: blurred(label, random, 0.6) }),
      layers: [layer([toEnd('concept')]), layer(), layer([], line({ concept: 1 }, { out: 2.5 })), layer()],
    });
    const dataset = singles(scene.random, { 1: 45, 0: 75 }, scene.lexicon.content, secondToken);
    return question(scene, dataset, 1, SECOND_TOKEN);
  },
};

const echoAtTheNeighbour: Family = {
  name: 'echo-at-the-neighbour',
  truth: template,
  why: 'The site is the word after the content word, which a head has given an echo of the concept, and the head that answers looks at the content word itself.',
  make(seed) {
    const scene = createScene('echo-at-the-neighbour', seed, {
      shape: { kind: 'neox', width: 96 },
      contentWords: 30,
      others: { and: { joins: 1 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([gather('joins', 'content', ['concept'])]),
        layer(),
        layer([toEnd('concept')]),
        layer([], line({ concept: 1 }, { out: 2.3 })),
        layer(),
      ],
    });
    const frame = () => ({ between: 'and' });
    return question(scene, pairs(scene.random, 50, scene.lexicon.content, frame), 1, -2);
  },
};

export const epiphenomenalFamilies: readonly Family[] = [
  ballastOutOfAUnit,
  ballastUnderSeveralAnswers,
  spentConcept,
  correlateBesideTheAnswer,
  alongTheLevel,
  secondTokenSpent,
  echoAtTheNeighbour,
];
