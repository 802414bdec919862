/** Families whose label can be read where the choice does not pass, or along what the norms take away. */

import { layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { about, always, asIs, ask, bring, createStage, family, step } from './stage.ts';
import { inTurn, oneWord, paired, sentence, signOf, unpaired } from './words.ts';

export const template: Family[] = [
  family(
    'echo-at-a-filler',
    'epiphenomenal-template',
    'All words after the content word receive an echo of it, but the end takes what it answers by from the content word itself, and nothing reads this filler.',
    (seed, name) => {
      const echo = bring([{ from: { c: 1 }, to: { echo: 1.5 } }], { constant: 2 });
      const stage = createStage(name, seed, {
        kind: 'neox',
        width: 96,
        gain: 0.4,
        chatter: 0.03,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer([bring(asIs('c')), echo]), layer([], line({ c: 1 }, { out: 1 })), layer()],
      });
      const dataset = paired(stage.random, 30, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, position: -2 });
    },
  ),
  family(
    'mean-of-all-numbers',
    'epiphenomenal-template',
    'The direction is the mean of the residual stream, which carries the label here and which every layer norm of the model takes away, so that no push along it changes anything.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 64,
        gain: 2,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [
          layer([bring([{ from: { c: 1 }, to: { c: 1, level: 2 } }])]),
          layer(),
          layer([], [...step({ c: 1 }, -0.9, 0.9, { out: 2 }), always({ out: -1 })]),
        ],
      });
      const dataset = paired(stage.random, 50, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 1, direction: { level: 1 } });
    },
  ),
  family(
    'format-of-the-prompt',
    'epiphenomenal-template',
    'The first word of a prompt tells its label, because the two classes were written with different openings, but the end looks at the content word alone.',
    (seed, name) => {
      const openings = { 1: ['Q', 'Ask', 'Query'], 0: ['Note', 'Item', 'Entry'] } as const;
      const cast = Object.fromEntries(
        ([1, 0] as const).flatMap((label) => openings[label].map((word) => [word, { format: signOf(label) }])),
      );
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 48,
        gain: 2,
        mix: 0.5,
        cast,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer(), layer([bring(asIs('c'))]), layer([], line({ c: 1 }, { out: 1 }))],
      });
      const dataset = paired(
        stage.random,
        66,
        (index, random) => {
          const write = sentence(random);
          return (label) => `${inTurn(openings[label], index)} ${write(inTurn(stage.words.content[label], index))}`;
        },
        (index) => `opening ${index % 3}`,
      );
      return ask(stage, dataset, { layer: 0, position: 0 });
    },
  ),
  family(
    'looked-at-for-its-topic',
    'epiphenomenal-template',
    'Later heads still look at the content word, but take its topic, which is the same in both classes and not about the target words, as the concept was fetched before this site.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 48,
        gain: 3,
        meaning: (label, random) => ({ c: signOf(label) * about(random), topic: 1 }),
        blocks: [
          layer(),
          layer([bring([{ from: { c: 1 }, to: { c: 1 } }])]),
          layer([bring([{ from: { topic: 1 }, to: { theme: 0.3 } }])], line({ c: 1 }, { out: 1 })),
          layer([bring([{ from: { topic: 1 }, to: { theme2: 0.3 } }])]),
          layer(),
        ],
      });
      const dataset = unpaired(
        stage.random,
        { 1: 50, 0: 70 },
        oneWord(stage.words.content, () => ({ after: 1 })),
      );
      return ask(stage, dataset, { layer: 1, position: -3 });
    },
  ),
  family(
    'the-other-word',
    'epiphenomenal-template',
    'Two words of each prompt carry the label in different ways, and the end looks at the second alone, whatever the first one at this site says.',
    (seed, name) => {
      const glad = ['glorp', 'glimt', 'glane', 'glusk', 'glibe', 'glorn', 'gladda', 'glemo'];
      const grim = ['narp', 'nimt', 'nane', 'nusk', 'nibe', 'norn', 'nadda', 'nemo'];
      const cast = Object.fromEntries([
        ...glad.map((word) => [word, { mood: 1.2 }]),
        ...grim.map((word) => [word, { mood: -1.2 }]),
      ]);
      const stage = createStage(name, seed, {
        kind: 'neox',
        width: 64,
        gain: 8,
        chatter: 8,
        cast,
        meaning: (label, random) => ({ c: signOf(label) * about(random, 0.4) }),
        blocks: [layer(), layer([bring(asIs('c'))]), layer([], line({ c: 1 }, { out: 1 })), layer()],
      });
      const dataset = unpaired(stage.random, { 1: 90, 0: 30 }, (index, random) => {
        const write = sentence(random, { before: [2, 5], after: 1 });
        const between = random.choose(['his', 'her', 'their']);
        return (label) =>
          write(random.choose(label === 1 ? glad : grim), between, inTurn(stage.words.content[label], index));
      });
      return ask(stage, dataset, { layer: 0, position: -5 });
    },
  ),
];
