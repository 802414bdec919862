/** Families where the label can be read at the site, while the behaviour comes from the template, another position, another layer or another direction. A large constant keeps what is unread from acting by way of norms. */

import { gather, layer, line } from '../blueprint.ts';
import type { Family, Label } from '../family.ts';
import { CONTENT, pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { blurred, createScene, jitter, signOf } from '../scene.ts';

const truth = { verdict: 'epiphenomenal-template' } as const;
const toEnd = (...axes: string[]) => gather('ending', 'content', axes);

const deadContentWord: Family = {
  name: 'dead-content-word',
  truth,
  why: 'GPT-2. The second block takes the concept from the content word to the end, where the third reads it. The site is the content word after that: the label is still there, and no later head looks at it.',
  make(seed) {
    const scene = createScene('dead-content-word', seed, {
      shape: { kind: 'gpt2', width: 64 },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer(), layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2.5 }))],
    });
    return question(scene, pairs(scene.random, 48, scene.lexicon.content), 1, CONTENT);
  },
};

const openingWord: Family = {
  name: 'opening-word',
  truth,
  why: 'Llama, four blocks. Prompts of label 1 open with report, those of label 0 with story. A head of the third block takes the answer from there; the concept of the content word is at the end too, and nothing reads it.',
  make(seed) {
    const scene = createScene('opening-word', seed, {
      shape: { kind: 'llama', width: 128 },
      contentWords: 36,
      others: { report: { genre: 1, opens: 1 }, story: { genre: -1, opens: 1 } },
      constant: 12,
      meaning: (label, random) => ({ concept: 1.5 * signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer(),
        layer([{ ...gather('ending', 'opens', []), moves: [{ from: { genre: 1 }, to: { out: 2.5 } }] }]),
        layer(),
      ],
    });
    const opening = (label: Label) => [label === 1 ? 'report' : 'story'];
    const frame = () => ({ opening });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content, frame), 0);
  },
};

const unreadCopyAtTheEnd: Family = {
  name: 'unread-copy-at-the-end',
  truth,
  why: 'GPT-NeoX. The first block takes the concept to the end, where nobody reads it; the second brings the answer straight from the content word. The data is unpaired.',
  make(seed) {
    const scene = createScene('unread-copy-at-the-end', seed, {
      shape: { kind: 'neox', width: 64 },
      contentWords: 30,
      meaning: (label, random) => ({ concept: blurred(label, random) }),
      layers: [
        layer([toEnd('concept')]),
        layer([{ ...toEnd(), moves: [{ from: { concept: 1 }, to: { out: 2.5 } }] }]),
        layer(),
      ],
    });
    return question(scene, singles(scene.random, { 1: 50, 0: 50 }, scene.lexicon.content), 0);
  },
};

const inertCorrelate: Family = {
  name: 'inert-correlate',
  truth,
  why: 'Llama. The direction goes with the label, with much noise, at a right angle to the concept; the reader takes the concept only.',
  make(seed) {
    const scene = createScene('inert-correlate', seed, {
      shape: { kind: 'llama', width: 256 },
      contentWords: 40,
      constant: 16,
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        correlate: blurred(label, random, 0.6),
      }),
      layers: [layer([toEnd('concept', 'correlate')]), layer(), layer([], line({ concept: 1 }, { out: 2.5 }))],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 1, -1, { correlate: 1 });
  },
};

const alreadyRead: Family = {
  name: 'already-read',
  truth,
  why: 'GPT-2, five blocks. The second block reads the concept and writes the answer along another axis. The direction is the concept after the fourth block, where it is still the same and has no reader left.',
  make(seed) {
    const scene = createScene('already-read', seed, {
      shape: { kind: 'gpt2', width: 64 },
      constant: 16,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2.5 })), layer(), layer(), layer()],
    });
    return question(scene, pairs(scene.random, 100, scene.lexicon.content), 3, -1, { concept: 1 });
  },
};

const openingWordMostly: Family = {
  name: 'opening-word-mostly',
  truth,
  why: 'GPT-2. As with opening-word, but one pair in ten opens the wrong way round, and the model then answers against the label: it goes by the opening word, not by the concept at the site.',
  make(seed) {
    const scene = createScene('opening-word-mostly', seed, {
      shape: { kind: 'gpt2', width: 96 },
      contentWords: 40,
      others: { report: { genre: 1, opens: 1 }, story: { genre: -1, opens: 1 } },
      meaning: (label, random) => ({ concept: blurred(label, random, 0.4) }),
      layers: [
        layer([toEnd('concept')]),
        layer([{ ...gather('ending', 'opens', []), moves: [{ from: { genre: 1 }, to: { out: 2.5 } }] }]),
      ],
    });
    const frame = (index: number) => ({
      opening: (label: Label) => [(label === 1) === (index % 10 !== 9) ? 'report' : 'story'],
    });
    return question(scene, pairs(scene.random, 100, scene.lexicon.content, frame), 0);
  },
};

export const epiphenomenalTemplateFamilies: readonly Family[] = [
  deadContentWord,
  openingWord,
  openingWordMostly,
  unreadCopyAtTheEnd,
  inertCorrelate,
  alreadyRead,
];
