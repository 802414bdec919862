/** Families whose direction acts, but in part, beside a stand-in, against its label, or by what natural data never sets off. */

import { clipped, FOCUS, layer, line } from '../blueprint.ts';
import type { Family } from '../family.ts';
import { CONTENT, pairs, singles } from '../prompts.ts';
import { question } from '../question.ts';
import { blurred, createScene, jitter, signOf } from '../scene.ts';
import { beyond, bothSides, choosingSide, deliver, gated, SIDES, toEnd } from './parts.ts';

const truth = { verdict: 'weak-causal' } as const;

const aQuarterByAQuery: Family = {
  name: 'a-quarter-by-a-query',
  truth,
  why: 'The query of a head reads the concept at the end for about a quarter of the margin, and another head brings the rest from the content word past the site.',
  make(seed) {
    const scene = createScene('a-quarter-by-a-query', seed, {
      shape: { kind: 'gpt2', width: 96 },
      contentWords: 30,
      others: SIDES,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [layer([toEnd('concept')]), layer([deliver({ out: 1.8 })]), layer([choosingSide(0.65)]), layer()],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content, bothSides), 0);
  },
};

const standInPastTheSite: Family = {
  name: 'stand-in-past-the-site',
  truth,
  why: 'The reader levels off at less than the concept has at the site or than a later head brings past it, so that either can go and the margin stays.',
  make(seed) {
    const scene = createScene('stand-in-past-the-site', seed, {
      shape: { kind: 'neox', width: 64 },
      contentWords: 30,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer([deliver({ late: 1 })]),
        layer([], clipped({ concept: 0.9, late: 1 }, 0.4, { out: 5 })),
        layer(),
      ],
    });
    return question(scene, pairs(scene.random, 48, scene.lexicon.content), 0);
  },
};

const levelBrake: Family = {
  name: 'level-brake',
  truth,
  why: 'The direction goes with the label and is read against it, up to a level, while the answer comes three times as strongly from another axis.',
  make(seed) {
    const scene = createScene('level-brake', seed, {
      shape: { kind: 'gpt2', width: 64 },
      contentWords: 36,
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        brake: signOf(label) * jitter(random),
      }),
      layers: [
        layer([toEnd('concept', 'brake')]),
        layer(),
        layer([], [...line({ concept: 1 }, { out: 3 }), ...clipped({ brake: 1 }, 0.4, { out: -2.5 })]),
      ],
    });
    return question(scene, pairs(scene.random, 72, scene.lexicon.content), 1, -1, { brake: 1 });
  },
};

const beyondNature: Family = {
  name: 'beyond-nature',
  truth,
  why: 'The direction goes with the label, and its only reader begins beyond the strongest that any word has, so that pushing moves the answers that natural prompts take from another axis.',
  make(seed) {
    const scene = createScene('beyond-nature', seed, {
      shape: { kind: 'llama', width: 128 },
      contentWords: 36,
      meaning: (label, random) => ({
        concept: signOf(label) * jitter(random),
        sleeper: signOf(label) * jitter(random),
      }),
      layers: [
        layer([toEnd('concept', 'sleeper')]),
        layer(),
        layer([], [...line({ concept: 1 }, { out: 2 }), ...beyond('sleeper', 2, { out: 3 })]),
        layer(),
      ],
    });
    return question(scene, pairs(scene.random, 60, scene.lexicon.content), 1, -1, { sleeper: 1 });
  },
};

const mostlyTakenBefore: Family = {
  name: 'mostly-taken-before',
  truth,
  why: 'The site is the content word after a head has taken seven tenths of the answer from it, and before another takes the other three.',
  make(seed) {
    const scene = createScene('mostly-taken-before', seed, {
      shape: { kind: 'llama', width: 64 },
      targets: { positive: ['yes', 'sure'], negative: ['no', 'never'] },
      meaning: (label, random) => ({ concept: blurred(label, random, 0.5) }),
      layers: [layer(), layer([deliver({ out: 1.75 })]), layer([deliver({ out: 0.75 })]), layer()],
    });
    return question(scene, pairs(scene.random, 48, scene.lexicon.content), 1, CONTENT);
  },
};

const oneTemplateInThree: Family = {
  name: 'one-template-in-three',
  truth,
  why: 'A third of the prompts are answered by the concept that was taken to the end, and the others by a later head that looks at the content word itself.',
  make(seed) {
    const scene = createScene('one-template-in-three', seed, {
      shape: { kind: 'gpt2', width: 80 },
      // No multiple of three, so that each word occurs in both templates.
      contentWords: 25,
      others: { hence: { asks: 1 }, thus: { tells: 1 }, once: { sink: 1 } },
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random) }),
      layers: [
        layer([toEnd('concept')]),
        layer([], gated('concept', 'asks', 2.2)),
        layer([
          {
            scores: [
              { query: { tells: FOCUS }, key: { content: 1 } },
              { query: { asks: FOCUS }, key: { sink: 1 } },
            ],
            moves: [{ from: { concept: 1 }, to: { out: 2.2 } }],
          },
        ]),
        layer(),
      ],
    });
    const template = (index: number) => ({
      opening: () => ['once'],
      ...(index % 3 === 0 ? { ending: 'hence', template: 'asks' } : { ending: 'thus', template: 'tells' }),
    });
    return question(scene, pairs(scene.random, 75, scene.lexicon.content, template), 0);
  },
};

const oneAxisOfThree: Family = {
  name: 'one-axis-of-three',
  truth,
  why: 'Three axes go with the label, each in its own way, and a loud reader takes the sum of them, of which the direction is one.',
  make(seed) {
    const scene = createScene('one-axis-of-three', seed, {
      shape: { kind: 'llama', width: 256 },
      contentWords: 40,
      constant: 30,
      meaning: (label, random) => ({
        first: signOf(label) * jitter(random),
        second: signOf(label) * jitter(random),
        third: signOf(label) * jitter(random),
      }),
      layers: [
        layer([toEnd('first', 'second', 'third')]),
        layer([], line({ first: 1, second: 1, third: 1 }, { out: 3 })),
      ],
    });
    return question(scene, pairs(scene.random, 100, scene.lexicon.content), 0, -1, { first: 1 });
  },
};

const atSixtyDegrees: Family = {
  name: 'at-sixty-degrees',
  truth,
  why: 'The direction has a cosine of 0.5 to the axis that is read, and as the rest of it does not go with the label, a quarter of the margin passes through it.',
  make(seed) {
    const scene = createScene('at-sixty-degrees', seed, {
      shape: { kind: 'neox', width: 128 },
      contentWords: 40,
      meaning: (label, random) => ({ concept: signOf(label) * jitter(random), colour: 0.5 * random.normal() }),
      layers: [layer([toEnd('concept', 'colour')]), layer([], line({ concept: 1 }, { out: 2.5 })), layer()],
    });
    const dataset = singles(scene.random, { 1: 60, 0: 90 }, scene.lexicon.content);
    return question(scene, dataset, 0, -1, { concept: 0.5, colour: Math.sqrt(0.75) });
  },
};

export const weakCausalFamilies: readonly Family[] = [
  aQuarterByAQuery,
  standInPastTheSite,
  levelBrake,
  beyondNature,
  mostlyTakenBefore,
  oneTemplateInThree,
  oneAxisOfThree,
  atSixtyDegrees,
];
