/** Makes the words of a model: plain ones, targets, endings of prompts, and invented ones that carry a label; each is one token. */

import type { Random } from '../../../src/lab/statistics/random.ts';
import type { Label } from './family.ts';

const UNKNOWN = '<unk>';

/** They mean nothing to any model. */
export const PLAIN_WORDS: readonly string[] = [
  ...['the', 'a', 'cat', 'dog', 'walks', 'sits', 'near', 'old', 'house', 'tree', 'river', 'stone', 'road', 'field'],
  ...['bird', 'runs', 'under', 'over', 'small', 'tall', 'green', 'blue', 'boat', 'hill', 'market', 'bread', 'glass'],
  ...['window', 'garden', 'paper', 'letter', 'music', 'winter', 'summer', 'morning', 'evening', 'table', 'chair'],
  ...['lamp', 'coat', 'horse', 'cloud', 'rain', 'wind', 'fire', 'salt', 'wheel', 'rope', 'clay', 'drum', 'moss'],
];

/** The last word of a prompt, after which the model answers. */
export const ENDINGS: readonly string[] = ['?', 'so', 'hence', 'thus'];

export interface Lexicon {
  words: readonly string[];
  /** Invented words, by the label that they stand for. */
  content: Record<Label, readonly string[]>;
  targets: { positive: string[]; negative: string[] };
}

export function createLexicon(
  random: Random,
  {
    contentWords = 24,
    targets = { positive: ['yes'], negative: ['no'] },
    extra = [] as readonly string[],
  }: { contentWords?: number; targets?: Lexicon['targets']; extra?: readonly string[] } = {},
): Lexicon {
  const invented = new Set<string>();
  while (invented.size < 2 * contentWords) invented.add(inventedWord(random));
  const content = { 1: [...invented].slice(0, contentWords), 0: [...invented].slice(contentWords) };
  const others = [...PLAIN_WORDS, ...ENDINGS, ...targets.positive, ...targets.negative, ...extra, ...invented];
  return { words: [UNKNOWN, ...random.shuffle(new Set(others))], content, targets };
}

/** Words are split at spaces. */
export function tokenizerOf(words: readonly string[]): object {
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: { type: 'WhitespaceSplit' },
    post_processor: null,
    decoder: { type: 'WordPiece', prefix: '##', cleanup: false },
    model: {
      type: 'WordPiece',
      unk_token: UNKNOWN,
      continuing_subword_prefix: '##',
      max_input_chars_per_word: 100,
      vocab: Object.fromEntries(words.map((word, id) => [word, id])),
    },
  };
}

function inventedWord(random: Random): string {
  const syllable = () => random.choose([...'bdfgklmnprstvz']) + random.choose([...'aeiou']);
  return `${syllable()}${syllable()}${syllable()}`;
}
