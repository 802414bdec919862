/** What interventions must show of each family of the third set for its truth to hold: ranges of measures, by verdict and then by family. */

import type { Measures } from './measure.ts';

export type Range = readonly [number, number];

type Ranges = Partial<Record<keyof Measures, Range>>;

/** The classes differ clearly in what the model answers. */
const ANSWERS: Ranges = { clarity: [2, 10_000] };

const READ: Ranges = { readable: [0.93, 1] };

/** Putting it in makes the answer of the other class, taking it out leaves none, and it is far from chance. */
const CAUSAL: Ranges = {
  ...ANSWERS,
  ...READ,
  putIn: [0.8, 1.2],
  turned: [0.8, 1.2],
  left: [-0.15, 0.15],
  row: [0.9, 1.1],
  random: [0, 0.25],
};

/** About this share of the choice goes along the direction, and the rest past it. */
function weak(low: number, high: number): Ranges {
  const share: Range = [low, high];
  return { ...ANSWERS, ...READ, putIn: share, turned: share, left: [1 - high, 1 - low], random: [0, low / 1.5] };
}

/** The choice passes through the site and nothing of it along the direction, and a push far along it shrinks all logits alike. */
const SOFTMAX: Ranges = {
  ...ANSWERS,
  ...READ,
  putIn: [-0.04, 0.04],
  turned: [-0.04, 0.04],
  left: [0.95, 1.12],
  row: [0.9, 1.1],
  drive: [-0.05, 0.05],
  alike: [0.97, 1],
  shrunk: [0, 0.9],
};

/** Nothing that happens at the site matters to the choice. */
const TEMPLATE: Ranges = { ...ANSWERS, ...READ, row: [-0.03, 0.03], pushed: [0, 0.05] };

const UNREADABLE: Ranges = { readable: [0.35, 0.62] };

const INDIFFERENT: Ranges = { ...READ, gap: [-0.01, 0.01] };

export const expected: Readonly<Record<string, Ranges>> = {
  'faint-readout': { ...CAUSAL, gap: [0.2, 0.4] },
  'loud-readout': { ...CAUSAL, gap: [20, 40] },
  'read-by-keys': CAUSAL,
  'read-by-queries': CAUSAL,
  'far-from-zero': CAUSAL,
  'presence-only': CAUSAL,
  // Beyond the classes the reader falls.
  'tent-reader': { ...CAUSAL, drive: [-10, 0], random: [0, 0.35] },
  'copied-and-erased': CAUSAL,
  // In so few dimensions, random directions do something too.
  'fitted-with-bystander': { ...CAUSAL, random: [0, 0.5] },
  'population-of-steps': CAUSAL,
  'wrong-labels': { ...CAUSAL, readable: [0.75, 0.92], clarity: [0.8, 5] },
  'massive-activations': CAUSAL,
  'deep-and-faint': CAUSAL,

  'two-routes': weak(0.36, 0.62),
  // It turns the answer, and yet nothing is missing without it.
  'backup-route': { ...ANSWERS, ...READ, putIn: [0.8, 1.2], turned: [0.8, 1.2], left: [0.7, 1.1], random: [0, 0.25] },
  'half-aligned': weak(0.18, 0.34),
  // It ends a positive answer and makes none.
  'both-needed': { ...ANSWERS, ...READ, putIn: [-0.1, 0.15], turned: [0.85, 1.15], random: [0, 0.25] },
  'subspace-illusion': { ...weak(0.4, 0.8), row: [0.9, 1.1] },
  'against-a-bystander': weak(0.3, 0.55),
  'one-of-two-words': { ...weak(0.35, 0.65), row: [0.35, 0.65] },
  'used-after-some-endings': weak(0.4, 0.6),

  bystander: SOFTMAX,
  'loud-bystander': SOFTMAX,
  'already-spent': SOFTMAX,
  'idle-pattern': SOFTMAX,
  'opposed-readers': SOFTMAX,
  'dead-end-readers': SOFTMAX,

  'echo-at-a-filler': TEMPLATE,
  // The choice passes through the site, but no push along the direction changes it.
  'mean-of-all-numbers': { ...ANSWERS, ...READ, row: [0.9, 1.1], putIn: [-0.01, 0.01], pushed: [0, 0.01] },
  'format-of-the-prompt': TEMPLATE,
  'looked-at-for-its-topic': TEMPLATE,
  'the-other-word': TEMPLATE,

  // The site decides, but not along a direction.
  'exclusive-or': { ...ANSWERS, ...UNREADABLE, row: [0.9, 1.1] },
  'labels-dealt-out': { readable: [0.35, 0.65], clarity: [-0.45, 0.45] },
  'another-word-decides': INDIFFERENT,
  'not-yet-fetched': { ...ANSWERS, ...UNREADABLE, row: [-0.03, 0.03] },
  'heads-that-cancel': INDIFFERENT,

  'trained-mean-at-the-end': CAUSAL,
  'trained-one-of-two-words': { ...weak(0.3, 0.7), left: [0.2, 0.8], row: [0.4, 0.6] },
  'trained-word-after-reading': TEMPLATE,
  // Its strength differs between words, and so does what the norm leaves of the logits.
  'trained-bystander': { ...SOFTMAX, putIn: [-0.1, 0.1], turned: [-0.1, 0.1], left: [0.95, 1.3] },
  'trained-both-with-one-given': { ...CAUSAL, left: [-0.3, 0.3] },
  'trained-both-needed': { ...ANSWERS, ...READ, putIn: [-0.15, 0.15], turned: [0.8, 1.2], row: [0.4, 0.6] },
  'trained-word-that-does-not-know': { ...UNREADABLE, clarity: [1.2, 10] },
};
