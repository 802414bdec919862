/** Reads and writes safetensors files. A file is validated when it is opened, and its tensors are read in parts, so that it may be larger than memory. */

import { z } from 'zod';
import { CuvetteError } from '../../errors.ts';
import { type FileBytes, openFileBytes } from './file-bytes.ts';
import { narrowToBfloats, narrowToHalves } from './float16.ts';
import { type NumberType, readNumbers } from './number-types.ts';
import { elementsOf, type TensorFile } from './tensor-file.ts';

/** Bytes of one number, for every dtype that may stand in a file, whether it can be read as float32 or not. */
// biome-ignore format: one line for each size reads best.
const SIZES = {
  BOOL: 1, U8: 1, I8: 1, F8_E4M3: 1, F8_E5M2: 1, F8_E8M0: 1,
  U16: 2, I16: 2, F16: 2, BF16: 2,
  U32: 4, I32: 4, F32: 4,
  U64: 8, I64: 8, F64: 8, C64: 8,
} satisfies Record<NumberType, number> & Record<string, number>;
const NOT_READ = ['F8_E4M3', 'F8_E5M2', 'F8_E8M0', 'U16', 'U32', 'U64', 'C64'] as const;

type Dtype = keyof typeof SIZES;

interface TensorEntry {
  dtype: Dtype;
  shape: readonly number[];
  /** Offsets in the file, in bytes. */
  start: number;
  end: number;
}

export interface SafetensorsFile extends TensorFile {
  metadata: Record<string, string>;
  tensors: ReadonlyMap<string, TensorEntry>;
  float32(name: string): Float32Array<ArrayBuffer>;
  bytes(name: string): Uint8Array<ArrayBuffer>;
}

/** What is written. `F16` and `BF16` are given as they are computed, and are narrowed. */
export type TensorToWrite = { shape: readonly number[] } & (
  | { dtype: 'F32' | 'F16' | 'BF16'; data: Float32Array }
  | { dtype: 'I64'; data: BigInt64Array }
  | { dtype: 'I32'; data: Int32Array }
  | { dtype: 'U8'; data: Uint8Array }
);

export function openSafetensors(path: string): SafetensorsFile {
  const file = openFileBytes(path);
  try {
    const header = readHeader(file);
    return { path, ...header, ...readers(file, header.tensors), close: file.close };
  } catch (error) {
    file.close();
    throw error;
  }
}

export function encodeSafetensors(
  tensors: Record<string, TensorToWrite>,
  metadata?: Record<string, string>,
): Uint8Array<ArrayBuffer> {
  const header: Record<string, unknown> = metadata ? { __metadata__: metadata } : {};
  const parts: Uint8Array[] = [];
  let end = 0;
  // Large numbers first, so that each tensor begins at a multiple of its number's size, as readers that map the file expect.
  const entries = Object.entries(tensors).sort(([, a], [, b]) => SIZES[b.dtype] - SIZES[a.dtype]);
  for (const [name, tensor] of entries) {
    const bytes = bytesOf(tensor);
    const expected = elementsOf(tensor.shape) * SIZES[tensor.dtype];
    if (bytes.length !== expected) {
      throw new Error(`Tensor ${name} has ${bytes.length} bytes of data; its shape asks for ${expected}.`);
    }
    header[name] = { dtype: tensor.dtype, shape: tensor.shape, data_offsets: [end, end + bytes.length] };
    parts.push(bytes);
    end += bytes.length;
  }
  const json = Buffer.from(JSON.stringify(header));
  const padding = Buffer.alloc((8 - (json.length % 8)) % 8, ' ');
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(json.length + padding.length));
  return new Uint8Array(Buffer.concat([size, json, padding, ...parts]));
}

// The header.

/** As in the format's reference implementation. */
const LARGEST_HEADER = 100_000_000;

const whole = z.number().int().nonnegative();
const Metadata = z.record(z.string(), z.string());
const Entry = z.object({ dtype: z.string(), shape: z.array(whole), data_offsets: z.tuple([whole, whole]) });

function readHeader(file: FileBytes): Pick<SafetensorsFile, 'metadata' | 'tensors'> {
  const { path, length } = file;
  if (length < 8) throw corrupt(path, `it has ${length} bytes, and no room for a header`);
  const prefix = Buffer.alloc(8);
  file.read(prefix, 0);
  const size = prefix.readBigUInt64LE();
  if (size > LARGEST_HEADER) throw corrupt(path, `its header would be ${size} bytes long`);
  const dataStart = 8 + Number(size);
  if (dataStart > length) throw corrupt(path, `its header ends at byte ${dataStart}, and the file at ${length}`);
  const header = Buffer.alloc(Number(size));
  file.read(header, 8);

  const { __metadata__, ...entries } = parseJson(path, header);
  const metadata = Metadata.safeParse(__metadata__ ?? {});
  if (!metadata.success) throw corrupt(path, 'its __metadata__ is not a table of texts');
  const tensors = new Map(
    Object.entries(entries).map(([name, value]) => [name, entryOf(path, name, value, dataStart)]),
  );
  checkThatDataIsCovered(path, tensors, dataStart, length);
  return { metadata: metadata.data, tensors };
}

function parseJson(path: string, header: Uint8Array): Record<string, unknown> {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(header);
    return z.record(z.string(), z.unknown()).parse(JSON.parse(text));
  } catch (error) {
    throw corrupt(path, 'its header is not a JSON object', error);
  }
}

function entryOf(path: string, name: string, value: unknown, dataStart: number): TensorEntry {
  const parsed = Entry.safeParse(value);
  if (!parsed.success) throw corrupt(path, `tensor ${name} lacks a proper dtype, shape or data_offsets`);
  const { dtype, shape, data_offsets: offsets } = parsed.data;
  if (!isDtype(dtype)) throw corrupt(path, `tensor ${name} has the unknown dtype ${dtype}`);
  const bytes = elementsOf(shape) * SIZES[dtype];
  if (offsets[1] - offsets[0] !== bytes) {
    const asked = `${dtype} of shape [${shape}] takes ${bytes} bytes`;
    throw corrupt(path, `tensor ${name} has ${offsets[1] - offsets[0]} bytes, but ${asked}`);
  }
  return { dtype, shape, start: dataStart + offsets[0], end: dataStart + offsets[1] };
}

/** The format wants every byte after the header to belong to exactly one tensor. */
function checkThatDataIsCovered(path: string, tensors: Map<string, TensorEntry>, start: number, length: number): void {
  let covered = start;
  const inOrder = [...tensors].sort(([, a], [, b]) => a.start - b.start || a.end - b.end);
  for (const [name, entry] of inOrder) {
    if (entry.start < covered) throw corrupt(path, `tensor ${name} overlaps the one before it`);
    if (entry.start > covered) throw corrupt(path, `there is a hole before tensor ${name}`);
    if (entry.end > length) throw corrupt(path, `tensor ${name} ends at byte ${entry.end}, and the file at ${length}`);
    covered = entry.end;
  }
  if (covered !== length) throw corrupt(path, `its tensors end at byte ${covered}, and the file at ${length}`);
}

// The data.

type Readers = Pick<SafetensorsFile, 'float32' | 'into' | 'bytes'>;

function readers(file: FileBytes, tensors: ReadonlyMap<string, TensorEntry>): Readers {
  const { path } = file;
  return { float32, into, bytes };

  function float32(name: string): Float32Array<ArrayBuffer> {
    const numbers = new Float32Array(elementsOf(entry(name).shape));
    into(name, numbers);
    return numbers;
  }

  function into(name: string, target: Float32Array, { first = 0 }: { first?: number } = {}): void {
    const { dtype, start, end } = entry(name);
    const from = start + first * SIZES[dtype];
    if (from + target.length * SIZES[dtype] > end) {
      throw new Error(`Tensor ${name} has no ${target.length} numbers from number ${first} on.`);
    }
    if (!isRead(dtype)) throw corrupt(path, `tensor ${name} is ${dtype}, which Cuvette does not read`);
    readNumbers(file.read, dtype, from, target);
  }

  function bytes(name: string): Uint8Array<ArrayBuffer> {
    const { start, end } = entry(name);
    const content = new Uint8Array(end - start);
    file.read(content, start);
    return content;
  }

  function entry(name: string): TensorEntry {
    const found = tensors.get(name);
    if (!found) throw new CuvetteError('bad_model', `${path} has no tensor ${name}. It has ${listOf(tensors.keys())}.`);
    return found;
  }
}

function bytesOf(tensor: TensorToWrite): Uint8Array {
  const { buffer, byteOffset, byteLength } = encoded(tensor);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

function encoded(tensor: TensorToWrite): NodeJS.TypedArray {
  if (tensor.dtype === 'F16') return narrowToHalves(tensor.data);
  if (tensor.dtype === 'BF16') return narrowToBfloats(tensor.data);
  return tensor.data;
}

function isDtype(text: string): text is Dtype {
  return Object.hasOwn(SIZES, text);
}

function isRead(dtype: Dtype): dtype is NumberType {
  return !NOT_READ.some((type) => type === dtype);
}

function listOf(names: Iterable<string>): string {
  const all = [...names];
  if (all.length <= 8) return all.join(', ') || 'none';
  return `${all.slice(0, 8).join(', ')} and ${all.length - 8} more`;
}

function corrupt(path: string, what: string, cause?: unknown): CuvetteError {
  const advice = 'Fetch the file again, or write it again with the safetensors library.';
  return new CuvetteError('bad_model', `${path} is not a proper safetensors file: ${what}. ${advice}`, { cause });
}
