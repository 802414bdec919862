import { describe, expect, it } from 'vitest';
import { parsePosition, resolvePositions } from '../../../src/lab/core/positions.ts';

describe('parsing a position:', () => {
  it.each([
    ['end_question', -1],
    ['end_prompt', -1],
    ['last_token', -1],
    ['first_token', 0],
    [7, 7],
    [-3, -3],
    ['5', 5],
    [' -2 ', -2],
    ['end_question:-2', -3],
    ['END_PROMPT:0', -1],
    ['first_token:4', 4],
  ])('%s is %s', (spec, position) => {
    expect(parsePosition(spec)).toBe(position);
  });

  it.each(['last_token:1', 'first_token:-1'])(
    '%s is refused, because it would mean a token at the other end',
    (spec) => {
      expect(() => parsePosition(spec)).toThrow('outside of every prompt');
    },
  );

  it.each(['middle', '', '1.5', 2.5, 'last_token:x', 'constructor', 'last_token:-1:2'])('%s is refused', (spec) => {
    expect(() => parsePosition(spec)).toThrow('There is no position');
  });
});

describe('positions in a prompt', () => {
  it('count from its start and, if negative, from its end', () => {
    expect(resolvePositions([0, -1, 2, -4], 5)).toEqual([0, 4, 2, 1]);
  });

  it('given as { from } go on to its end', () => {
    expect(resolvePositions({ from: 2 }, 5)).toEqual([2, 3, 4]);
    expect(resolvePositions({ from: -1 }, 5)).toEqual([4]);
  });

  it.each([5, -6, 0.5])('such as %s of 5 are refused with the prompt', (position) => {
    expect(() => resolvePositions([0, position], 5, 'The keys')).toThrow(
      `Position ${position} is outside the prompt "The keys" of 5 tokens.`,
    );
    expect(() => resolvePositions({ from: position }, 5)).toThrow(
      `Position ${position} is outside a prompt of 5 tokens.`,
    );
  });

  it('are refused with the beginning of a long prompt only', () => {
    expect(() => resolvePositions([9], 5, 'word '.repeat(40))).toThrow(/"(word ){11}word…"/);
  });
});
