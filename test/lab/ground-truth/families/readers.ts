/** Families that vary how the concept is read: by attention patterns, through a copy, at a content word, and by readers that are not linear. */

import { type Family, gather, jitter, toyFamily } from '../family.ts';
import { clamp, line, ramp, shift, takeToQuestion } from '../models/circuit.ts';
import { DEAD, LOCKED, NOTHING, PARTLY, part, SOFTMAX, UNREADABLE, USED, WHOLE } from './truths.ts';

/** The concept word stands two words before the question mark. */
const AT_WORD = { wordsAfter: 1 };
const WORD = -3;

export const READERS: readonly Family[] = [
  toyFamily({
    name: 'query',
    truth: USED,
    why: "The concept at the question mark is the query of a head that looks at one flag or the other, and copies what that says: it is read by the attention's pattern alone.",
    shares: WHOLE,
    prompts: { flag: 'both' },
    circuit: (gain) => ({
      heads: [
        gather(0),
        { layer: 1, query: { concept: 4 }, key: { flag: 4 }, copies: [{ from: 'flag', to: 'out', gain }] },
      ],
    }),
  }),
  toyFamily({
    name: 'key at a word',
    truth: USED,
    why: 'The concept at its word is the key that the question mark looks for: positive words are looked at and raise the answer, negative ones are not.',
    shares: WHOLE,
    prompts: AT_WORD,
    site: { position: WORD },
    circuit: (gain) => ({
      heads: [
        {
          layer: 1,
          query: { question: 4 },
          key: { concept: 8 },
          copies: [{ from: 'conceptMark', to: 'out', gain: 2 * gain }],
        },
      ],
      units: [shift(1, 'out', -gain)],
    }),
  }),
  toyFamily({
    name: 'content word',
    truth: USED,
    why: 'The concept is copied from its word to the question mark in block 1, after the site, and read in block 2.',
    shares: WHOLE,
    model: { layers: 3 },
    prompts: AT_WORD,
    site: { position: WORD },
    circuit: (gain) => ({ heads: [gather(1)], units: line(2, 'concept', 'out', gain) }),
  }),
  toyFamily({
    name: 'content word, spent',
    truth: LOCKED,
    why: 'The site is the word after block 1, which has copied the concept away: what is left at the word is never looked at again.',
    shares: DEAD,
    model: { layers: 3 },
    prompts: AT_WORD,
    site: { layer: 1, position: WORD },
    circuit: (gain) => ({ heads: [gather(1)], units: line(2, 'concept', 'out', gain) }),
  }),
  toyFamily({
    name: 'relayed',
    truth: USED,
    why: 'Block 1 writes the concept to another axis, and block 2 reads that one; the site is before both.',
    shares: WHOLE,
    model: { layers: 3 },
    circuit: (gain) => ({ units: [...line(1, 'concept', 'relay', 1), ...line(2, 'relay', 'out', gain)] }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'relayed, spent',
    truth: SOFTMAX,
    why: 'The site is after block 1, which has read the concept: the concept is still there, and only its relay is read.',
    shares: NOTHING,
    model: { layers: 3 },
    circuit: (gain) => ({ units: [...line(1, 'concept', 'relay', 1), ...line(2, 'relay', 'out', gain)] }),
    site: { layer: 1 },
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'saturating',
    truth: USED,
    why: 'The only reader goes from no to yes as the concept goes from −0.4 to 0.4, and words carry 0.5 to 1.5: exchanging the concept exchanges the answer, and without it there is none.',
    shares: WHOLE,
    circuit: (gain) => ({ units: clamp(1, ['concept'], 'out', gain, 0.4) }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'one-sided',
    truth: USED,
    why: 'The only reader reads positive values, and is silent for negative ones; what it says is all of the difference.',
    shares: WHOLE,
    circuit: (gain) => ({ units: [ramp(1, { concept: 1 }, { out: 2 * gain }), shift(1, 'out', -gain)] }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'in context',
    truth: USED,
    why: 'The concept is read in reports and in no stories. In stories there is no difference to explain; in reports it explains all.',
    shares: WHOLE,
    circuit: (gain) => ({
      heads: [gather(0), takeToQuestion(0, 'flagMark', ['context'])],
      units: line(1, 'concept', 'out', 2 * gain, 'context'),
    }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'magnitude',
    truth: UNREADABLE,
    why: 'The label is how far the concept is from zero, and the model reads that, by both of its sides. No direction tells the label: its class means are the same.',
    model: {
      carries: ({ sign, index }, random) => ({
        concept: (index % 2 === 0 ? 1 : -1) * (sign > 0 ? 2 : 0.5) * (0.9 + 0.2 * random.uniform()),
      }),
    },
    circuit: (gain) => ({
      units: [
        ramp(1, { concept: 1 }, { out: gain }),
        ramp(1, { concept: -1 }, { out: gain }),
        shift(1, 'out', -1.25 * gain),
      ],
    }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'one of two dimensions',
    truth: PARTLY,
    why: 'Words carry the concept on two axes, some more on one and some more on the other, a third of it on the first in the mean; both are read alike, and the direction is the first.',
    shares: part(0.33, 0.12),
    model: {
      carries: ({ sign, index }, random) => {
        const first = index % 2 === 0 ? 0.5 : 0.15;
        return { concept: sign * first * jitter(random), other: sign * (1 - first) * jitter(random) };
      },
    },
    prompts: { pairs: 64 },
    circuit: (gain) => ({
      heads: [gather(0, ['other'])],
      units: [...line(1, 'concept', 'out', gain), ...line(1, 'other', 'out', gain)],
    }),
    direction: { concept: 1 },
  }),
  toyFamily({
    name: 'two dimensions',
    truth: USED,
    why: 'The same, and the direction is fitted: the difference of the class means lies along both axes as they are read, and moves all of the answer.',
    shares: { interchange: [0.85, 1.15], ablation: [0.85, 1.15], through: [0.95, 1.05] },
    model: {
      carries: ({ sign, index }, random) => ({ [index % 2 === 0 ? 'concept' : 'other']: sign * jitter(random) }),
    },
    prompts: { pairs: 48 },
    circuit: (gain) => ({
      heads: [gather(0, ['other'])],
      units: [...line(1, 'concept', 'out', gain), ...line(1, 'other', 'out', gain)],
    }),
  }),
];
