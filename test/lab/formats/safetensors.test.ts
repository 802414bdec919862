import { appendFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CuvetteError } from '../../../src/errors.ts';
import { encodeSafetensors, openSafetensors } from '../../../src/lab/formats/safetensors.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

describe('a safetensors file', () => {
  it('gives back what was written, in every type', () => {
    const file = openSafetensors(
      written(
        encodeSafetensors(
          {
            single: { dtype: 'F32', shape: [2, 2], data: Float32Array.of(1, -2.5, 3e-8, 4e20) },
            half: { dtype: 'F16', shape: [3], data: Float32Array.of(1, -0.5, 65504) },
            brain: { dtype: 'BF16', shape: [2], data: Float32Array.of(1.5, -(2 ** 100)) },
            long: { dtype: 'I64', shape: [2], data: BigInt64Array.of(-7n, 1n << 40n) },
            int: { dtype: 'I32', shape: [1], data: Int32Array.of(-3) },
            byte: { dtype: 'U8', shape: [3], data: Uint8Array.of(0, 1, 255) },
            scalar: { dtype: 'F32', shape: [], data: Float32Array.of(9) },
            empty: { dtype: 'F32', shape: [0, 4], data: new Float32Array() },
          },
          { note: 'kept' },
        ),
      ),
    );
    expect(file.metadata).toEqual({ note: 'kept' });
    expect(file.tensors.get('single')).toMatchObject({ dtype: 'F32', shape: [2, 2] });
    const numbers = Object.fromEntries([...file.tensors.keys()].map((name) => [name, [...file.float32(name)]]));
    expect(numbers).toEqual({
      single: [1, -2.5, Math.fround(3e-8), Math.fround(4e20)],
      half: [1, -0.5, 65504],
      brain: [1.5, -(2 ** 100)],
      long: [-7, 2 ** 40],
      int: [-3],
      byte: [0, 1, 255],
      scalar: [9],
      empty: [],
    });
    expect([...file.bytes('byte')]).toEqual([0, 1, 255]);
    file.close();
  });

  it('reads F64 and BOOL', () => {
    const data = Buffer.concat([Buffer.from(Float64Array.of(0.1, -2).buffer), Buffer.from([1, 0])]);
    const header = {
      double: { dtype: 'F64', shape: [2], data_offsets: [0, 16] },
      flags: { dtype: 'BOOL', shape: [2], data_offsets: [16, 18] },
    };
    const file = openSafetensors(written(assembled(header, data)));
    expect([...file.float32('double')]).toEqual([Math.fround(0.1), -2]);
    expect([...file.float32('flags')]).toEqual([1, 0]);
    file.close();
  });

  it('reads a part of a tensor, longer than what is widened at a time', () => {
    const count = 300_000;
    const data = Float32Array.from({ length: count }, (_, i) => i % 2048);
    for (const dtype of ['F32', 'F16'] as const) {
      const file = openSafetensors(written(encodeSafetensors({ long: { dtype, shape: [count], data } })));
      const part = new Float32Array(280_000);
      file.into('long', part, { first: 12_345 });
      expect(Buffer.compare(bytesOf(part), bytesOf(data.subarray(12_345, 292_345)))).toBe(0);
      expect(() => file.into('long', part, { first: 30_000 })).toThrow('long');
      file.close();
    }
  });

  it('is read into shared memory too', () => {
    const data = Float32Array.of(1, 2, 3);
    const file = openSafetensors(written(encodeSafetensors({ a: { dtype: 'F32', shape: [3], data } })));
    const shared = new Float32Array(new SharedArrayBuffer(16), 4, 3);
    file.into('a', shared);
    expect([...shared]).toEqual([1, 2, 3]);
    file.close();
  });

  it('names the tensors it has when asked for another', () => {
    const file = openSafetensors(written(encodeSafetensors({ here: vector(1) })));
    expect(refusal(() => file.float32('there'))).toMatch(/no tensor there.*here/);
    file.close();
  });
});

describe('an invalid safetensors file', () => {
  const good = encodeSafetensors({ first: vector(4), second: vector(2) });
  const two = (first: [number, number], second: [number, number]) => ({
    first: { dtype: 'F32', shape: [4], data_offsets: first },
    second: { dtype: 'F32', shape: [2], data_offsets: second },
  });

  it.each([
    ['is not there', undefined, 'Cannot open'],
    ['is empty', Buffer.alloc(0), 'no room for a header'],
    ['is cut off in its header', good.subarray(0, 40), 'header ends at byte'],
    ['is cut off in its data', good.subarray(0, good.length - 1), 'tensor second'],
    ['has more than its tensors', Buffer.concat([good, Buffer.alloc(3)]), 'tensors end at byte'],
    ['lies about its header length', withLength(good, 1n << 60n), 'header would be'],
    ['has a header length that ends amid the JSON', withLength(good, 30n), 'not a JSON object'],
    ['has garbage for a header', assembled('{"a": nonsense}', Buffer.alloc(0)), 'not a JSON object'],
    ['has a list for a header', assembled('[]', Buffer.alloc(0)), 'not a JSON object'],
    ['has bytes that are no text', assembled(Buffer.from([0x7b, 0xff, 0x7d]), Buffer.alloc(0)), 'not a JSON object'],
    ['has metadata that is not texts', assembled({ __metadata__: { a: 1 } }, Buffer.alloc(0)), '__metadata__'],
    ['has overlapping tensors', assembled(two([0, 16], [12, 20]), Buffer.alloc(20)), 'second overlaps'],
    ['has a hole', assembled(two([0, 16], [20, 28]), Buffer.alloc(28)), 'hole before tensor second'],
    ['has offsets in the wrong order', assembled(two([16, 0], [16, 24]), Buffer.alloc(24)), 'tensor first'],
    ['has an entry without a shape', assembled({ a: { dtype: 'F32' } }, Buffer.alloc(0)), 'tensor a lacks'],
    [
      'has a dtype that nobody knows',
      assembled({ a: { dtype: 'F3', shape: [1], data_offsets: [0, 4] } }, Buffer.alloc(4)),
      'unknown dtype F3',
    ],
    [
      'has a shape that asks for more than its bytes',
      assembled({ a: { dtype: 'F16', shape: [2 ** 30, 2 ** 40], data_offsets: [0, 4] } }, Buffer.alloc(4)),
      'tensor a has 4 bytes',
    ],
    [
      'has a negative size',
      assembled({ a: { dtype: 'F32', shape: [-1, -1], data_offsets: [0, 4] } }, Buffer.alloc(4)),
      'tensor a lacks',
    ],
  ])('and %s is refused', (_, content, reason) => {
    const path = content ? written(content) : join(temporaryFolder(), 'absent.safetensors');
    expect(refusal(() => openSafetensors(path))).toContain(reason);
    expect(refusal(() => openSafetensors(path))).toContain(path);
  });

  it('may have an unsupported type, which is reported when the tensor is read', () => {
    const header = { a: { dtype: 'F8_E4M3', shape: [4], data_offsets: [0, 4] } };
    const file = openSafetensors(written(assembled(header, Buffer.alloc(4))));
    expect(refusal(() => file.float32('a'))).toContain('F8_E4M3');
    file.close();
  });

  it('may be a folder', () => {
    expect(refusal(() => openSafetensors(temporaryFolder()))).toMatch(/folder|directory/i);
  });

  it('may have shrunk after it was opened', () => {
    const path = written(good);
    const file = openSafetensors(path);
    writeFileSync(path, good.subarray(0, good.length - 4));
    expect(refusal(() => file.float32('second'))).toContain('ended while it was read');
    file.close();
  });

  it('is refused with an error that names it, whatever its bytes are', () => {
    const folder = temporaryFolder();
    const path = join(folder, 'fuzzed.safetensors');
    const change = fc.record({ at: fc.nat(good.length - 1), byte: fc.nat(255) });
    fc.assert(
      fc.property(
        fc.array(change, { minLength: 1, maxLength: 6 }),
        fc.uint8Array({ maxLength: 8 }),
        (changes, tail) => {
          const content = Buffer.from(good);
          for (const { at, byte } of changes) content[at] = byte;
          writeFileSync(path, content);
          appendFileSync(path, tail);
          readAll(path);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('is refused with an error that names it, whatever its header says', () => {
    const path = join(temporaryFolder(), 'fuzzed.safetensors');
    const entry = fc.record({
      dtype: fc.constantFrom('F32', 'F16', 'BOOL', 'I64', 'X', '', null),
      shape: fc.oneof(fc.array(fc.oneof(fc.nat(4), fc.double(), fc.constant(-1))), fc.jsonValue()),
      data_offsets: fc.oneof(fc.tuple(fc.nat(40), fc.nat(40)), fc.jsonValue()),
    });
    const header = fc.dictionary(fc.string(), fc.oneof(entry, fc.jsonValue()));
    fc.assert(
      fc.property(header, fc.uint8Array({ maxLength: 40 }), (entries, data) => {
        writeFileSync(path, assembled(entries, data));
        readAll(path);
      }),
      { numRuns: 300 },
    );
  });
});

/** Only refusals that tell of the file are taken. */
function readAll(path: string): void {
  try {
    const file = openSafetensors(path);
    try {
      for (const name of file.tensors.keys()) file.float32(name);
    } finally {
      file.close();
    }
  } catch (error) {
    if (error instanceof CuvetteError && error.code === 'bad_model' && error.message.includes(path)) return;
    throw error;
  }
}

function refusal(action: () => unknown): string {
  try {
    action();
  } catch (error) {
    expect(error).toMatchObject({ code: 'bad_model' });
    return String(error);
  }
  throw new Error('It was not refused.');
}

function written(content: Uint8Array): string {
  const path = join(temporaryFolder(), 'file.safetensors');
  writeFileSync(path, content);
  expect(readFileSync(path).length).toBe(content.length);
  return path;
}

function assembled(header: object | string, data: Uint8Array): Buffer {
  const json = Buffer.isBuffer(header)
    ? header
    : Buffer.from(typeof header === 'string' ? header : JSON.stringify(header));
  return Buffer.concat([lengthOf(BigInt(json.length)), json, data]);
}

function withLength(file: Uint8Array, length: bigint): Buffer {
  return Buffer.concat([lengthOf(length), file.subarray(8)]);
}

function lengthOf(length: bigint): Buffer {
  const prefix = Buffer.alloc(8);
  prefix.writeBigUInt64LE(length);
  return prefix;
}

function vector(length: number) {
  return { dtype: 'F32', shape: [length], data: new Float32Array(length) } as const;
}

function bytesOf(values: Float32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}
