import { describe, expect, it } from 'vitest';
import { execBody, interpreterFor, splitWords } from '../../../src/surfaces/rest/exec-request.ts';

describe('arguments in one string', () => {
  it.each([
    ['', []],
    ['  a  b ', ['a', 'b']],
    [`'a b' "c d" e\\ f`, ['a b', 'c d', 'e f']],
    [`"a \\"b\\"" 'c\\d'`, ['a "b"', 'c\\d']],
    [`x''y "" z`, ['xy', '', 'z']],
    ['--n=1 $HOME *', ['--n=1', '$HOME', '*']],
  ])('%j is split into words as a shell does it', (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });
});

describe('interpreterFor', () => {
  it.each([
    ['py', 'builtin'],
    ['Python', 'builtin'],
    ['sh', 'bash'],
    ['javascript', 'node'],
    ['ts', 'typescript'],
    ['golang', 'go'],
    ['C++', 'cpp'],
  ])('the lang %s means the interpreter %s', (lang, interpreter) => {
    expect(interpreterFor(lang)).toBe(interpreter);
  });

  it('refuses an unknown lang by name, cut to 80 characters', () => {
    expect(() => interpreterFor('cobol')).toThrow('There is no language "cobol" here.');
    expect(() => interpreterFor('x'.repeat(1e6))).toThrow(/^There is no language "x{80}" here\.$/);
  });
});

describe('the body of an execution', () => {
  it('may have fields that mean nothing here, and null for those left out', () => {
    const body = {
      lang: 'bash',
      code: 'ls',
      codeSessionKey: 'x',
      isTemporary: true,
      args: null,
      files: null,
      entity_id: null,
    };
    expect(execBody.parse(body)).toEqual({ lang: 'bash', code: 'ls', args: null, files: null, entity_id: null });
  });

  it('turns numbers among its arguments into text', () => {
    expect(execBody.parse({ lang: 'py', code: '', args: ['a', 1, true] }).args).toEqual(['a', '1', 'true']);
  });
});
