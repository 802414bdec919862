/** Finds the token of each word of a question. A word must be a single token, as a logit difference is defined for single tokens only. */

import { CuvetteError } from '../../errors.ts';
import type { Engine } from '../core/engine.ts';
import { missing } from '../core/missing.ts';

export interface Token {
  id: number;
  text: string;
}

type Likelihood = (token: number) => number;

/**
 * The token of each word; throws for a word that is several. A word is tried with and without a leading space; if both are single tokens, the
 * one with the higher likelihood is taken.
 */
export async function tokensOf(engine: Engine, words: readonly string[], likelihood: Likelihood): Promise<Token[]> {
  const found = await Promise.all(words.map((word) => singleToken(engine, word, likelihood)));
  const tokens = new Map<number, Token>();
  for (const [i, token] of found.entries()) {
    if (!token) throw await severalTokens(engine, words[i] ?? missing('target word', i));
    tokens.set(token.id, token);
  }
  return [...tokens.values()];
}

/** The same, but leaves out words that are several tokens. */
export async function singleTokensOf(
  engine: Engine,
  words: readonly string[],
  likelihood: Likelihood,
): Promise<Token[]> {
  const found = await Promise.all(words.map((word) => singleToken(engine, word, likelihood)));
  const tokens = found.filter((token) => token !== undefined);
  return [...new Map(tokens.map((token) => [token.id, token])).values()];
}

export async function tokenWithText(engine: Engine, id: number): Promise<Token> {
  return { id, text: await engine.detokenize([id], { special: true }) };
}

async function singleToken(engine: Engine, word: string, likelihood: Likelihood): Promise<Token | undefined> {
  const spaced = word.startsWith(' ');
  const variants = spaced ? [word, word.slice(1)] : [word, ` ${word}`];
  const pieces = await engine.tokenize(variants, { special: false });
  const single = pieces.flatMap((tokens, i) => {
    const [id] = tokens;
    return tokens.length === 1 && id !== undefined ? [{ id, text: variants[i] ?? missing('spelling', i) }] : [];
  });
  const [first, second] = single;
  if (spaced || !first || !second) return first;
  return likelihood(second.id) > likelihood(first.id) ? second : first;
}

async function severalTokens(engine: Engine, word: string): Promise<CuvetteError> {
  const [tokens = []] = await engine.tokenize([word], { special: false });
  const pieces = await Promise.all(tokens.map((token) => engine.detokenize([token], { special: true })));
  const named = pieces.map((piece) => JSON.stringify(piece)).join(' + ');
  return new CuvetteError(
    'invalid_input',
    tokens.length === 0
      ? `The target word ${JSON.stringify(word)} has no token in this model. Give another word.`
      : `The target word ${JSON.stringify(word)} is ${tokens.length} tokens in this model: ${named}. Give a word that is one token, for example its first piece.`,
  );
}
