/** Families whose model really reads the direction at the site, and whose behaviour passes through it. */

import { clipped, FOCUS, gather, layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { CONTENT, flipped, pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { blurred, createScene, jitter, signOf } from '../scene.ts';

const truth = { verdict: 'causal' } as const;
const toEnd = (...axes: string[]) => gather('ending', 'content', axes);

const lowGainWide: Family = {
  name: 'low-gain-wide',
  truth,
  why: 'Llama, 256 wide. A head takes the concept to the end; the next block reads it in a line, with so little gain that the margin is below the spread of other logits. It is all that the margin depends on.',
  make(seed) {
    const scene = createScene('low-gain-wide', seed, {
      shape: { kind: 'llama', width: 256 },
      contentWords: 40,
      chatter: 0.03,
      meaning: (label, random) => ({ concept: blurred(label, random, 0.4) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 0.4 }))],
    });
    const dataset = pairs(scene.random, 60, scene.lexicon.content);
    return question(scene, dataset, 0);
  },
};

const queryReadsIt: Family = {
  name: 'query-reads-it',
  truth,
  why: 'GPT-2. Every prompt has the words left and right. A head of the last block looks at one or the other: its query at the end reads the concept, and what it moves is the sign of the word it looks at. No value ever carries the concept.',
  make(seed) {
    const scene = createScene('query-reads-it', seed, {
      shape: { kind: 'gpt2', width: 96 },
      others: { left: { side: 1, marker: 1 }, right: { side: -1, marker: 1 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer([
          {
            scores: [
              { query: { concept: 4 }, key: { side: 1 } },
              { query: { ending: FOCUS }, key: { marker: 1 } },
            ],
            moves: [{ from: { side: 1 }, to: { out: 3 } }],
          },
        ]),
      ],
    });
    const both = (index: number) => ({ opening: () => (index % 2 ? ['left', 'right'] : ['right', 'left']) });
    return question(scene, pairs(scene.random, 48, scene.lexicon.content, both), 0);
  },
};

const keyReadsIt: Family = {
  name: 'key-reads-it',
  truth,
  why: 'GPT-NeoX. The site is the content word. A head looks from the end at words whose key has the concept, and else at none in particular; it moves the mark of content words, not the concept. The key is the only reader.',
  make(seed) {
    const scene = createScene('key-reads-it', seed, {
      shape: { kind: 'neox', width: 64 },
      others: { '?': { out: -1.5 }, so: { out: -1.5 }, hence: { out: -1.5 }, thus: { out: -1.5 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer(),
        layer([
          {
            scores: [{ query: { ending: 8 }, key: { concept: 1 } }],
            moves: [{ from: { content: 1 }, to: { out: 3.5 } }],
          },
        ]),
      ],
    });
    return question(scene, pairs(scene.random, 40, scene.lexicon.content), 0, CONTENT);
  },
};

const saturatingReader: Family = {
  name: 'saturating-reader',
  truth,
  why: 'Llama. The concept is strong, and its only reader is level beyond a quarter of its usual strength: a small push changes nothing, but taking the concept away takes the whole margin away.',
  make(seed) {
    const scene = createScene('saturating-reader', seed, {
      shape: { kind: 'llama', width: 128 },
      meaning: (label, random) => ({ concept: 2 * signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer(), layer([], clipped({ concept: 1 }, 0.5, { out: 4 }))],
    });
    return question(scene, pairs(scene.random, 24, scene.lexicon.content), 1);
  },
};

const relayedCopy: Family = {
  name: 'relayed-copy',
  truth,
  why: 'GPT-2, six blocks. The third block copies the concept to another axis, and the fifth reads the copy only. After the second block there is no copy yet: everything passes through the concept.',
  make(seed) {
    const scene = createScene('relayed-copy', seed, {
      shape: { kind: 'gpt2', width: 64 },
      contentWords: 30,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer(),
        layer([], line({ concept: 1 }, { copy: 1.2 })),
        layer(),
        layer([], line({ copy: 1 }, { out: 2 })),
        layer(),
      ],
    });
    return question(scene, pairs(scene.random, 100, scene.lexicon.content), 1);
  },
};

const planeSummed: Family = {
  name: 'plane-summed',
  truth,
  why: 'GPT-NeoX. Words carry the label along one axis or along another, at random; the reader takes the sum of both. What tells the labels apart is the sum, and the sum is what is read; the difference of the two axes is left alone.',
  make(seed) {
    const scene = createScene('plane-summed', seed, {
      shape: { kind: 'neox', width: 128 },
      contentWords: 36,
      meaning: (label, random, index) => ({ [index % 2 ? 'first' : 'second']: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('first', 'second')]), layer(), layer([], line({ first: 1, second: 1 }, { out: 2.2 }))],
    });
    return question(scene, pairs(scene.random, 72, scene.lexicon.content), 0);
  },
};

const opposedReadersNet: Family = {
  name: 'opposed-readers-net',
  truth,
  why: 'Llama, five blocks. One block reads the concept for its label, a later one reads it against, a third as strongly. Both read the same direction after the site, and what they leave is the whole margin. Some words are hard to tell, and the data is unpaired and unbalanced.',
  make(seed) {
    const scene = createScene('opposed-readers-net', seed, {
      shape: { kind: 'llama', width: 64 },
      targets: { positive: ['yes', 'sure'], negative: ['no', 'never'] },
      meaning: (label, random) => ({ concept: blurred(label, random) }),
      layers: [
        layer([toEnd('concept')]),
        layer([], line({ concept: 1 }, { out: 3 })),
        layer(),
        layer([], line({ concept: 1 }, { out: -1 })),
        layer(),
      ],
    });
    return question(scene, singles(scene.random, { 1: 70, 0: 30 }, scene.lexicon.content), 0);
  },
};

const noisyLabels: Family = {
  name: 'noisy-labels',
  truth,
  why: 'GPT-2. The concept is the only thing that is read, as in the plainest model; one pair in twelve has its labels exchanged.',
  make(seed) {
    const scene = createScene('noisy-labels', seed, {
      shape: { kind: 'gpt2', width: 64 },
      contentWords: 40,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2 }))],
    });
    const clean = pairs(scene.random, 200, scene.lexicon.content);
    return question(scene, flipped(clean, 1 / 12, scene.random), 0);
  },
};

const fewPairs: Family = {
  name: 'few-pairs',
  truth,
  why: 'GPT-NeoX. The concept is strong and the only thing that is read; there are twelve pairs to see it by.',
  make(seed) {
    const scene = createScene('few-pairs', seed, {
      shape: { kind: 'neox', width: 48 },
      contentWords: 12,
      meaning: (label, random) => ({ concept: 1.5 * signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([], line({ concept: 1 }, { out: 2.5 })), layer()],
    });
    return question(scene, pairs(scene.random, 12, scene.lexicon.content), 0);
  },
};

const oneSidedReader: Family = {
  name: 'one-sided-reader',
  truth,
  why: 'GPT-2. Endings say no by themselves; the only reader is a ramp that begins where the concept is 0, so that one label is read and the other is not. The data is unpaired, with three of one label to seven of the other.',
  make(seed) {
    const scene = createScene('one-sided-reader', seed, {
      shape: { kind: 'gpt2', width: 128 },
      contentWords: 40,
      others: { '?': { out: -2 }, so: { out: -2 }, hence: { out: -2 }, thus: { out: -2 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer(), layer([], [{ reads: { concept: 1 }, writes: { out: 4 } }])],
    });
    return question(scene, singles(scene.random, { 1: 36, 0: 84 }, scene.lexicon.content), 1);
  },
};

const amongLargerThings: Family = {
  name: 'among-larger-things',
  truth,
  why: 'Llama. Content words bring four other things to the end, each three times as strong as the concept and without regard to the label; nothing reads those. The direction is the concept, which the reader takes with a large gain.',
  make(seed) {
    const nuisances = ['colour', 'size', 'age', 'shape'];
    const scene = createScene('among-larger-things', seed, {
      shape: { kind: 'llama', width: 64 },
      contentWords: 40,
      constant: 12,
      meaning: (label, random) => ({
        concept: 0.6 * signOf(label) * jitter(random),
        ...Object.fromEntries(nuisances.map((axis) => [axis, 1.8 * random.normal()])),
      }),
      layers: [layer([toEnd('concept', ...nuisances)]), layer(), layer([], line({ concept: 1 }, { out: 5 })), layer()],
    });
    return question(scene, pairs(scene.random, 80, scene.lexicon.content), 1, -1, { concept: 1 });
  },
};

const valueFromTheWord: Family = {
  name: 'value-from-the-word',
  truth,
  why: 'Llama, 32 wide. The site is the content word after the first block; a head of the last block takes the concept from there and writes it as the answer. Nothing has taken it elsewhere before.',
  make(seed) {
    const scene = createScene('value-from-the-word', seed, {
      shape: { kind: 'llama', width: 32 },
      meaning: (label, random) => ({ concept: blurred(label, random, 0.3) }),
      layers: [layer(), layer(), layer([{ ...toEnd(), moves: [{ from: { concept: 1 }, to: { out: 2 } }] }])],
    });
    return question(scene, pairs(scene.random, 36, scene.lexicon.content), 0, CONTENT);
  },
};

const closeDirection: Family = {
  name: 'close-direction',
  truth,
  why: 'GPT-2. The direction has a cosine of 0.96 to the axis that is read, and what else is in it does not go with the label: nine tenths of the margin pass through it.',
  make(seed) {
    const scene = createScene('close-direction', seed, {
      shape: { kind: 'gpt2', width: 96 },
      contentWords: 36,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random), colour: 0.5 * random.normal() }),
      layers: [layer([toEnd('concept', 'colour')]), layer(), layer([], line({ concept: 1 }, { out: 2.5 }))],
    });
    const direction = { concept: 0.96, colour: 0.28 };
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 1, -1, direction);
  },
};

export const causalFamilies: readonly Family[] = [
  lowGainWide,
  queryReadsIt,
  keyReadsIt,
  saturatingReader,
  relayedCopy,
  planeSummed,
  opposedReadersNet,
  noisyLabels,
  fewPairs,
  oneSidedReader,
  amongLargerThings,
  valueFromTheWord,
  closeDirection,
];
