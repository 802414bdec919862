/** Makes datasets: prompts of plain words around a content word, which is third from the end, or at a fixed place from the front. */

import { missing } from '../../../src/lab/core/missing.ts';
import type { Random } from '../../../src/lab/statistics/random.ts';
import type { Example, Label } from './family.ts';
import { ENDINGS, PLAIN_WORDS } from './vocabulary.ts';

/** Where the content word stands. */
export const CONTENT = -3;

export interface Frame {
  /** By default one to four plain words. */
  opening?: (label: Label) => readonly string[];
  /** By default one of `ENDINGS`. */
  ending?: string;
  template?: string;
  /** By default a plain word. */
  between?: string;
  /** Puts the content word right after the opening, before the usual plain words. */
  wordFirst?: boolean;
}

type Content = Record<Label, readonly string[]>;

/** Two prompts to a pair, which differ in the content word, and in whatever the frame makes of the label. */
export function pairs(
  random: Random,
  count: number,
  content: Content,
  frame: (index: number) => Frame = () => ({}),
): Example[] {
  return Array.from({ length: count }, (_, index) => {
    const write = writer(random, frame(index));
    return ([1, 0] as const).map((label) => ({ ...write(label, wordFor(content[label], index)), pair: `p${index}` }));
  }).flat();
}

/** Each prompt for itself. */
export function singles(
  random: Random,
  counts: Record<Label, number>,
  content: Content,
  frame: (index: number) => Frame = () => ({}),
): Example[] {
  const labels = [...Array<Label>(counts[1]).fill(1), ...Array<Label>(counts[0]).fill(0)];
  return random
    .shuffle(labels)
    .map((label, index) => writer(random, frame(index))(label, random.choose(content[label])));
}

/** Exchanges the labels of some pairs. */
export function flipped(examples: readonly Example[], share: number, random: Random): Example[] {
  const names = [...new Set(examples.map(({ pair }) => pair ?? missing('pair')))];
  const chosen = new Set(random.shuffle(names).slice(0, Math.round(share * names.length)));
  return examples.map((one) =>
    chosen.has(one.pair ?? missing('pair')) ? { ...one, label: one.label === 1 ? 0 : 1 } : one,
  );
}

/** All words in turn, and again from the first. */
function wordFor(words: readonly string[], index: number): string {
  return words[index % words.length] ?? missing('content word', index);
}

function writer(
  random: Random,
  { opening, ending, template, between, wordFirst }: Frame,
): (label: Label, word: string) => Example {
  const plain = () => random.choose(PLAIN_WORDS);
  const usual = Array.from({ length: 1 + random.integer(4) }, plain);
  const beforeLast = between ?? plain();
  const last = ending ?? random.choose(ENDINGS);
  return (label, word) => ({
    prompt: [...(opening?.(label) ?? []), ...(wordFirst ? [word, ...usual] : [...usual, word]), beforeLast, last].join(
      ' ',
    ),
    label,
    ...(template !== undefined && { template }),
  });
}
