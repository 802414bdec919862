/** Families whose direction acts on the behaviour in part, redundantly, against its label, or by a pathway that is idle on natural data. */

import { clipped, FOCUS, gather, layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { blurred, createScene, jitter, signOf } from '../scene.ts';

const truth = { verdict: 'weak-causal' } as const;
const toEnd = (...axes: string[]) => gather('ending', 'content', axes);

const partialMediator: Family = {
  name: 'partial-mediator-40',
  truth,
  why: 'Llama. Two axes at the site go with the label, each in its own way; the reader takes four tenths of the margin from the one in question and six tenths from the other.',
  make(seed) {
    const scene = createScene('partial-mediator-40', seed, {
      shape: { kind: 'llama', width: 96 },
      contentWords: 36,
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        other: signOf(label) * jitter(random),
      }),
      layers: [layer([toEnd('concept', 'other')]), layer([], line({ concept: 0.4, other: 0.6 }, { out: 2.5 }))],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 0, -1, { concept: 1 });
  },
};

const bypassedHalf: Family = {
  name: 'bypassed-half',
  truth,
  why: 'GPT-NeoX. The end reads the concept that was taken there for two fifths of the margin; a later head brings the other three fifths straight from the content word, past the site.',
  make(seed) {
    const scene = createScene('bypassed-half', seed, {
      shape: { kind: 'neox', width: 96 },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer(
          [{ ...toEnd(), moves: [{ from: { concept: 1 }, to: { out: 1.5 } }] }],
          line({ concept: 1 }, { out: 1.35 }),
        ),
      ],
    });
    return question(scene, pairs(scene.random, 50, scene.lexicon.content), 0);
  },
};

const eitherSuffices: Family = {
  name: 'either-suffices',
  truth,
  why: 'GPT-2. The reader takes the sum of two axes that go with the label, and is level as soon as one of them is there: without the one in question the margin stays, as the other stands in; turned round, it cancels the other.',
  make(seed) {
    const scene = createScene('either-suffices', seed, {
      shape: { kind: 'gpt2', width: 64 },
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        other: signOf(label) * jitter(random),
      }),
      layers: [
        layer([toEnd('concept', 'other')]),
        layer(),
        layer([], clipped({ concept: 1, other: 1 }, 0.5, { out: 4 })),
      ],
    });
    return question(scene, pairs(scene.random, 40, scene.lexicon.content), 0, -1, { concept: 1 });
  },
};

const dormantPathway: Family = {
  name: 'dormant-pathway',
  truth,
  why: 'Llama. The direction is half an axis that goes with the label and that nothing reads, and half an axis that is read but that no prompt ever sets. Pushing along it moves the answer by the second half; the answers of natural prompts come from a third axis.',
  make(seed) {
    const scene = createScene('dormant-pathway', seed, {
      shape: { kind: 'llama', width: 128 },
      contentWords: 30,
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        unread: signOf(label) * jitter(random),
      }),
      layers: [
        layer([toEnd('concept', 'unread')]),
        layer(),
        layer([], [...line({ concept: 1 }, { out: 2 }), ...line({ dormant: 1 }, { out: 2 })]),
        layer(),
      ],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 1, -1, { unread: 1, dormant: 1 });
  },
};

const againstItsLabel: Family = {
  name: 'against-its-label',
  truth,
  why: 'GPT-NeoX. The direction goes with the label, and is read against it, two fifths as strongly as the axis that the answer comes from: more of it makes the label it stands for less likely.',
  make(seed) {
    const scene = createScene('against-its-label', seed, {
      shape: { kind: 'neox', width: 64 },
      contentWords: 30,
      targets: { positive: ['up'], negative: ['down'] },
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        brake: signOf(label) * jitter(random),
      }),
      layers: [layer([toEnd('concept', 'brake')]), layer([], line({ concept: 3, brake: -1.2 }, { out: 1 }))],
    });
    return question(scene, pairs(scene.random, 50, scene.lexicon.content), 0, -1, { brake: 1 });
  },
};

const tiltedCorrelate: Family = {
  name: 'tilted-correlate',
  truth,
  why: 'GPT-2. The direction has a cosine of 0.35 to the axis that is read; the rest of it is an axis that goes with the label and is not read. Of the difference between the labels along it, less than half reaches the reader.',
  make(seed) {
    const scene = createScene('tilted-correlate', seed, {
      shape: { kind: 'gpt2', width: 128 },
      contentWords: 36,
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        correlate: 0.8 * signOf(label) * jitter(random),
      }),
      layers: [layer([toEnd('concept', 'correlate')]), layer([], line({ concept: 1 }, { out: 2.5 }))],
    });
    const direction = { concept: 0.35, correlate: Math.sqrt(1 - 0.35 ** 2) };
    return question(scene, pairs(scene.random, 72, scene.lexicon.content), 0, -1, direction);
  },
};

const halfOfAPlane: Family = {
  name: 'half-of-a-plane',
  truth,
  why: 'Llama. Words carry the label along one axis or along another, and both are read. The direction is the first of them, and so decides half of the prompts and has no part in the others.',
  make(seed) {
    const scene = createScene('half-of-a-plane', seed, {
      shape: { kind: 'llama', width: 48 },
      meaning: (label, random, index) => ({ [index % 2 ? 'first' : 'second']: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('first', 'second')]),
        layer([], [...line({ first: 1 }, { out: 2 }), ...line({ second: 1 }, { out: 2 })]),
      ],
    });
    return question(scene, pairs(scene.random, 48, scene.lexicon.content), 0, -1, { first: 1 });
  },
};

const oneTemplateOnly: Family = {
  name: 'one-template-only',
  truth,
  why: 'Llama, six blocks. In prompts that end in a question mark, the end reads the concept that was taken there; in the other half, which end in so, a later head brings the answer straight from the content word.',
  make(seed) {
    const scene = createScene('one-template-only', seed, {
      shape: { kind: 'llama', width: 64 },
      // An odd number, so that each word occurs in both templates.
      contentWords: 25,
      others: { '?': { asks: 1 }, so: { tells: 1 }, once: { sink: 1 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer(),
        layer(
          [],
          [
            { reads: { concept: 1, asks: 3 }, bias: -3, writes: { out: 2 } },
            { reads: { concept: -1, asks: 3 }, bias: -3, writes: { out: -2 } },
          ],
        ),
        layer([
          {
            // A prompt that asks looks at its first word, which has nothing to move.
            scores: [
              { query: { tells: FOCUS }, key: { content: 1 } },
              { query: { asks: FOCUS }, key: { sink: 1 } },
            ],
            moves: [{ from: { concept: 1 }, to: { out: 2 } }],
          },
        ]),
        layer(),
        layer(),
      ],
    });
    const template = (index: number) => ({
      opening: () => ['once'],
      ...(index % 2 ? { ending: '?', template: 'asks' } : { ending: 'so', template: 'tells' }),
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content, template), 1);
  },
};

const unpairedMediator: Family = {
  name: 'unpaired-mediator-25',
  truth,
  why: 'GPT-2, four blocks. A quarter of the margin comes from the direction, three quarters from another axis that an earlier block has put into the answer already. The data is unpaired.',
  make(seed) {
    const scene = createScene('unpaired-mediator-25', seed, {
      shape: { kind: 'gpt2', width: 96 },
      contentWords: 40,
      meaning: (label, random) => ({
        concept: blurred(label, random, 0.6),
        other: signOf(label) * jitter(random),
      }),
      layers: [
        layer([toEnd('concept', 'other')]),
        layer([], line({ other: 1 }, { out: 2.4 })),
        layer(),
        layer([], line({ concept: 1 }, { out: 0.8 })),
      ],
    });
    const dataset = singles(scene.random, { 1: 60, 0: 60 }, scene.lexicon.content);
    return question(scene, dataset, 2, -1, { concept: 1 });
  },
};

export const weakCausalFamilies: readonly Family[] = [
  partialMediator,
  bypassedHalf,
  eitherSuffices,
  dormantPathway,
  againstItsLabel,
  tiltedCorrelate,
  halfOfAPlane,
  oneTemplateOnly,
  unpairedMediator,
];
