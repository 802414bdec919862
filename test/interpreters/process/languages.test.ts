import { execFileSync } from 'node:child_process';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, vi } from 'vitest';
import { cpp } from '../../../src/interpreters/process/cpp.ts';
import { readUserFile, toolOf } from '../../../src/interpreters/process/language.ts';
import { LANGUAGES, languageOf, PYTHON_ALIASES } from '../../../src/interpreters/process/languages.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

describe('the languages', () => {
  it.each([
    ['bash', ['bash', 'sh', 'BASH', ' Sh ']],
    ['node', ['js', 'javascript', 'node', 'JavaScript']],
    ['typescript', ['ts', 'typescript', 'TypeScript']],
    ['go', ['go', 'golang', 'Go']],
    ['cpp', ['cpp', 'c++', 'cxx', 'C++']],
  ])('have %s', (name, aliases) => {
    for (const alias of aliases) expect(languageOf(alias)?.name).toBe(name);
  });

  it('have no other aliases', () => {
    for (const lang of ['', 'rust', 'py', 'c', '__proto__', 'constructor']) expect(languageOf(lang)).toBeUndefined();
  });

  it('share no name, with Python neither', () => {
    const all = [...PYTHON_ALIASES, ...LANGUAGES.flatMap(({ aliases }) => aliases)];
    expect(new Set(all).size).toBe(all.length);
    for (const { name, aliases } of LANGUAGES) expect(aliases).toContain(name);
  });

  it('say how to install what is missing', async () => {
    vi.stubEnv('PATH', temporaryFolder());
    try {
      await expect(toolOf(cpp)).rejects.toMatchObject({
        code: 'runtime_missing',
        message: expect.stringMatching(
          /^C\+\+ cannot be run here: g\+\+ or clang\+\+ was not found\. Install .*apt install g\+\+/,
        ),
      });
    } finally {
      vi.unstubAllEnvs();
    }
  });
});

describe('a file that user code may have made', () => {
  it('is read if it is a regular file', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'sub', 'a'), 'text');
    const file = await readUserFile(folder, 'sub/../sub/a', 10);
    expect(file.kind === 'file' && file.bytes.toString()).toBe('text');
  });

  it('is told apart from a file that is not there', async () => {
    const folder = temporaryFolder();
    for (const name of ['b', 'b/c']) expect(await readUserFile(folder, name, 10)).toEqual({ kind: 'absent' });
  });

  it('is not read if it is no regular file, too large, or outside of the workspace', async () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'large'), 'more than ten');
    symlinkSync('large', join(folder, 'link'));
    symlinkSync('sub', join(folder, 'linked'));
    symlinkSync('/nosuch', join(folder, 'dangling'));
    execFileSync('sh', ['-c', 'mkfifo "$1"', 'sh', join(folder, 'pipe')]);
    for (const name of [
      'sub',
      'large',
      'link',
      'linked/a',
      'large/a',
      'dangling',
      'pipe',
      '../a',
      '/etc/passwd',
      'x\0',
      'x'.repeat(300),
    ]) {
      expect(await readUserFile(folder, name, 10), name).toEqual({ kind: 'other' });
    }
  });
});
