/** Makes questions with known answers, about models that were built by hand. */

import type { CausalQuestion, DatasetRow } from '../../../src/lab/causality/question.ts';
import type { VerdictName, VerdictReason } from '../../../src/lab/causality/verdict.ts';
import { missing } from '../../../src/lab/core/missing.ts';
import { createRandom, type Random } from '../../../src/lab/statistics/random.ts';
import { type Mechanism, type Toy, writeToyModel } from './toy-model.ts';
import { CONCEPT_WORDS, CROSSED_WORDS, FLAGS, NO, PLAIN_WORDS, QUESTION, YES } from './toy-words.ts';

const PAIRS = 32;
const NEUTRAL = 24;

interface Case {
  mechanism: Mechanism;
  verdict: VerdictName;
  reason: VerdictReason;
  /** Without one, it is found in half of the data. */
  direction?(toy: Toy): Float64Array;
  /** The flag goes with the label. */
  flagged?: boolean;
  /** Labels mean nothing. */
  labelsAtRandom?: boolean;
  structureMatched?: boolean;
}

/** By name; each says how the model works and what is asked of it. */
const CASES = {
  causal: { mechanism: 'reads-concept', verdict: 'causal', reason: 'sufficient-and-necessary' },
  correlate: {
    mechanism: 'reads-concept',
    verdict: 'epiphenomenal-softmax',
    reason: 'uniform-rescale',
    direction: (toy) => toy.direction({ correlate: 1 }),
  },
  temperature: {
    mechanism: 'heats',
    verdict: 'epiphenomenal-softmax',
    reason: 'uniform-rescale',
    direction: (toy) => toy.direction({ temperature: 1 }),
  },
  template: { mechanism: 'reads-flag', verdict: 'epiphenomenal-template', reason: 'site-locked', flagged: true },
  noise: { mechanism: 'reads-concept', verdict: 'undetermined', reason: 'not-decodable', labelsAtRandom: true },
  partial: {
    mechanism: 'reads-part',
    verdict: 'weak-causal',
    reason: 'partial-mediator',
    direction: (toy) => toy.direction({ concept: 1 }),
  },
  redundant: {
    mechanism: 'saturates',
    verdict: 'weak-causal',
    reason: 'redundant-pathway',
    direction: (toy) => toy.direction({ concept: 1 }),
  },
  dormant: {
    mechanism: 'reads-dormant',
    verdict: 'weak-causal',
    reason: 'possible-dormant-pathway',
    direction: (toy) => toy.direction({ correlate: 1, dormant: 1 }),
  },
  confounded: {
    mechanism: 'reads-concept',
    verdict: 'undetermined',
    reason: 'confounded-structural',
    direction: (toy) => toy.direction({ correlate: 1 }),
    structureMatched: true,
  },
} satisfies Record<string, Case>;

export type CaseName = keyof typeof CASES;

export const CASE_NAMES = Object.keys(CASES).filter((name): name is CaseName => Object.hasOwn(CASES, name));

export interface ToyQuestion {
  question: CausalQuestion;
  verdict: VerdictName;
  reason: VerdictReason;
}

/** Writes the model of a case into the folder. */
export function makeToyQuestion(folder: string, name: CaseName, seed: number): ToyQuestion {
  const one: Case = CASES[name];
  const toy = writeToyModel(folder, one.mechanism, seed);
  const random = createRandom(seed, `toy question ${name}`);
  const dataset = Array.from({ length: PAIRS }, (_, pair) => makePair(one, `pair ${pair}`, random)).flat();
  const given = one.direction?.(toy);
  return {
    verdict: one.verdict,
    reason: one.reason,
    question: {
      site: { layer: 0, place: 'resid_post', position: -1 },
      direction: given
        ? { kind: 'given', vector: roughly(given, random) }
        : { kind: 'fit', method: 'difference-of-means' },
      dataset,
      target: { positive: [YES], negative: [NO] },
      neutralPrompts: Array.from({ length: NEUTRAL }, () => neutral(random)),
      ...(one.structureMatched && {
        structureMatched: Array.from({ length: PAIRS }, (_, pair) => makeCrossedPair(`matched ${pair}`, random)).flat(),
      }),
      seed,
    },
  };
}

/** The same prompt with a word of either kind. */
function makePair(one: Case, pair: string, random: Random): DatasetRow[] {
  const say = phrase(random);
  const flag = FLAGS[random.uniform() < 0.5 ? 0 : 1];
  if (one.labelsAtRandom) {
    const other = phrase(random);
    const anyWord = () => random.choose(CONCEPT_WORDS[random.uniform() < 0.5 ? 0 : 1]);
    return [
      { prompt: say(flag, anyWord()), label: 1, pair },
      { prompt: other(flag, anyWord()), label: 0, pair },
    ];
  }
  const row = (label: 0 | 1): DatasetRow => ({
    prompt: say(one.flagged ? FLAGS[label] : flag, random.choose(CONCEPT_WORDS[label])),
    label,
    pair,
  });
  return [row(1), row(0)];
}

/** The correlate is the same in both rows, either way. */
function makeCrossedPair(pair: string, random: Random): DatasetRow[] {
  const say = phrase(random);
  const flag = FLAGS[random.uniform() < 0.5 ? 0 : 1];
  const words =
    random.uniform() < 0.5
      ? ([CROSSED_WORDS[0], CONCEPT_WORDS[1]] as const)
      : ([CONCEPT_WORDS[0], CROSSED_WORDS[1]] as const);
  return [
    { prompt: say(flag, random.choose(words[1])), label: 1, pair },
    { prompt: say(flag, random.choose(words[0])), label: 0, pair },
  ];
}

/** A flag, plain words with one that matters among them, and the question mark. */
function phrase(random: Random): (flag: string, word: string) => string {
  const plain = Array.from({ length: 3 + random.integer(3) }, () => random.choose(PLAIN_WORDS));
  const place = random.integer(plain.length + 1);
  return (flag, word) => [flag, ...plain.toSpliced(place, 0, word), QUESTION].join(' ');
}

function neutral(random: Random): string {
  const words = [...PLAIN_WORDS, ...PLAIN_WORDS, ...CONCEPT_WORDS[0], ...CONCEPT_WORDS[1]];
  return Array.from({ length: 8 }, () => random.choose(words)).join(' ');
}

/** Nobody finds a direction to the last digit. */
function roughly(direction: Float64Array, random: Random): number[] {
  const length = Math.hypot(...direction);
  const error = random.direction(direction.length);
  return Array.from(direction, (value, i) => value / length + 0.05 * (error[i] ?? missing('error of axis', i)));
}
