import { describe, expect, test } from 'vitest';
import { chooseControls } from '../../../src/lab/causality/controls.ts';
import { singleTokensOf, tokensOf } from '../../../src/lab/causality/single-tokens.ts';
import type { Engine } from '../../../src/lab/core/engine.ts';
import { createPlainEngine } from './plain-engine.ts';
import { ask } from './questions.ts';

const TOKENS: Record<string, number[]> = {
  is: [1],
  ' is': [2],
  are: [3, 4],
  ' are': [5],
  unhappy: [6, 7],
  ' unhappy': [8, 6, 7],
  Is: [9],
};
const TEXTS = [
  '',
  'is',
  ' is',
  'a',
  're',
  ' are',
  'un',
  'happy',
  ' ',
  'Is',
  ...Array.from({ length: 90 }, (_, i) => `w${i}`),
];

/** Knows a few words, with and without the space before them. */
const engine: Engine = {
  ...createPlainEngine(),
  tokenize: async (texts) => texts.map((text) => TOKENS[text] ?? []),
  detokenize: async (tokens) => tokens.map((token) => TEXTS[token]).join(''),
};

describe('target words', () => {
  const likely = (best: number) => (token: number) => (token === best ? 1 : 0);

  test('are taken with a leading space where the model finds that likelier', async () => {
    expect(await tokensOf(engine, ['is'], likely(2))).toEqual([{ id: 2, text: ' is' }]);
    expect(await tokensOf(engine, ['is'], likely(1))).toEqual([{ id: 1, text: 'is' }]);
  });

  test('are taken as written with a leading space, or in the spelling that is a single token', async () => {
    expect(await tokensOf(engine, [' is'], likely(1))).toEqual([{ id: 2, text: ' is' }]);
    expect(await tokensOf(engine, ['are'], likely(0))).toEqual([{ id: 5, text: ' are' }]);
  });

  test('of several tokens are rejected, with their pieces', async () => {
    await expect(tokensOf(engine, ['is', 'unhappy'], likely(0))).rejects.toThrow(
      '"unhappy" is 2 tokens in this model: "un" + "happy"',
    );
    expect(await singleTokensOf(engine, ['unhappy', 'is'], likely(1))).toEqual([{ id: 1, text: 'is' }]);
  });
});

describe('control tokens', () => {
  const target = { positive: [{ id: 2, text: ' is' }], negative: [{ id: 5, text: ' are' }], chosen: 'given' as const };
  // The target's logits are 5; those of other tokens spread evenly from 0 to 10.
  const logits = Float64Array.from(TEXTS, (_, token) => (token === 2 || token === 5 ? 5 : token / 10));

  test('are those with logits near the target, spread out, and never the target in other letters', async () => {
    const { tokens, chosen } = await chooseControls(engine, ask(), target, logits);
    const ids = tokens.map((token) => token.id);
    expect(chosen).toBe('matched');
    expect(ids).toHaveLength(64);
    expect(ids).not.toContain(2);
    expect(ids).not.toContain(1);
    expect(ids).not.toContain(9);
    expect(new Set(ids).size).toBe(64);
  });

  test('that were given come first, and are filled up to thirty', async () => {
    const { tokens, chosen } = await chooseControls(engine, ask({ controls: ['Is'] }), target, logits);
    expect(chosen).toBe('given');
    expect(tokens[0]).toEqual({ id: 9, text: 'Is' });
    expect(tokens).toHaveLength(30);
    const others = tokens.slice(1).map((token) => logits[token.id] ?? 0);
    expect(Math.max(...others.map((logit) => Math.abs(logit - 5)))).toBeLessThan(3.5);
  });
});
