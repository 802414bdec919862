/** Families whose direction moves the choice, and yet is not all that the model uses, or not what it uses itself. */

import { clipped, layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { about, always, asIs, ask, bring, createStage, family, step } from './stage.ts';
import { inTurn, oneWord, paired, sentence, signOf, unpaired } from './words.ts';

export const weak: Family[] = [
  family(
    'two-routes',
    'weak-causal',
    'Half of what tells the target words apart comes from this axis at the end, and the other half is fetched from the content word later, past this site.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 64,
        gain: 2,
        chatter: 2.5,
        meaning: (label, random) => ({ c: signOf(label) + 0.45 * random.normal() }),
        blocks: [
          layer([bring(asIs('c'))]),
          layer([bring([{ from: { c: 1 }, to: { out: 0.5 } }])], line({ c: 1 }, { out: 0.5 })),
        ],
      });
      return ask(stage, paired(stage.random, 50, oneWord(stage.words.content)), { layer: 0 });
    },
  ),
  family(
    'backup-route',
    'weak-causal',
    'What is put in along this axis makes the answer, but where it is taken out a later block notices that nothing was written and answers by a spare that it fetches from the content word.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 64,
        gain: 2.5,
        meaning: (label, random) => ({ c: signOf(label) * about(random, 0.1), spare: signOf(label) }),
        blocks: [
          layer([bring(asIs('c'))]),
          layer([], clipped({ c: 1.4 }, 1, { out: 1 })),
          layer(
            [bring(asIs('spare'))],
            [
              { reads: { out: 1 }, writes: { size: 1.2 } },
              { reads: { out: -1 }, writes: { size: 1.2 } },
            ],
          ),
          layer(
            [],
            [
              { reads: { spare: 1, size: -1 }, writes: { out: 1 } },
              { reads: { spare: -1, size: -1 }, writes: { out: -1 } },
            ],
          ),
        ],
      });
      const dataset = paired(stage.random, 40, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { c: 1 } });
    },
  ),
  family(
    'half-aligned',
    'weak-causal',
    'The direction has a cosine of one half to the axis that is read and lies otherwise along one that says nothing of the label, so that it moves a quarter of what decides.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'neox',
        width: 96,
        gain: 2,
        meaning: (label, random) => ({ c: 1.5 * signOf(label) * about(random), idle: 0.15 * random.normal() }),
        blocks: [layer([bring(asIs('c', 'idle'))]), layer([], line({ c: 1 }, { out: 0.8 })), layer()],
      });
      const dataset = unpaired(stage.random, { 1: 60, 0: 45 }, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { c: 1, idle: Math.sqrt(3) } });
    },
  ),
  family(
    'both-needed',
    'weak-causal',
    'The answer is positive only where two axes are, so that taking this one out ends it, but putting it in where the other one is negative does not make it.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 64,
        gain: 3,
        chatter: 2,
        meaning: (label, random) => ({ c: signOf(label) * about(random, 0.2), c2: signOf(label) * about(random, 0.2) }),
        blocks: [
          layer([bring(asIs('c', 'c2'))]),
          layer([], [...step({ c: 1, c2: 1 }, 1, 1.6, { out: 1.6 }), always({ out: -0.8 })]),
          layer(),
        ],
      });
      const dataset = paired(stage.random, 48, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { c: 1 } });
    },
  ),
  family(
    'subspace-illusion',
    'weak-causal',
    'The direction is half an axis with the label that nothing reads and half an axis that is read but never set, so that exchanging it wakes a route that the model does not use itself.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 64,
        gain: 2,
        meaning: (label, random) => {
          const sign = signOf(label);
          return { c: sign * about(random), u: 1.2 * sign * about(random, 0.1), dormant: 0.05 * random.normal() };
        },
        blocks: [layer([bring(asIs('c', 'u', 'dormant'))]), layer(), layer([], line({ c: 1, dormant: 1 }, { out: 1 }))],
      });
      const dataset = paired(stage.random, 55, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { u: 1, dormant: 1 } });
    },
  ),
  family(
    'against-a-bystander',
    'weak-causal',
    'The direction is close to the axis that is read but leans against a bystander that goes with it, so that less than half of what decides moves along it.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 96,
        gain: 1.5,
        meaning: (label, random) => ({ c: signOf(label) * about(random, 0.1), u: signOf(label) * about(random, 0.1) }),
        blocks: [layer([bring(asIs('c', 'u'))]), layer([], line({ c: 1 }, { out: 1 })), layer()],
      });
      const dataset = paired(stage.random, 90, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { c: 0.9, u: -0.436 } });
    },
  ),
  family(
    'one-of-two-words',
    'weak-causal',
    'Two words of each prompt carry the label and the end takes the mean of both, so that the site at one of them has half of what decides.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 80,
        gain: 3,
        chatter: 3,
        perLabel: 24,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer(), layer(), layer([bring([{ from: { c: 1 }, to: { out: 1 } }])]), layer()],
      });
      const dataset = paired(stage.random, 72, (index, random) => {
        const write = sentence(random, { after: 1 });
        const between = random.choose(['and', 'with', 'by'].filter((word) => stage.words.all.includes(word)));
        return (label) => {
          const words = stage.words.content[label];
          return write(inTurn(words, index), between, inTurn(words, index * 5 + 1));
        };
      });
      return ask(stage, dataset, { layer: 1, position: -3 });
    },
  ),
  family(
    'used-after-some-endings',
    'weak-causal',
    'After one ending the model answers by this axis, and after the other, in half of the prompts, by what it fetches from the content word later, past this site.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 96,
        gain: 2,
        cast: { '<s>': { sink: 1 }, ':': { here: 1 }, which: { there: 1 } },
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [
          layer([bring(asIs('c'))]),
          layer(
            [
              {
                scores: [
                  { query: { end: 10 }, key: { sink: 1 } },
                  { query: { there: 20 }, key: { mark: 1 } },
                ],
                moves: [{ from: { c: 1 }, to: { out: 1 } }],
              },
            ],
            [
              { reads: { c: 1, here: 4 }, bias: -4, writes: { out: 1 } },
              { reads: { c: -1, here: 4 }, bias: -4, writes: { out: -1 } },
            ],
          ),
          layer(),
        ],
      });
      const ending = (index: number) => (index % 2 === 0 ? ':' : 'which');
      const dataset = paired(
        stage.random,
        60,
        oneWord(stage.words.content, (index) => ({ lead: ['<s>'], ending: ending(index) })),
        (index) => `ending ${ending(index)}`,
      );
      return ask(stage, dataset, { layer: 0, direction: { c: 1 } });
    },
  ),
];
