/** Families whose direction is all that the model chooses by, under circumstances that make this hard to see: noise, massive activations, depth, copies, bystanders, negative heads, wrong labels. */

import { layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { about, always, asIs, ask, bring, createStage, family, step } from './stage.ts';
import { mislabelled, oneWord, paired, signOf } from './words.ts';

export const causalSettings: Family[] = [
  family(
    'copied-and-erased',
    'causal',
    'A block copies the axis to another and takes it out of the residual stream, and the copy alone is read later, so that all of it passes through this axis at this site.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 64,
        gain: 2,
        chatter: 2,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [
          layer([bring(asIs('c'))]),
          layer([], line({ c: 1 }, { copy: 1.3, c: -1 })),
          layer(),
          layer([], [...step({ copy: 1 }, -0.9, 0.9, { out: 2 }), always({ out: -1 })]),
          layer(),
        ],
      });
      return ask(stage, paired(stage.random, 40, oneWord(stage.words.content)), { layer: 0 });
    },
  ),
  family(
    'fitted-with-bystander',
    'causal',
    'What is read and an axis that nothing reads go together in every word, so that the difference of the classes has a cosine of about nine tenths to what is read and carries all of it.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 32,
        gain: 1.5,
        noise: 0.8,
        meaning: (label, random) => {
          const value = signOf(label) * about(random);
          return { c: value, u: 0.48 * value * about(random, 0.1) };
        },
        blocks: [layer([bring(asIs('c', 'u'))]), layer([], line({ c: 1 }, { out: 1 }))],
      });
      return ask(stage, paired(stage.random, 100, oneWord(stage.words.content)), { layer: 0 });
    },
  ),
  family(
    'population-of-steps',
    'causal',
    'The label is spread over three axes of equal strength, each read by a staircase of saturating units, and the direction of all three together carries everything that is read.',
    (seed, name) => {
      const axes = ['c', 'c2', 'c3'];
      const stairs = axes.flatMap((axis, i) =>
        [-0.9, -0.5, -0.1, 0.3, 0.7].flatMap((from) =>
          step({ [axis]: 1 }, from + 0.05 * i, from + 0.3 + 0.05 * i, { out: 2 / 15 }),
        ),
      );
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 96,
        gain: 4,
        meaning: (label, random) => Object.fromEntries(axes.map((axis) => [axis, signOf(label) * about(random, 0.3)])),
        blocks: [layer([bring(asIs(...axes))]), layer([], [...stairs, always({ out: -1 })]), layer()],
      });
      return ask(stage, paired(stage.random, 80, oneWord(stage.words.content)), {
        layer: 0,
        direction: { c: 1, c2: 1, c3: 1 },
      });
    },
  ),
  family(
    'wrong-labels',
    'causal',
    'The axis is all that is read, and only the labels of one pair in eight are wrong.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 64,
        gain: 2,
        chatter: 3,
        meaning: (label, random) => ({ c: signOf(label) * about(random, 0.6) }),
        blocks: [
          layer([bring(asIs('c'))]),
          layer([], [...step({ c: 1 }, -1.2, 1.2, { out: 2 }), always({ out: -1 })]),
          layer(),
        ],
      });
      const dataset = paired(stage.random, 64, oneWord(stage.words.content));
      return ask(stage, mislabelled(dataset, 1 / 8, stage.random), { layer: 0, direction: { c: 1 } });
    },
  ),
  family(
    'massive-activations',
    'causal',
    'Every token has an activation some sixty times as large as the concept, and the first token one much larger, but the concept alone tells the target words apart.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 64,
        gain: 3,
        chatter: 1,
        constant: 60,
        noise: 2,
        cast: { '<s>': { constant: 300 } },
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer([bring(asIs('c'))]), layer(), layer([], line({ c: 1 }, { out: 1 }))],
      });
      const dataset = paired(
        stage.random,
        24,
        oneWord(stage.words.content, () => ({ lead: ['<s>'] })),
      );
      return ask(stage, dataset, { layer: 1 });
    },
  ),
  family(
    'deep-and-faint',
    'causal',
    'A concept that is small against the noise is amplified by block after block, and the last one makes the answer of nothing else.',
    (seed, name) => {
      const amplify = () => layer([], line({ c: 1 }, { c: 0.3 }));
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 64,
        gain: 2,
        noise: 3,
        mix: 0.6,
        chatter: 0.1,
        perLabel: 12,
        meaning: (label, random) => ({ c: 0.4 * signOf(label) * about(random) }),
        blocks: [
          layer([bring(asIs('c'))]),
          ...Array.from({ length: 6 }, amplify),
          layer([], [...step({ c: 1 }, -1.5, 1.5, { out: 2 }), always({ out: -1 })]),
        ],
      });
      const dataset = paired(stage.random, 12, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 2, direction: { c: 1 } });
    },
  ),
];
