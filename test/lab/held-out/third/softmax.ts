/** Families whose direction at the end can be read and goes with the choice, which is made at the same site by something else; pushing along it only shrinks all logits through the norms. */

import { layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { about, always, asIs, ask, bring, createStage, family, step } from './stage.ts';
import { inTurn, oneWord, paired, sentence, signOf, unpaired } from './words.ts';

export const softmax: Family[] = [
  family(
    'bystander',
    'epiphenomenal-softmax',
    'Nothing after this site reads the axis, which goes with the label as much as the one beside it that is read.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 64,
        gain: 2,
        chatter: 2.5,
        meaning: (label, random) => ({ c: signOf(label) * about(random), u: signOf(label) + 0.5 * random.normal() }),
        blocks: [layer([bring(asIs('c', 'u'))]), layer([], line({ c: 1 }, { out: 1 })), layer()],
      });
      const dataset = paired(stage.random, 40, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { u: 1 } });
    },
  ),
  family(
    'loud-bystander',
    'epiphenomenal-softmax',
    'The axis is the strongest sign of the label at this site, several times as large as the one that is read, but no block and no target word reads it.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 96,
        gain: 1.5,
        perLabel: 30,
        meaning: (label, random) => ({ c: 0.7 * signOf(label) * about(random), u: 3 * signOf(label) * about(random) }),
        blocks: [
          layer([bring(asIs('c', 'u'))]),
          layer([], [...step({ c: 1 }, -0.6, 0.6, { out: 2 }), always({ out: -1 })]),
          layer(),
        ],
      });
      const dataset = unpaired(stage.random, { 1: 40, 0: 130 }, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 1, direction: { u: 1 } });
    },
  ),
  family(
    'already-spent',
    'epiphenomenal-softmax',
    'The only block that reads this axis comes before the site, where its result lies along another axis that the target words read, so that what is left of it is read no more.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'neox',
        width: 64,
        gain: 3,
        chatter: 3,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer([bring(asIs('c'))]), layer([], line({ c: 1 }, { out: 1 })), layer(), layer()],
      });
      const dataset = paired(stage.random, 60, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 1, direction: { c: 1 } });
    },
  ),
  family(
    'idle-pattern',
    'epiphenomenal-softmax',
    'The axis turns a head from one landmark to another, but both hand over the same, so that the answer depends on the other axis alone.',
    (seed, name) => {
      const head = {
        scores: [{ query: { u: 8 }, key: { pole: 1 } }],
        moves: [{ from: { topic: 1 }, to: { theme: 1 } }],
      };
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 48,
        gain: 2,
        constant: 7,
        cast: { east: { pole: 1, topic: 1 }, west: { pole: -1, topic: 1 } },
        meaning: (label, random) => ({ c: signOf(label) * about(random), u: signOf(label) * about(random) }),
        blocks: [layer([bring(asIs('c', 'u'))]), layer([head]), layer([], line({ c: 1 }, { out: 1 }))],
      });
      const dataset = paired(stage.random, 50, (index, random) => {
        const write = sentence(random, { lead: random.shuffle(['east', 'west']) });
        return (label) => write(inTurn(stage.words.content[label], index));
      });
      return ask(stage, dataset, { layer: 0, direction: { u: 1 } });
    },
  ),
  family(
    'opposed-readers',
    'epiphenomenal-softmax',
    'Units of the same block read the axis with different gains and write it with opposite signs, which leaves nothing of it at any strength, and the answer depends on the other axis alone.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'neox',
        width: 64,
        gain: 2,
        meaning: (label, random) => ({ c: signOf(label) * about(random), u: signOf(label) * about(random) }),
        blocks: [
          layer([bring(asIs('c', 'u'))]),
          layer([], [...line({ u: 2 }, { out: 0.5 }), ...line({ u: 1 }, { out: -1 }), ...line({ c: 1 }, { out: 1 })]),
          layer(),
        ],
      });
      const dataset = paired(stage.random, 45, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { u: 1 } });
    },
  ),
  family(
    'dead-end-readers',
    'epiphenomenal-softmax',
    'Units and a head read the axis and write to others that no block and no word reads, while the answer comes from the axis beside it with a large gain.',
    (seed, name) => {
      const self = bring([{ from: { u: 1 }, to: { dead: 0.5 } }], { end: 12 }, { end: 1 });
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 160,
        gain: 12,
        chatter: 12,
        meaning: (label, random) => ({ c: signOf(label) * about(random), u: signOf(label) * about(random) }),
        blocks: [
          layer([bring(asIs('c', 'u'))]),
          layer([], line({ c: 1 }, { out: 1 })),
          layer([self], [...line({ u: 1 }, { dead2: 0.5 }), { reads: { u: 1 }, bias: -0.3, writes: { dead: 0.5 } }]),
        ],
      });
      const dataset = paired(stage.random, 200, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 1, direction: { u: 1 } });
    },
  ),
];
