import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CuvetteError } from '../../src/errors.ts';
import { writeIntoWorkspace } from '../../src/files/copy-in.ts';
import { safeName } from '../../src/files/names.ts';
import { temporaryFolder } from '../temporary-folder.ts';

/** Characters that no message may carry to a screen or a log as they are. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const DANGEROUS = /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/;

const odd = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        '..',
        '.',
        '/',
        '\\',
        '/mnt/data/',
        '\0',
        '\n',
        '\x1b[2J',
        '\u202e',
        '\u2066',
        '\ud800',
        ' ',
        'e\u0301',
      ),
      fc.string({ unit: 'binary', maxLength: 40 }),
    ),
    { maxLength: 10 },
  )
  .map((parts) => parts.join(''));

/** Also what is there already: a folder, a file, and links that lead out. */
const placed = fc
  .array(fc.constantFrom('a', 'b', 'folder', 'file', 'out', 'gone', 'loop', 'é', '...', ' x', '-rf', '~', '*'), {
    minLength: 1,
    maxLength: 4,
  })
  .map((parts) => parts.join('/'));

function refusal(raw: string): CuvetteError | undefined {
  try {
    safeName(raw);
    return undefined;
  } catch (error) {
    if (error instanceof CuvetteError) return error;
    throw error;
  }
}

describe('a name that is refused', () => {
  it('is told of in one short line that hides nothing', () => {
    fc.assert(
      fc.property(odd, (raw) => {
        const error = refusal(raw);
        if (!error) return;
        expect(error.code).toBe('invalid_input');
        expect(error.message).not.toMatch(DANGEROUS);
        expect(error.message.isWellFormed()).toBe(true);
        expect(error.message.length).toBeLessThan(800);
      }),
      { numRuns: 5000 },
    );
  });

  it('is refused in each form of its letters', () => {
    fc.assert(
      fc.property(odd, (raw) => {
        fc.pre(raw.isWellFormed());
        expect(refusal(raw.normalize('NFD')) === undefined).toBe(refusal(raw.normalize('NFC')) === undefined);
      }),
      { numRuns: 5000 },
    );
  });
});

describe('a file that is put into a workspace', () => {
  it('stands there under its name, or nowhere, whatever code has put in its way', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(placed, { minLength: 1, maxLength: 4 }), async (names) => {
        const folder = temporaryFolder();
        const [workspace, outside] = [join(folder, 'workspace'), join(folder, 'outside')];
        mkdirSync(join(workspace, 'folder'), { recursive: true });
        mkdirSync(outside);
        writeFileSync(join(outside, 'file'), 'untouched');
        writeFileSync(join(workspace, 'file'), 'old');
        symlinkSync(outside, join(workspace, 'out'));
        symlinkSync(join(outside, 'file'), join(workspace, 'folder', 'file'));
        symlinkSync(join(outside, 'new'), join(workspace, 'gone'));
        symlinkSync('loop', join(workspace, 'loop'));
        for (const name of names) await expectPlaced(workspace, name);
        expect(readdirSync(outside)).toEqual(['file']);
        expect(readFileSync(join(outside, 'file'), 'utf8')).toBe('untouched');
        expect(readdirSync(folder).sort()).toEqual(['outside', 'workspace']);
        const left = readdirSync(workspace, { recursive: true, encoding: 'utf8' });
        expect(left.filter((entry) => entry.includes('cuvette-placing'))).toEqual([]);
      }),
      { numRuns: 150 },
    );
  });
});

async function expectPlaced(workspace: string, name: string): Promise<void> {
  try {
    await writeIntoWorkspace(`text of ${name}`, workspace, name, { mode: 0o644 });
  } catch (error) {
    if (!(error instanceof CuvetteError)) throw new Error(`${name}: no clear error`, { cause: error });
    return;
  }
  expect(existsSync(join(workspace, name))).toBe(true);
  expect(readFileSync(join(workspace, name), 'utf8')).toBe(`text of ${name}`);
}
