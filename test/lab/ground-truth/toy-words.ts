/** Lists the vocabulary of the hand-built models: thirty-two words, of which sixteen carry the concept. */

export const YES = 'yes';
export const NO = 'no';
export const QUESTION = '?';
/** What a prompt begins with. */
export const FLAGS = { 1: 'report', 0: 'story' } as const;

/** In these, everything that goes along with the concept agrees with it. */
export const CONCEPT_WORDS = {
  1: ['sunny', 'merry', 'gentle', 'bright', 'happy', 'kind'],
  0: ['gloomy', 'bitter', 'cruel', 'dark', 'sad', 'mean'],
} as const;

/** In these the correlate says the opposite of the concept. */
export const CROSSED_WORDS = { 1: ['stern', 'plain'], 0: ['sweet', 'shiny'] } as const;

export const PLAIN_WORDS = ['the', 'cat', 'dog', 'walks', 'sits', 'near', 'old', 'house', 'tree', 'river'];

const UNKNOWN = '<unk>';

export const VOCABULARY: readonly string[] = [
  UNKNOWN,
  YES,
  NO,
  QUESTION,
  FLAGS[1],
  FLAGS[0],
  ...CONCEPT_WORDS[1],
  ...CONCEPT_WORDS[0],
  ...CROSSED_WORDS[1],
  ...CROSSED_WORDS[0],
  ...PLAIN_WORDS,
];

/** Words are split at spaces; each is one token. */
export function tokenizerJson(): object {
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
      vocab: Object.fromEntries(VOCABULARY.map((word, id) => [word, id])),
    },
  };
}
