import { resolve, sep } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CuvetteError } from '../../src/errors.ts';
import { safeName } from '../../src/files/names.ts';

function refusal(raw: string): string {
  try {
    safeName(raw);
  } catch (error) {
    expect(error).toBeInstanceOf(CuvetteError);
    expect(error).toHaveProperty('code', 'invalid_input');
    return error instanceof Error ? error.message : '';
  }
  throw new Error(`${JSON.stringify(raw)} was taken`);
}

/** Names as attackers write them: separators, dots, prefixes and odd characters, in any order. */
const hostile = fc
  .array(
    fc.oneof(
      fc.constantFrom('..', '.', '/', '//', '\\', '/mnt/data/', '~', 'C:', '%2e%2e', '\0', '\n', '\u202e', ' ', ''),
      fc.string({ unit: 'grapheme', maxLength: 5 }),
      fc.string({ unit: 'binary', maxLength: 3 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join(''));

function ifTaken(raw: string, check: (safe: string) => void): void {
  let safe: string;
  try {
    safe = safeName(raw);
  } catch (error) {
    if (error instanceof CuvetteError) return;
    throw error;
  }
  check(safe);
}

describe('the name of a file', () => {
  it.each([
    'a.txt',
    'skills/x/ref/a.md',
    'a b  c.txt',
    'données_1.txt',
    '数据/报告.csv',
    '👩‍🔬 notes 🧪.md',
    '.hidden',
    '...',
    'trailing.',
    'a\\b.txt',
    '~/x',
    '%2e%2e/x',
    'עברית\u200f.txt',
  ])('stays what it is: %j', (name) => {
    expect(safeName(name)).toBe(name);
  });

  it.each([
    ['./a.txt', 'a.txt'],
    ['a//b///c', 'a/b/c'],
    ['a/./b', 'a/b'],
    ['/mnt/data/a/b.txt', 'a/b.txt'],
    ['//mnt//data//a.txt', 'a.txt'],
    ['/mnt/data/./a.txt', 'a.txt'],
    ['/mnt/./data/a.txt', 'a.txt'],
    ['.//./a.txt', 'a.txt'],
    ['e\u0301.txt', 'é.txt'],
  ])('is brought to one form: %j', (raw, safe) => {
    expect(safeName(raw)).toBe(safe);
  });

  it.each([
    ['', 'empty'],
    ['   ', 'empty'],
    ['/mnt/data/', 'folder'],
    ['/mnt/data', 'absolute'],
    ['/mnt/data/ ', 'empty'],
    ['/./etc/passwd', 'absolute'],
    ['./\\\\server', 'absolute'],
    ['././C:\\x', 'absolute'],
    ['/etc/passwd', 'absolute'],
    ['/mnt/data/../../etc/passwd', '".."'],
    ['\\\\server\\share', 'absolute'],
    ['C:\\x.txt', 'absolute'],
    ['..', '".."'],
    ['../x', '".."'],
    ['a/../b', '".."'],
    ['a\\..\\b', '".."'],
    ['a/', 'folder'],
    ['.', 'folder'],
    ['a/.', 'folder'],
    ['a\0b', 'NUL'],
    ['a\nb', 'line break'],
    ['a\r\nSet-Cookie: x', 'line break'],
    ['a\u2028b', 'line break'],
    ['a\x1b[2Jb', 'control'],
    ['a\x7f', 'control'],
    ['photo\u202egpj.exe', 'direction'],
    ['a\u2066b', 'direction'],
    ['a\ud800b', 'Unicode'],
    ['a'.repeat(256), '255 bytes'],
    [`${'é'.repeat(128)}.txt`, '255 bytes'],
    [Array(10).fill('a'.repeat(120)).join('/'), '1024 bytes'],
  ])('is refused, and why is said: %j', (raw, why) => {
    const message = refusal(raw);
    expect(message).toContain(why);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: none of them may be in a message
    expect(message).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/);
    expect(message.length).toBeLessThan(400);
  });

  it('takes what just fits', () => {
    expect(safeName('a'.repeat(255))).toHaveLength(255);
    const longest = `${Array(8).fill('a'.repeat(127)).join('/')}b`;
    expect(Buffer.byteLength(safeName(longest))).toBe(1024);
  });

  it('never leads out of the folder that it is joined to', () => {
    fc.assert(
      fc.property(hostile, (raw) => {
        ifTaken(raw, (safe) => {
          const path = resolve('/root/of/it', safe);
          expect(path.startsWith(`/root/of/it${sep}`)).toBe(true);
          expect(path).toBe(`/root/of/it/${safe}`);
          expect(resolve('C:/x', safe.replaceAll('\\', '/')).startsWith(resolve('C:/x'))).toBe(true);
        });
      }),
      { numRuns: 5000 },
    );
  });

  it('is the same when it is made safe twice', () => {
    fc.assert(
      fc.property(hostile, (raw) => {
        ifTaken(raw, (safe) => expect(safeName(safe)).toBe(safe));
      }),
      { numRuns: 5000 },
    );
  });
});
