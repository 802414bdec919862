/** Defines the three questions of the demo: three directions that probes find easily in the shipped model, one of which it uses. */

import type { DatasetRow } from '../causality/question.ts';
import type { VerdictName } from '../causality/verdict.ts';
import { agreementPairs, attractedPairs, confoundedPairs, feelingPairs, flagPairs } from './datasets.ts';

export interface DemoQuestion {
  /** Of the probe. */
  name: string;
  /** What the probe tells apart. */
  title: string;
  layer: number;
  /** Relative to the end of the prompt. */
  position: number;
  /** What the probe is trained on, by the difference of means. Shares no prompt with the dataset. */
  training: DatasetRow[];
  /** What the protocol is run on. */
  dataset: DatasetRow[];
  /** Where the wording would lead astray: the direction must still tell the classes apart. */
  structureMatched?: DatasetRow[];
  target: { positive: string[]; negative: string[] };
  /** What the protocol says, and why. */
  expected: VerdictName;
  explanation: string;
}

const LAYER = 2;
const PAIRS = 48;

/** What a verb says about the number of its subject. */
const NUMBER = { positive: [' are'], negative: [' is'] };
/** What a verb says about the kind of the text. */
const TENSE = { positive: [' is', ' are'], negative: [' was', ' were'] };

export function demoQuestions(seed: number): DemoQuestion[] {
  const [number, numberTraining] = apart(agreementPairs(seed, 2 * PAIRS));
  const feeling = confoundedPairs(seed, PAIRS);
  const feelingTraining = without(feeling, feelingPairs(seed, PAIRS));
  const [flag, flagTraining] = apart(flagPairs(seed, 2 * PAIRS));
  return [
    {
      name: 'subject-number',
      title: 'Is the subject one or many?',
      layer: LAYER,
      position: -1,
      training: numberTraining,
      dataset: number,
      structureMatched: attractedPairs(seed, PAIRS),
      target: NUMBER,
      expected: 'causal',
      explanation:
        'The verb follows this direction: steered along it, the model changes “is” for “are”; with its component taken from the other sentence, it says what that one would say; without it, it no longer knows.',
    },
    {
      name: 'feeling',
      title: 'Is the subject praised or blamed?',
      layer: LAYER,
      position: -1,
      training: feelingTraining,
      dataset: feeling,
      target: NUMBER,
      expected: 'epiphenomenal-softmax',
      explanation:
        'In this data, what is praised is plural and what is blamed is singular, so that the probe foresees every verb. The model does not ask it: pushed along this direction, it prefers the same verb as before, and what changes is mostly how sure it is of everything at once.',
    },
    {
      name: 'text-kind',
      title: 'Is the text a report or a story?',
      layer: LAYER,
      position: -4,
      training: flagTraining,
      dataset: flag,
      target: TENSE,
      expected: 'epiphenomenal-template',
      explanation:
        'The first word of the text decides the tense, and a probe reads it off the subject just as well. But the verb takes it from elsewhere: even with the whole activation exchanged here, the model answers as before.',
    },
  ];
}

/** The two halves of a list of pairs. */
function apart(rows: DatasetRow[]): [DatasetRow[], DatasetRow[]] {
  return [rows.slice(0, rows.length / 2), rows.slice(rows.length / 2)];
}

/** The pairs that have no prompt of the dataset. */
function without(dataset: DatasetRow[], rows: DatasetRow[]): DatasetRow[] {
  const prompts = new Set(dataset.map((row) => row.prompt));
  const spent = new Set(rows.filter((row) => prompts.has(row.prompt)).map((row) => row.pair));
  return rows.filter((row) => !spent.has(row.pair));
}
