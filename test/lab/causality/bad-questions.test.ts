import { describe, expect, test } from 'vitest';
import { makeDataset } from '../../../src/lab/causality/dataset.ts';
import type { CausalQuestion } from '../../../src/lab/causality/question.ts';
import { axis, plainPairs } from './plain-engine.ts';
import { answer } from './questions.ts';

const given = (vector: number[]) => ({ direction: { kind: 'given' as const, vector } });

describe('the causality protocol rejects a question, and says what to do:', () => {
  test.each<[string, Partial<CausalQuestion>, RegExp]>([
    [
      'one class only',
      { dataset: plainPairs(20).filter((row) => row.label === 1) },
      /one class only: 20 rows with label 1, 0 with label 0/,
    ],
    ['fewer than 12 a class', { dataset: plainPairs(11) }, /11 rows with label 1 and 11 with label 0.* at least 12/],
    [
      'a pair with one label',
      { dataset: plainPairs(13).map((row) => (row.pair === '3' ? { ...row, label: 1 } : row)) },
      /Pair "3" has no two rows with different labels/,
    ],
    [
      'a target word of two tokens',
      { target: { positive: ['twofold'], negative: ['no'] } },
      /"twofold" is 2 tokens in this model: "two" \+ "fold"/,
    ],
    [
      'a target word that the model does not know',
      { target: { positive: ['yes'], negative: ['xyzzy'] } },
      /"xyzzy" has no token/,
    ],
    [
      'targets that overlap',
      { target: { positive: ['yes', 'no'], negative: ['no'] } },
      /"no" is both positive and negative/,
    ],
    ['a control that is a target', { controls: ['word1', 'yes'] }, /"yes" is both a target and a control/],
    [
      'a position outside of a prompt',
      { site: { layer: 0, place: 'resid_post', position: -9 } },
      /Position -9 is outside the prompt ".*" of \d tokens/,
    ],
    [
      'a layer that is not there',
      { site: { layer: 1, place: 'resid_post', position: -1 } },
      /no layer 1: the model plain has layers 0 to 0/,
    ],
    ['a direction of another width', given([1, 2, 3]), /3 numbers, and activations of this model have 96/],
    ['a direction of zeros', given(axis('concept').map(() => 0)), /All numbers of the direction are 0/],
    ['a direction that is not finite', given(axis('concept').map((value) => value / 0)), /not finite/],
    [
      'a probe that has seen all rows',
      { direction: { kind: 'given', vector: axis('concept'), trainedOn: [...Array(24).keys()] } },
      /only 0 of 24 are left/,
    ],
    ['neutral prompts without words', { neutralPrompts: ['', '?'] }, /None of the neutral prompts/],
    [
      'a structure-matched set of one class',
      { structureMatched: plainPairs(12).filter((row) => row.label === 0) },
      /structure-matched set has one class only/,
    ],
  ])('%s', async (_, changes, message) => {
    await expect(answer(changes)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringMatching(message),
    });
  });

  test('labels that do not match the rows', () => {
    expect(() => makeDataset(['a', 'b'], [1])).toThrow(
      'There are 2 prompts and 1 labels. Give one of them for each prompt.',
    );
    expect(() => makeDataset(['a', 'b'], [1, 0.5])).toThrow('Label 1 is 0.5. Labels are 0 or 1');
    expect(() => makeDataset(['a'], [1], { pairs: ['x', 'y'] })).toThrow('There are 1 prompts and 2 pairs.');
    expect(makeDataset(['a'], [1], { pairs: ['x'] })).toEqual([{ prompt: 'a', label: 1, pair: 'x' }]);
  });
});
