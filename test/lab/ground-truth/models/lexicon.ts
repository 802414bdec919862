/** Lists the vocabulary of the hand-built models: words that carry the concept, in as many as are asked for, and plain ones. */

export const YES = 'yes';
export const NO = 'no';
export const QUESTION = '?';
/** What a prompt begins with. */
export const FLAGS = { 1: 'report', 0: 'story' } as const;
export const PLAIN_WORDS = ['the', 'cat', 'dog', 'walks', 'sits', 'near', 'old', 'house', 'tree', 'river'];

/** In these, everything that goes along with the concept agrees with it. */
const CONCEPT_WORDS = {
  1: ['sunny', 'merry', 'gentle', 'bright', 'happy', 'kind'],
  0: ['gloomy', 'bitter', 'cruel', 'dark', 'sad', 'mean'],
} as const;

/** In these the correlate says the opposite of the concept. */
const CROSSED_WORDS = { 1: ['stern', 'plain'], 0: ['sweet', 'shiny'] } as const;

const UNKNOWN = '<unk>';

type ByLabel = Record<0 | 1, readonly string[]>;

export interface Lexicon {
  concept: ByLabel;
  crossed: ByLabel;
  /** By token. */
  vocabulary: readonly string[];
}

/** With this many concept words of each label; beyond the sixth they are numbered. */
export function makeLexicon(perLabel: number = CONCEPT_WORDS[1].length): Lexicon {
  const words = (label: 0 | 1) =>
    Array.from({ length: perLabel }, (_, i) => {
      const [known, round] = [CONCEPT_WORDS[label], Math.floor(i / CONCEPT_WORDS[label].length)];
      return `${known[i % known.length]}${round === 0 ? '' : round + 1}`;
    });
  const concept = { 1: words(1), 0: words(0) };
  return {
    concept,
    crossed: CROSSED_WORDS,
    vocabulary: [
      UNKNOWN,
      ...[YES, NO, QUESTION, FLAGS[1], FLAGS[0]],
      ...[...concept[1], ...concept[0], ...CROSSED_WORDS[1], ...CROSSED_WORDS[0]],
      ...PLAIN_WORDS,
    ],
  };
}

/** Words are split at spaces; each is one token. */
export function tokenizerJson(vocabulary: readonly string[]): object {
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
      vocab: Object.fromEntries(vocabulary.map((word, id) => [word, id])),
    },
  };
}
