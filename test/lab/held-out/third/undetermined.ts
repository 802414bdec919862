/** Families of which no verdict is possible: the label cannot be read at the site, or the model does not answer differently by it. */

import { missing } from '../../../../src/lab/core/missing.ts';
import { layer, line } from '../blueprint.ts';
import type { Example, Family, Label } from '../family.ts';
import { about, asIs, ask, bring, createStage, family } from './stage.ts';
import { inTurn, oneWord, paired, sentence, signOf, unpaired } from './words.ts';

export const undetermined: Family[] = [
  family(
    'exclusive-or',
    'undetermined',
    'The label is the exclusive or of two axes at this site, so that no direction of the residual stream tells the classes apart, although the model answers by it.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 64,
        gain: 2,
        mix: 0,
        perLabel: 24,
        meaning: (label, random, index) => {
          const first = index % 2 === 0 ? 1 : -1;
          return { c: first * about(random, 0.1), c2: first * signOf(label) * about(random, 0.1) };
        },
        blocks: [
          layer([bring(asIs('c', 'c2'))]),
          layer(
            [],
            [
              { reads: { c: 1, c2: 1 }, writes: { out: 0.5 } },
              { reads: { c: -1, c2: -1 }, writes: { out: 0.5 } },
              { reads: { c: 1, c2: -1 }, writes: { out: -0.5 } },
              { reads: { c: -1, c2: 1 }, writes: { out: -0.5 } },
            ],
          ),
          layer(),
        ],
      });
      return ask(stage, paired(stage.random, 72, oneWord(stage.words.content)), { layer: 0 });
    },
  ),
  family(
    'labels-dealt-out',
    'undetermined',
    'The labels were dealt out to the prompts without regard to their words, and so go with nothing at this site and with no answer, although the axis of the words is read.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 48,
        gain: 2,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer([bring(asIs('c'))]), layer([], line({ c: 1 }, { out: 1 }))],
      });
      const { random } = stage;
      const prompts = paired(random, 80, oneWord(stage.words.content)).map(({ prompt }) => prompt);
      const labels = random.shuffle(prompts.map((_, i): Label => (i % 2 === 0 ? 1 : 0)));
      const dataset = prompts.map((prompt, i): Example => ({ prompt, label: labels[i] ?? missing('label', i) }));
      return ask(stage, random.shuffle(dataset), { layer: 0 });
    },
  ),
  family(
    'another-word-decides',
    'undetermined',
    'The model answers strongly by a second word that is the same in both prompts of a pair, and no differently between the classes of the first, which can be read at the end.',
    (seed, name) => {
      const cast = { amber: { vote: 1 }, coral: { vote: 0.7 }, slate: { vote: -1 }, ebony: { vote: -0.7 } };
      const stage = createStage(name, seed, {
        kind: 'neox',
        width: 96,
        gain: 4,
        mix: 0,
        cast: Object.fromEntries(Object.entries(cast).map(([word, named]) => [word, { ...named, ballot: 1 }])),
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [
          layer([bring(asIs('c')), bring(asIs('vote'), { end: 12 }, { ballot: 1 })]),
          layer([], line({ vote: 1 }, { out: 1 })),
          layer(),
        ],
      });
      const voters = Object.keys(cast);
      const dataset = paired(stage.random, 64, (index, random) => {
        const write = sentence(random);
        const voter = inTurn(voters, Math.floor(index / 2));
        return (label) => write(inTurn(stage.words.content[label], index), voter);
      });
      return ask(stage, dataset, { layer: 0, direction: { c: 1 } });
    },
  ),
  family(
    'not-yet-fetched',
    'undetermined',
    'The end fetches the concept in the block after this site and has nothing of the content word before, so that the label cannot be read there, although the model answers by it.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 128,
        gain: 3,
        mix: 0,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer(), layer(), layer([bring(asIs('c'))]), layer([], line({ c: 1 }, { out: 1 }))],
      });
      return ask(stage, unpaired(stage.random, { 1: 100, 0: 100 }, oneWord(stage.words.content)), { layer: 1 });
    },
  ),
  family(
    'heads-that-cancel',
    'undetermined',
    'Two heads of one block take the concept from the content word with opposite signs, so that the model does not answer differently between the classes.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 96,
        gain: 3,
        mix: 0,
        chatter: 1,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [
          layer(),
          layer([bring([{ from: { c: 1 }, to: { out: 1 } }]), bring([{ from: { c: 1 }, to: { out: -1 } }])]),
          layer(),
        ],
      });
      return ask(stage, paired(stage.random, 45, oneWord(stage.words.content)), { layer: 0, position: -4 });
    },
  ),
];
