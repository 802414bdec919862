/** Families whose behaviour passes through the direction, however it is read. */

import { missing } from '../../../../src/lab/core/missing.ts';
import { clipped, FOCUS, gather, layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { blurred, createScene, jitter, signOf } from '../scene.ts';
import { ENDINGS } from '../vocabulary.ts';
import {
  beyond,
  bothSides,
  choosingSide,
  deliver,
  gated,
  mislabelled,
  SECOND_TOKEN,
  SIDES,
  saying,
  secondToken,
  toEnd,
} from './parts.ts';

const truth = { verdict: 'causal' } as const;

const loudReader: Family = {
  name: 'loud-reader',
  truth,
  why: 'A concept that is a thirtieth of the residual stream has one reader, whose gain makes a margin of many logits of it.',
  make(seed) {
    const scene = createScene('loud-reader', seed, {
      shape: { kind: 'llama', width: 128 },
      constant: 30,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer(), layer([], line({ concept: 1 }, { out: 16 })), layer()],
    });
    return question(scene, pairs(scene.random, 40, scene.lexicon.content), 1);
  },
};

const whisperedAnswer: Family = {
  name: 'whispered-answer',
  truth,
  why: 'The concept has one reader, whose gain makes half a logit of it, between words that others always outdo.',
  make(seed) {
    const scene = createScene('whispered-answer', seed, {
      shape: { kind: 'gpt2', width: 96 },
      contentWords: 50,
      chatter: 0.005,
      boost: -4,
      meaning: (label, random) => ({ concept: blurred(label, random, 0.5) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 0.29 })), layer()],
    });
    return question(scene, pairs(scene.random, 100, scene.lexicon.content), 0);
  },
};

const secondTokenReadLate: Family = {
  name: 'second-token-read-late',
  truth,
  why: 'The site is the content word, second in every prompt, from which a head of the third block takes the concept to the answer after nobody else has.',
  make(seed) {
    const scene = createScene('second-token-read-late', seed, {
      shape: { kind: 'neox', width: 96 },
      meaning: (label, random) => ({ concept: blurred(label, random, 0.5) }),
      layers: [layer(), layer(), layer([deliver({ out: 2.2 })]), layer()],
    });
    return question(scene, pairs(scene.random, 48, scene.lexicon.content, secondToken), 1, SECOND_TOKEN);
  },
};

const gatedByTheEnding: Family = {
  name: 'gated-by-the-ending',
  truth,
  why: 'The only reader is open after three of the four endings and shut after the fourth, where the model does not behave by the label at all.',
  make(seed) {
    const open = Object.fromEntries(ENDINGS.slice(0, 3).map((word) => [word, { gate: 1 }]));
    const scene = createScene('gated-by-the-ending', seed, {
      shape: { kind: 'gpt2', width: 64 },
      contentWords: 33,
      others: open,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer(), layer([], gated('concept', 'gate', 2.6))],
    });
    const frame = (index: number) => ({ ending: ENDINGS[index % 4] ?? missing('ending', index) });
    return question(scene, pairs(scene.random, 64, scene.lexicon.content, frame), 0);
  },
};

const threeReaders: Family = {
  name: 'three-readers',
  truth,
  why: 'A line, the query of a head and a reader that levels off read the same concept in three later blocks, and together make all of the margin.',
  make(seed) {
    const scene = createScene('three-readers', seed, {
      shape: { kind: 'llama', width: 64 },
      others: SIDES,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer([], line({ concept: 1 }, { out: 0.8 })),
        layer([choosingSide(0.9)]),
        layer(),
        layer([], clipped({ concept: 1 }, 0.5, { out: 1.8 })),
        layer(),
      ],
    });
    return question(scene, pairs(scene.random, 80, scene.lexicon.content, bothSides), 0);
  },
};

const copyThatIsUsed: Family = {
  name: 'copy-that-is-used',
  truth,
  why: 'The direction is a copy of the concept, which the next blocks pass on to the answer, while the concept itself has no reader left.',
  make(seed) {
    const scene = createScene('copy-that-is-used', seed, {
      shape: { kind: 'neox', width: 64 },
      contentWords: 30,
      meaning: (label, random) => ({ concept: blurred(label, random, 0.4) }),
      layers: [
        layer([toEnd('concept')]),
        layer([], line({ concept: 1 }, { copy: 1 })),
        layer(),
        layer([], line({ copy: 1 }, { relay: 1.3 })),
        layer([], line({ relay: 1 }, { out: 2 })),
        layer(),
      ],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 2, -1, { copy: 1 });
  },
};

const attentionSwitch: Family = {
  name: 'attention-switch',
  truth,
  why: 'Endings say no by themselves, and a head looks away from an empty word to one that says yes only if its query at the end finds the concept.',
  make(seed) {
    const scene = createScene('attention-switch', seed, {
      shape: { kind: 'llama', width: 48 },
      contentWords: 30,
      others: { ...saying(-1.8), flag: { flagged: 1, marker: 1 }, once: { flagged: -1, marker: 1 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer(),
        layer([
          {
            scores: [
              { query: { concept: 4 }, key: { flagged: 1 } },
              { query: { ending: FOCUS }, key: { marker: 1 } },
            ],
            moves: [{ from: { flagged: 0.5, marker: 0.5 }, to: { yes: 1 } }],
          },
        ]),
        layer([], line({ yes: 1 }, { out: 3.6 })),
        layer(),
      ],
    });
    const frame = (index: number) => ({ opening: () => (index % 3 ? ['flag', 'once'] : ['once', 'flag']) });
    return question(scene, pairs(scene.random, 50, scene.lexicon.content, frame), 1);
  },
};

const deadZone: Family = {
  name: 'dead-zone',
  truth,
  why: 'The only reader ignores whatever is weaker than the weakest concept, and passes on by how much a concept is stronger.',
  make(seed) {
    const scene = createScene('dead-zone', seed, {
      shape: { kind: 'gpt2', width: 32 },
      meaning: (label, random) => ({ concept: 1.2 * signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], beyond('concept', 0.4, { out: 3.5 }))],
    });
    return question(scene, pairs(scene.random, 36, scene.lexicon.content), 0);
  },
};

const amidMoods: Family = {
  name: 'amid-moods',
  truth,
  why: 'The margin is the sum of the concept and of the mood of the opening word, which varies within both labels alike, so that all of the difference between the labels is the concept.',
  make(seed) {
    const scene = createScene('amid-moods', seed, {
      shape: { kind: 'llama', width: 96 },
      contentWords: 36,
      noise: 2.5,
      others: { gladly: { mood: 1, opens: 1 }, sadly: { mood: -1, opens: 1 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept'), gather('ending', 'opens', ['mood'])]),
        layer([], [...line({ concept: 1 }, { out: 1.8 }), ...line({ mood: 1 }, { out: 1.5 })]),
        layer(),
      ],
    });
    const frame = () => {
      const mood = scene.random.choose(['gladly', 'sadly']);
      return { opening: () => [mood] };
    };
    return question(scene, pairs(scene.random, 90, scene.lexicon.content, frame), 0);
  },
};

const withAPassenger: Family = {
  name: 'with-a-passenger',
  truth,
  why: 'What goes with the label is seven tenths something that nothing reads beside the concept that is read, and a direction fitted to the labels takes the concept along whole.',
  make(seed) {
    const scene = createScene('with-a-passenger', seed, {
      shape: { kind: 'gpt2', width: 128 },
      contentWords: 36,
      meaning: (label, random) => ({
        concept: blurred(label, random, 0.4),
        passenger: 0.7 * signOf(label) * jitter(random),
      }),
      layers: [layer([toEnd('concept', 'passenger')]), layer(), layer([], line({ concept: 1 }, { out: 2.2 }))],
    });
    return question(scene, pairs(scene.random, 72, scene.lexicon.content), 1);
  },
};

const mislabelledAndUneven: Family = {
  name: 'mislabelled-and-uneven',
  truth,
  why: 'The concept is all that is read, for three words a side, while the prompts are unpaired, three to one, and one in sixteen has the wrong label.',
  make(seed) {
    const scene = createScene('mislabelled-and-uneven', seed, {
      shape: { kind: 'neox', width: 128 },
      contentWords: 40,
      targets: { positive: ['yes', 'sure', 'indeed'], negative: ['no', 'never', 'hardly'] },
      meaning: (label, random) => ({ concept: blurred(label, random, 0.25) }),
      layers: [layer([toEnd('concept')]), layer(), layer([], line({ concept: 1 }, { out: 2 })), layer()],
    });
    const dataset = singles(scene.random, { 1: 144, 0: 48 }, scene.lexicon.content);
    return question(scene, mislabelled(dataset, 16), 1);
  },
};

const twelveClearPairs: Family = {
  name: 'twelve-clear-pairs',
  truth,
  why: 'A strong concept without noise is all that is read, and twelve pairs show it.',
  make(seed) {
    const scene = createScene('twelve-clear-pairs', seed, {
      shape: { kind: 'llama', width: 32 },
      contentWords: 12,
      noise: 0.5,
      meaning: (label) => ({ concept: 2 * signOf(label) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 1.8 }))],
    });
    return question(scene, pairs(scene.random, 12, scene.lexicon.content), 0);
  },
};

const answerHeldBack: Family = {
  name: 'answer-held-back',
  truth,
  why: 'One block reads the concept and a later one takes a third of its answer back, so that what is left, all of the margin, still depends on the concept at the site alone.',
  make(seed) {
    const scene = createScene('answer-held-back', seed, {
      shape: { kind: 'neox', width: 80 },
      contentWords: 50,
      meaning: (label, random) => ({ concept: blurred(label, random, 1.1) }),
      layers: [
        layer([toEnd('concept')]),
        layer([], line({ concept: 1 }, { out: 3 })),
        layer(),
        layer([], line({ out: 1 }, { out: -0.33 })),
        layer(),
      ],
    });
    return question(scene, pairs(scene.random, 200, scene.lexicon.content), 0);
  },
};

export const causalFamilies: readonly Family[] = [
  loudReader,
  whisperedAnswer,
  secondTokenReadLate,
  gatedByTheEnding,
  threeReaders,
  copyThatIsUsed,
  attentionSwitch,
  deadZone,
  amidMoods,
  withAPassenger,
  mislabelledAndUneven,
  twelveClearPairs,
  answerHeldBack,
];
