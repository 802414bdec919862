/** Writes the labelled prompts that hand-built models are asked with: a flag, plain words with a concept word among them, and the question mark. */

import type { DatasetRow } from '../../../src/lab/causality/question.ts';
import type { Random } from '../../../src/lab/statistics/random.ts';
import { FLAGS, type Lexicon, PLAIN_WORDS, QUESTION } from './models/lexicon.ts';

export interface PromptPlan {
  /** Of prompts that differ in nothing but the concept word. */
  pairs: number;
  /** Rows of each label without partners, in place of pairs. */
  unpaired?: { ones: number; zeros: number };
  /** How many plain words stand between the concept word and the question mark; otherwise it stands anywhere. */
  wordsAfter?: number;
  /** What the flag tells: nothing, or the label. With `both`, either flag is in every prompt, in any order. */
  flag?: 'random' | 'label' | 'both';
  /** How labels come about: from the concept word; of words at random; or exchanged within pairs at random. */
  labels?: 'concept' | 'random words' | 'shuffled';
  /** The share of pairs, or of rows without partners, whose labels are wrong. */
  wrong?: number;
}

export function writeDataset(plan: PromptPlan, lexicon: Lexicon, random: Random): DatasetRow[] {
  if (plan.unpaired) return writeRows(plan, plan.unpaired, lexicon, random);
  return Array.from({ length: plan.pairs }, (_, pair) => writePair(plan, `pair ${pair}`, lexicon, random)).flat();
}

/** The same prompt with a word of either kind. */
function writePair(plan: PromptPlan, pair: string, { concept }: Lexicon, random: Random): DatasetRow[] {
  const say = phrase(plan, random);
  const flag = anyLabel(random);
  if (plan.labels === 'random words') {
    const other = phrase(plan, random);
    return [
      { prompt: say(flag, random.choose(concept[anyLabel(random)])), label: 1, pair },
      { prompt: other(flag, random.choose(concept[anyLabel(random)])), label: 0, pair },
    ];
  }
  const swapped = random.uniform() < (plan.labels === 'shuffled' ? 0.5 : (plan.wrong ?? 0));
  const row = (label: 0 | 1): DatasetRow => ({
    prompt: say(plan.flag === 'label' ? label : flag, random.choose(concept[label])),
    label: swapped ? opposite(label) : label,
    pair,
  });
  return [row(1), row(0)];
}

function writeRows(
  plan: PromptPlan,
  { ones, zeros }: { ones: number; zeros: number },
  { concept }: Lexicon,
  random: Random,
): DatasetRow[] {
  const labels = random.shuffle([...Array<1>(ones).fill(1), ...Array<0>(zeros).fill(0)]);
  return labels.map((label) => {
    const meant = random.uniform() < (plan.wrong ?? 0) ? opposite(label) : label;
    const flag = plan.flag === 'label' ? label : anyLabel(random);
    return { prompt: phrase(plan, random)(flag, random.choose(concept[meant])), label };
  });
}

/** The correlate is the same in both rows of a pair, either way. */
export function writeStructureMatched(pairs: number, { concept, crossed }: Lexicon, random: Random): DatasetRow[] {
  return Array.from({ length: pairs }, (_, i) => {
    const [say, flag, pair] = [phrase({ pairs }, random), anyLabel(random), `matched ${i}`];
    const words = anyLabel(random) === 0 ? { 1: concept[1], 0: crossed[0] } : { 1: crossed[1], 0: concept[0] };
    return [
      { prompt: say(flag, random.choose(words[1])), label: 1 as const, pair },
      { prompt: say(flag, random.choose(words[0])), label: 0 as const, pair },
    ];
  }).flat();
}

export function writeNeutral(count: number, { concept }: Lexicon, random: Random): string[] {
  const words = [...PLAIN_WORDS, ...PLAIN_WORDS, ...concept[0], ...concept[1]];
  return Array.from({ length: count }, () => Array.from({ length: 8 }, () => random.choose(words)).join(' '));
}

function phrase(plan: PromptPlan, random: Random): (flag: 0 | 1, word: string) => string {
  const { wordsAfter } = plan;
  const plain = Array.from({ length: 3 + random.integer(3) }, () => random.choose(PLAIN_WORDS));
  const place = wordsAfter === undefined ? random.integer(plain.length + 1) : plain.length - wordsAfter;
  return (flag, word) => {
    const flags = plan.flag === 'both' ? [FLAGS[flag], FLAGS[opposite(flag)]] : [FLAGS[flag]];
    return [...flags, ...plain.toSpliced(place, 0, word), QUESTION].join(' ');
  };
}

function anyLabel(random: Random): 0 | 1 {
  return random.uniform() < 0.5 ? 0 : 1;
}

function opposite(label: 0 | 1): 0 | 1 {
  return label === 1 ? 0 : 1;
}
