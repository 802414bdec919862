/** Families whose direction is all that the model chooses by, and which differ in how it is read: by keys, queries, saturating, one-sided and non-monotonic units, with gains a factor of 100 apart. */

import { layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { about, always, asIs, ask, bring, createStage, family, step } from './stage.ts';
import { inTurn, oneWord, paired, sentence, signOf, unpaired } from './words.ts';

export const causalReaders: Family[] = [
  family(
    'faint-readout',
    'causal',
    'The end receives one axis with the label, and the only thing that tells the target words apart is a line from that axis, however small its gain.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 48,
        gain: 0.15,
        chatter: 0.01,
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer([bring(asIs('c'))]), layer([], line({ c: 1 }, { out: 1 }))],
      });
      return ask(stage, paired(stage.random, 40, oneWord(stage.words.content)), { layer: 0 });
    },
  ),
  family(
    'loud-readout',
    'causal',
    'The end receives one axis with the label, and a line from that axis to the target words, a hundred times as steep as usual small ones, decides everything.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'neox',
        width: 64,
        gain: 15,
        chatter: 20,
        targets: { positive: ['warm', 'hot'], negative: ['cold', 'cool'] },
        meaning: (label, random) => ({ c: signOf(label) + 0.45 * random.normal() }),
        blocks: [layer([bring(asIs('c'))]), layer([], line({ c: 1 }, { out: 1 })), layer()],
      });
      const dataset = paired(stage.random, 30, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { c: 1 } });
    },
  ),
  family(
    'read-by-keys',
    'causal',
    'The concept at the content word is read by nothing but the key of a head, which decides whether the end looks at that word or at the first token, whose values say opposite things.',
    (seed, name) => {
      const head = {
        scores: [{ query: { end: 12 }, key: { sink: 1, mark: 1, c: 0.5 } }],
        moves: [
          { from: { mark: 1 }, to: { out: 1 } },
          { from: { sink: 1 }, to: { out: -1 } },
        ],
      };
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 64,
        gain: 3,
        cast: { '<s>': { sink: 1 } },
        meaning: (label, random) => ({ c: signOf(label) * about(random) }),
        blocks: [layer(), layer([head]), layer()],
      });
      const dataset = paired(
        stage.random,
        60,
        oneWord(stage.words.content, () => ({ lead: ['<s>'], after: 3 })),
      );
      return ask(stage, dataset, { layer: 0, position: -5 });
    },
  ),
  family(
    'read-by-queries',
    'causal',
    'The concept at the end is read by nothing but the query of a head, which looks by it at one of two landmarks that stand in every prompt and say opposite things.',
    (seed, name) => {
      const head = {
        scores: [{ query: { c: 8 }, key: { pole: 1 } }],
        moves: [{ from: { pole: 1 }, to: { out: 1 } }],
      };
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 64,
        gain: 4,
        chatter: 4,
        cast: { north: { pole: 1 }, south: { pole: -1 } },
        meaning: (label, random) => ({ c: signOf(label) * about(random, 0.5) }),
        blocks: [layer([bring(asIs('c'))]), layer(), layer([head]), layer()],
      });
      const dataset = paired(stage.random, 50, (index, random) => {
        const lead = random.shuffle(['north', 'south']);
        const write = sentence(random, { lead, after: 1 });
        return (label) => write(inTurn(stage.words.content[label], index));
      });
      return ask(stage, dataset, { layer: 1 });
    },
  ),
  family(
    'far-from-zero',
    'causal',
    'Both classes lie far on the same side of zero along the axis, and the only reader is a step between them that is flat on both sides.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'llama',
        width: 64,
        gain: 2.5,
        chatter: 3,
        constant: 8,
        meaning: (label, random) => ({ c: 4 + signOf(label) * about(random, 0.3) }),
        blocks: [
          layer([bring(asIs('c'))]),
          layer([], [...step({ c: 1 }, 3, 4.4, { out: 2 }), always({ out: -1 })]),
          layer(),
        ],
      });
      const dataset = paired(stage.random, 70, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { c: 1 } });
    },
  ),
  family(
    'presence-only',
    'causal',
    'One class has the concept and the other has nothing, and the answer is negative unless a unit that reads this axis alone finds it.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'gpt2',
        width: 96,
        gain: 3,
        perLabel: 30,
        meaning: (label, random) => (label === 1 ? { c: 1.4 * about(random) } : {}),
        blocks: [
          layer([bring(asIs('c'))]),
          layer([], [{ reads: { c: 1 }, bias: -0.2, writes: { out: 1.6 } }, always({ out: -1 })]),
        ],
      });
      const dataset = unpaired(stage.random, { 1: 20, 0: 110 }, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0 });
    },
  ),
  family(
    'tent-reader',
    'causal',
    'All that tells the target words apart is read from this axis, on which both classes lie where the reader rises, although it falls again beyond them.',
    (seed, name) => {
      const stage = createStage(name, seed, {
        kind: 'neox',
        width: 48,
        gain: 2,
        chatter: 1,
        meaning: (label, random) => ({ c: signOf(label) * about(random, 0.2) }),
        blocks: [
          layer([bring(asIs('c'))]),
          layer(
            [],
            [
              ...step({ c: 1 }, -2, 2, { out: 4 }),
              always({ out: -2 }),
              { reads: { c: 1 }, bias: -2.4, writes: { out: -1.5 } },
            ],
          ),
        ],
      });
      const dataset = paired(stage.random, 36, oneWord(stage.words.content));
      return ask(stage, dataset, { layer: 0, direction: { c: 1 } });
    },
  ),
];
