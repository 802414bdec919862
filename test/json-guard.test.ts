import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { DEEPEST_JSON, MOST_JSON_VALUES, parseGuarded } from '../src/json-guard.ts';

const nested = (depth: number, inner = '') => '['.repeat(depth) + inner + ']'.repeat(depth);
const tooDeep = { code: 'invalid_input', message: expect.stringContaining(`more than ${DEEPEST_JSON} deep`) };
const tooMany = { code: 'too_large', message: expect.stringContaining(`more than ${MOST_JSON_VALUES} values`) };

describe('JSON that is about to be parsed', () => {
  it.each([
    ['an array', nested],
    ['an object', (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`],
    ['both', (depth: number) => nested(depth - 1, '{}')],
  ])('is refused when %s is nested too deeply', (_, make) => {
    expect(parseGuarded(make(DEEPEST_JSON))).toBeInstanceOf(Object);
    expect(() => parseGuarded(make(DEEPEST_JSON + 1))).toThrow(expect.objectContaining(tooDeep));
  });

  it.each([
    ['numbers', '1'],
    ['empty arrays', '[]'],
    ['pairs', '{"a":1}'],
  ])('is refused when it has too many values: %s', (_, item) => {
    const list = (length: number) => `[${Array(length).fill(item).join(',')}]`;
    expect(parseGuarded(list(60_000))).toHaveLength(60_000);
    expect(() => parseGuarded(list(MOST_JSON_VALUES + 1))).toThrow(expect.objectContaining(tooMany));
  });

  it('may have anything in a string', () => {
    const text = JSON.stringify({ code: `${'[{,:'.repeat(MOST_JSON_VALUES)}\\"${'\\'.repeat(7)}[` });
    expect(parseGuarded(text)).toEqual(JSON.parse(text));
  });

  it('is counted outside of strings only, wherever quotes and backslashes stand', () => {
    const quoted = fc.array(fc.constantFrom('"', '\\', '[', '{', 'a', 'é', '\n'), { maxLength: 30 });
    fc.assert(
      fc.property(fc.array(quoted), (strings) => {
        const value = strings.map((parts) => parts.join(''));
        expect(parseGuarded(JSON.stringify(value))).toEqual(value);
        const deep = `[${value.map((one) => JSON.stringify(one)).join(',')}${value.length > 0 ? ',' : ''}${nested(DEEPEST_JSON)}]`;
        expect(() => parseGuarded(deep)).toThrow(expect.objectContaining(tooDeep));
      }),
    );
  });

  it('that is no JSON is left to the parser', () => {
    expect(() => parseGuarded(']]]]"')).toThrow(SyntaxError);
  });
});
