/** Tests npz files as numpy writes them, and invalid ones. */

import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openNpz } from '../../../src/lab/formats/npz.ts';
import { elementsOf, type TensorFile } from '../../../src/lab/formats/tensor-file.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { writeZip } from './write-zip.ts';

const FIXTURES = join(import.meta.dirname, '../fixtures/tensors');
const REFERENCE: Record<string, { shape: number[]; data: number[] }> = JSON.parse(
  readFileSync(join(FIXTURES, 'arrays.json'), 'utf8'),
);

describe.each(['stored', 'deflated'])('reading %s arrays of an npz file:', (name) => {
  test.each(Object.keys(REFERENCE))('%s', (array) => {
    const file = openNpz(join(FIXTURES, `${name}.npz`));
    const { shape, data } = REFERENCE[array] ?? { shape: [], data: [] };
    expect(file.tensors.get(array)?.shape).toEqual(shape);
    const inOrder = array === 'fortran' ? columnByColumn(data, shape) : data;
    expect(file.tensors.get(array)?.columnMajor ?? false).toBe(array === 'fortran');
    expect(numbersOf(file, array)).toEqual(inOrder);
    file.close();
  });
});

test('an npz array is read from any index on', () => {
  const file = openNpz(join(FIXTURES, 'stored.npz'));
  const target = new Float32Array(2);
  file.into('half', target, { first: 5 });
  expect([...target]).toEqual(REFERENCE.half?.data.slice(5, 7));
  file.close();
});

describe('refused in an npz file', () => {
  test('are Python objects, which would have to be unpickled', () => {
    expect(() => openNpz(join(FIXTURES, 'objects.npz'))).toThrow(/a\.npy has numbers of type \|O/);
  });

  test('are big-endian numbers', () => {
    expect(() => openNpz(join(FIXTURES, 'big-endian.npz'))).toThrow(/type >f4/);
  });

  test.each([
    ['entries that are no arrays', Buffer.from('hello, this is text'), /is no numpy array/],
    ['entries that are too short', Buffer.from('x'), /is no numpy array/],
    ['a header that is longer than the entry', array('{}', { length: 60_000 }), /broken header/],
    ['a header that says nothing', array('{}'), /does not say its type, order and shape/],
    [
      'a shape that the numbers do not fill',
      array(header('(3,)')),
      /has 8 bytes of numbers, and its shape \[3\] asks for 12/,
    ],
    ['a shape beyond all bounds', array(header('(99999999999, 99999999999)')), /asks for/],
    ['three dimensions in Fortran order', array(header('(1, 2, 1)', 'True')), /more than two dimensions/],
  ])('are %s', (_, content, message) => {
    expect(() => openNpz(fileWith(content))).toThrow(message);
  });
});

test('npz files with any bytes changed are read or refused, and nothing else happens', () => {
  const honest = array(header('(2,)'));
  fc.assert(
    fc.property(fc.nat(honest.length - 1), fc.nat(255), (at, to) => {
      const bytes = Buffer.from(honest);
      bytes[at] = to;
      try {
        openNpz(fileWith(bytes)).close();
      } catch (error) {
        expect(error).toMatchObject({ name: 'CuvetteError', code: 'bad_model' });
      }
    }),
    { numRuns: 300 },
  );
});

function header(shape: string, fortran = 'False'): string {
  return `{'descr': '<f4', 'fortran_order': ${fortran}, 'shape': ${shape}, }\n`;
}

/** Two numbers after a header. */
function array(text: string, says: { length?: number } = {}): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16LE(says.length ?? text.length);
  return Buffer.concat([Buffer.from('\x93NUMPY\x01\x00', 'latin1'), length, Buffer.from(text), Buffer.alloc(8)]);
}

function fileWith(content: Uint8Array): string {
  const path = join(temporaryFolder(), 'file.npz');
  writeFileSync(path, writeZip([{ name: 'a.npy', content }]));
  return path;
}

function numbersOf(file: TensorFile, name: string): number[] {
  const numbers = new Float32Array(elementsOf(file.tensors.get(name)?.shape ?? []));
  file.into(name, numbers);
  return [...numbers];
}

function columnByColumn(data: number[], [rows = 0, columns = 0]: number[]): number[] {
  return data.map((_, i) => data[(i % rows) * columns + Math.floor(i / rows)] ?? Number.NaN);
}
