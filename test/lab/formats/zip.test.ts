/** Tests that valid ZIP archives can be read at any offset, and that invalid ones are refused before they cost memory. */

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CuvetteError } from '../../../src/errors.ts';
import { openZip } from '../../../src/lab/formats/zip.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { writeZip } from './write-zip.ts';

const TEXT = Buffer.from('a stored or deflated text, a stored or deflated text');

test('ZIP entries are read from any offset on, stored or deflated', () => {
  const path = fileWith(
    writeZip(
      [
        { name: 'plain', content: TEXT },
        { name: 'small', content: TEXT, deflated: true },
        { name: 'empty', content: Buffer.alloc(0) },
      ],
      { comment: 'with a comment at the end' },
    ),
  );
  const zip = openZip(path);
  expect(readPart(zip, 'plain', 12, 8)).toBe('deflated');
  expect(readPart(zip, 'small', 12, 8)).toBe('deflated');
  expect(zip.entries.get('empty')?.size).toBe(0);
  zip.close();
});

describe('refused among ZIP archives', () => {
  const entry = { name: 'a', content: TEXT };
  test.each([
    ['a file that is none', Buffer.from('hello'), /no table of contents/],
    ['an empty file', Buffer.alloc(0), /no table of contents/],
    ['an archive that is cut off', writeZip([entry]).subarray(0, 40), /no table of contents/],
    ['an encrypted entry', writeZip([{ ...entry, says: { flags: 1 } }]), /a is encrypted/],
    ['another compression', writeZip([{ ...entry, says: { method: 14 } }]), /method 14/],
    ['a size that is not the data’s', writeZip([{ ...entry, says: { size: 7 } }]), /two different sizes/],
    [
      'data that ends outside',
      writeZip([{ ...entry, says: { size: 9999, storedSize: 9999 } }]),
      /ends outside of the file/,
    ],
    ['an entry that begins outside', writeZip([{ ...entry, says: { header: 9999 } }]), /begins outside of the file/],
    ['an entry without a header', writeZip([{ ...entry, says: { header: 5 } }]), /has no header/],
    ['two entries of one name', writeZip([entry, entry]), /two entries a/],
    ['entries that share data', writeZip([entry, { name: 'b', content: TEXT, says: { header: 0 } }]), /b overlaps/],
    ['a table that lies elsewhere', writeZip([entry], { start: 3 }), /table of contents is broken/],
    ['a table of a wrong length', writeZip([entry], { count: 2 }), /1 entries instead of 2/],
    [
      'an entry that inflates to far more than it is',
      writeZip([{ name: 'a', content: Buffer.alloc(1 << 22), deflated: true }]),
      /would inflate from \d+ bytes to 4194304/,
    ],
  ])('is %s', (_, bytes, message) => {
    const path = fileWith(bytes);
    expect(() => openZip(path)).toThrow(message);
    expect(() => openZip(path)).toThrow(CuvetteError);
  });

  test.each([
    ['more than it says', { says: { size: 10 } }],
    ['less than it says', { says: { size: 100 } }],
    ['something else than it says', { says: { checksum: 1 } }],
  ])('when it is read, is an entry that holds %s', (_, change) => {
    const zip = openZip(fileWith(writeZip([{ name: 'a', content: TEXT, deflated: true, ...change }])));
    expect(() => readPart(zip, 'a', 0, 5)).toThrow(/entry a (cannot be inflated|does not hold what)/);
    zip.close();
  });
});

test('a ZIP archive with any bytes changed is read or refused, and nothing else happens', () => {
  const folder = temporaryFolder();
  const honest = writeZip([
    { name: 'a', content: TEXT },
    { name: 'b', content: TEXT, deflated: true },
  ]);
  const change = fc.record({ at: fc.nat(honest.length - 1), to: fc.nat(255) });
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 6 }), fc.nat(honest.length), (changes, end) => {
      const bytes = Buffer.from(honest);
      for (const { at, to } of changes) bytes[at] = to;
      const path = join(folder, 'changed.zip');
      writeFileSync(path, end % 4 === 0 ? bytes.subarray(0, end) : bytes);
      expectOnlyRefusals(() => {
        const zip = openZip(path);
        try {
          for (const entry of zip.entries.values()) zip.read(entry, Buffer.alloc(Math.min(entry.size, 20)), 0);
        } finally {
          zip.close();
        }
      });
    }),
    { numRuns: 300 },
  );
});

function expectOnlyRefusals(action: () => void): void {
  try {
    action();
  } catch (error) {
    expect(error).toMatchObject({ name: 'CuvetteError', code: 'bad_model' });
  }
}

function fileWith(bytes: Uint8Array): string {
  const path = join(temporaryFolder(), 'file.zip');
  writeFileSync(path, bytes);
  return path;
}

function readPart(zip: ReturnType<typeof openZip>, name: string, start: number, length: number): string {
  const entry = zip.entries.get(name);
  if (entry === undefined) throw new Error(`no entry ${name}`);
  const target = Buffer.alloc(length);
  zip.read(entry, target, start);
  return target.toString('utf8');
}
