/** Tests .pt files as torch writes them, and pickles that would run code if they were executed. */

import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openTorchFile, readTorchTensors } from '../../../src/lab/formats/torch-file.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { writeZip } from './write-zip.ts';

const FIXTURES = join(import.meta.dirname, '../fixtures/tensors');

test('.pt files: tensors of all types, views and containers are read as torch has them', () => {
  const reference: Record<string, { shape: number[]; data: number[] }> = JSON.parse(
    readFileSync(join(FIXTURES, 'tensors.json'), 'utf8'),
  );
  const tensors = readTorchTensors(join(FIXTURES, 'tensors.pt'));
  expect([...tensors.keys()].sort()).toEqual(Object.keys(reference).sort());
  for (const [name, { shape, data }] of tensors) {
    expect({ name, shape, data: [...data] }).toEqual({ name, ...reference[name] });
  }
});

test('.pt files: plain values beside the tensors are read too', () => {
  const file = openTorchFile(join(FIXTURES, 'tensors.pt'));
  expect(Object.fromEntries(file.values)).toMatchObject({
    layer: 12,
    bias: -0.25,
    name: 'truth',
    trained: true,
    device: 'cpu',
  });
  file.close();
});

test('.pt files: a file that is one tensor has it under the empty name', () => {
  expect([...readTorchTensors(join(FIXTURES, 'bare.pt'))]).toEqual([
    ['', { shape: [3], data: Float32Array.of(1, 2, 3) }],
  ]);
});

test('.pt files: the state of a module is read', () => {
  expect([...readTorchTensors(join(FIXTURES, 'state.pt')).keys()]).toEqual(['weight', 'bias']);
});

test('.pt files: tensors are read from any index on, also views', () => {
  const file = openTorchFile(join(FIXTURES, 'tensors.pt'));
  const target = new Float32Array(2);
  file.into('state.corner', target, { first: 1 });
  expect([...target]).toEqual([7, 10]);
  file.into('state.half', target, { first: 3 });
  expect([...target]).toEqual([1, 1.3330078125]);
  file.close();
});

describe('refused among .pt files', () => {
  test('is a whole module, which would have to be imported', () => {
    expect(() => openTorchFile(join(FIXTURES, 'module.pt'))).toThrow(
      /would import "torch\.nn\.modules\.linear\.Linear"/,
    );
  });

  test('is a file from before torch 1.6', () => {
    expect(() => openTorchFile(join(FIXTURES, 'legacy.pt'))).toThrow(/bare pickle, as torch saved before 1\.6/);
  });

  test('is a pickle that would run a command, and the command is not run', () => {
    const proof = join(temporaryFolder(), 'proof');
    const command = `touch ${proof}`;
    const pickles = [
      pickle('cos\nsystem\n', text(command), '\x85R.'),
      pickle('cposix\nsystem\n', text(command), '\x85R.'),
      pickle(text('builtins'), text('eval'), '\x93', text('1'), '\x85R.'),
      pickle('c__builtin__\nexec\n', text('1'), '\x85R.'),
      pickle('ctorch.serialization\nload\n', text('x'), '\x85R.'),
      pickle('(', text(command), 'ios\nsystem\n.'),
    ];
    for (const bytes of pickles)
      expect(() => openTorchFile(fileWith(bytes))).toThrow(
        /is refused: (unpickling it would import|its pickle has the instr)/,
      );
    expect(existsSync(proof)).toBe(false);
  });

  test.each([
    ['a call of what is no function', pickle('ctorch\nFloatStorage\n', ')R.'), /torch\.FloatStorage is called/],
    ['a call of a text', pickle(text('os.system'), ')R.'), /broken at byte/],
    ['attributes of an object', pickle('ctorch\nfloat32\n', '}b.'), /sets attributes/],
    ['an unknown instruction', pickle('\xff'), /instruction 0xff/],
    ['a stack that is empty', pickle('.'), /broken at byte/],
    ['a mark that is not there', pickle('t.'), /broken at byte/],
    ['items below a mark', pickle('K\x01(\x85.'), /broken at byte/],
    ['a memory that nobody wrote', pickle('h\x05.'), /broken at byte/],
    ['a text longer than the pickle', pickle('X\xff\xff\xff\x7fabc'), /broken at byte/],
    ['an end without a stop', pickle('N'), /broken at byte/],
    ['items for what is no list', pickle('K\x01(K\x02e.'), /broken at byte/],
    ['keys without values', pickle('}(K\x01u.'), /broken at byte/],
    ['a protocol of the future', Buffer.from('\x80\x09N.', 'latin1'), /protocol 9/],
    ['a storage of another kind', pickle(text('storage'), '\x85Q.'), /storage is described in an unknown way/],
    ['a storage that is not there', pickle(storage('7', 2), '.'), /no storage 7/],
    ['a storage of another length', pickle(storage('0', 3), '.'), /storage 0 has 8 bytes instead of 3 numbers/],
    ['a tensor beyond its storage', tensor(1, [2], [1]), /shape \[2\] does not fit its storage of 2 numbers/],
    ['a tensor with long steps', tensor(0, [2], [2]), /does not fit its storage/],
    ['a tensor that repeats itself a million times', tensor(0, [1_000_000], [0]), /does not fit its storage/],
    ['a tensor with a negative offset', tensor(-1, [1], [1]), /tensor is described in an unknown way/],
    ['a tensor with too few strides', tensor(0, [1, 1], [1]), /tensor is described in an unknown way/],
  ])('is %s', (_, bytes, message) => {
    expect(() => openTorchFile(fileWith(bytes))).toThrow(message);
  });

  test('are containers that unfold without end', () => {
    // Each list holds the one before it ten times: ten to the power of the depth.
    let doubling = ']';
    for (let depth = 0; depth < 12; depth++)
      doubling += `q${String.fromCharCode(depth)}](${`h${String.fromCharCode(depth)}`.repeat(10)}e`;
    expect(() => openTorchFile(fileWith(pickle(doubling, '.')))).toThrow(/without end/);
    expect(() => openTorchFile(fileWith(pickle(']q\x00h\x00a.')))).toThrow(/without end/);
    expect(() => openTorchFile(fileWith(pickle('('.repeat(100_000), 't'.repeat(100_000), '.')))).toThrow(/without end/);
  });

  test('is an archive that torch did not write', () => {
    const path = join(temporaryFolder(), 'file.pt');
    writeFileSync(path, writeZip([{ name: 'a/version', content: Buffer.from('3') }]));
    expect(() => openTorchFile(path)).toThrow(/no data\.pkl/);
  });

  test('is a file of a big-endian machine', () => {
    const path = join(temporaryFolder(), 'file.pt');
    const entries = [
      { name: 'a/data.pkl', content: pickle('N.') },
      { name: 'a/byteorder', content: Buffer.from('big') },
    ];
    writeFileSync(path, writeZip(entries));
    expect(() => openTorchFile(path)).toThrow(/big-endian/);
  });
});

test('.pt files: a valid tensor made by hand is read', () => {
  expect([...readTorchTensors(fileWith(tensor(0, [2], [1]))).values()]).toEqual([
    { shape: [2], data: Float32Array.of(1.5, -2) },
  ]);
});

test('.pt files: pickles of any bytes are read or refused, and nothing else happens', () => {
  const folder = temporaryFolder();
  const instructions = fc.constantFrom(...'.N\x88K\x01(t)]}aesu\x85\x86\x87q\x00h\x00Q\x52bc\x93\x8a\x58\x8c\x94\x81');
  const bytes = fc.array(
    fc.oneof(
      instructions,
      fc.nat(255).map((code) => String.fromCharCode(code)),
    ),
    { maxLength: 60 },
  );
  fc.assert(
    fc.property(bytes, (codes) => expectOnlyRefusals(folder, fileBytes(pickle(codes.join(''))))),
    { numRuns: 600 },
  );
});

test('.pt files: a real file with any bytes changed is read or refused, and nothing else happens', () => {
  const folder = temporaryFolder();
  const honest = readFileSync(join(FIXTURES, 'state.pt'));
  const change = fc.record({ at: fc.nat(honest.length - 1), to: fc.nat(255) });
  fc.assert(
    fc.property(fc.array(change, { minLength: 1, maxLength: 20 }), (changes) => {
      const bytes = Buffer.from(honest);
      for (const { at, to } of changes) bytes[at] = to;
      expectOnlyRefusals(folder, bytes);
    }),
    { numRuns: 300 },
  );
});

test.each([1, 100, 1000])('.pt files: a real file cut off after %i bytes is refused', (length) => {
  const path = join(temporaryFolder(), 'file.pt');
  writeFileSync(path, readFileSync(join(FIXTURES, 'state.pt')).subarray(0, length));
  expect(() => openTorchFile(path)).toThrow(/cannot be read|no table of contents/);
});

/** Of protocol 2, in latin1. */
function pickle(...parts: string[]): Buffer {
  return Buffer.from(`\x80\x02${parts.join('')}`, 'latin1');
}

function text(content: string): string {
  return `X${integer(content.length)}${content}`;
}

function integer(value: number): string {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32LE(value);
  return bytes.toString('latin1');
}

function counts(values: number[]): string {
  return `(${values.map((value) => `J${integer(value)}`).join('')}t`;
}

/** A reference to a storage of floats. */
function storage(key: string, length: number): string {
  return `(${text('storage')}ctorch\nFloatStorage\n${text(key)}${text('cpu')}J${integer(length)}tQ`;
}

/** Of the storage that every file here has. */
function tensor(offset: number, shape: number[], strides: number[]): Buffer {
  const args = `(${storage('0', 2)}J${integer(offset)}${counts(shape)}${counts(strides)}\x89}t`;
  return pickle(`ctorch._utils\n_rebuild_tensor_v2\n${args}R.`);
}

/** An archive with a pickle and one storage of two floats: 1.5 and -2. */
function fileBytes(description: Uint8Array): Buffer {
  const numbers = Buffer.from(Float32Array.of(1.5, -2).buffer);
  return writeZip([
    { name: 'archive/data.pkl', content: description },
    { name: 'archive/data/0', content: numbers },
  ]);
}

function fileWith(description: Uint8Array): string {
  const path = join(temporaryFolder(), 'file.pt');
  writeFileSync(path, fileBytes(description));
  return path;
}

function expectOnlyRefusals(folder: string, bytes: Uint8Array): void {
  const path = join(folder, 'file.pt');
  writeFileSync(path, bytes);
  try {
    readTorchTensors(path);
  } catch (error) {
    expect(error).toMatchObject({ name: 'CuvetteError', code: 'bad_model' });
  }
}
