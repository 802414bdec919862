import { describe, expect, it } from 'vitest';
import { openTokenizer } from '../../../src/lab/models/tokenizer.ts';
import { openReference, PARITY_MODELS } from '../parity-reference.ts';

describe.each(PARITY_MODELS)('the tokenizer of the model %s', (name) => {
  const { folder, tokenizer: reference } = openReference(name);
  const tokenizer = openTokenizer(folder, reference.single.length);

  it.each(reference.texts)('makes of "$text" what transformers makes of it', (row) => {
    expect(tokenizer.encode(row.text)).toEqual(row.tokens);
    expect(tokenizer.encode(row.text, { special: false })).toEqual(row.plainTokens);
  });

  it.each(reference.texts)('makes text again of the tokens of "$text"', (row) => {
    expect(tokenizer.decode(row.tokens)).toBe(row.decoded);
    expect(tokenizer.decode(row.tokens, { special: true })).toBe(row.decodedWithSpecial);
  });

  it('shows every token as transformers does', () => {
    expect(reference.single.map((_, token) => tokenizer.decode([token], { special: true }))).toEqual(reference.single);
  });

  it('makes nothing of no tokens, and of those that it does not have', () => {
    expect(tokenizer.decode([])).toBe('');
    expect(tokenizer.decode([reference.single.length, 1e9])).toBe('');
  });

  it('refuses a text with tokens that the model has no embedding for', () => {
    const small = openTokenizer(folder, 5);
    expect(() => small.encode('keys')).toThrow(/tokenizer\.json makes token \d+ .*5 tokens only/);
  });
});
