/** Reads numpy's npz files: a ZIP archive with one array in each entry. Rejects arrays of Python objects, which would have to be unpickled. */

import { CuvetteError } from '../../errors.ts';
import { type NumberType, readNumbers, sizeOfNumber } from './number-types.ts';
import { elementsOf, type StoredTensor, type TensorFile } from './tensor-file.ts';
import { openZip, type ZipEntry, type ZipFile } from './zip.ts';

interface StoredArray extends StoredTensor {
  entry: ZipEntry;
  type: NumberType;
  /** Of the numbers, in the entry. */
  start: number;
}

export function openNpz(path: string): TensorFile {
  const zip = openZip(path);
  try {
    const tensors = new Map(Array.from(zip.entries.values(), (entry) => [nameOf(entry), readArrayHeader(zip, entry)]));
    return {
      path,
      tensors,
      into: (name, target, options) => into(zip, tensors, name, target, options),
      close: zip.close,
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

function into(
  zip: ZipFile,
  tensors: ReadonlyMap<string, StoredArray>,
  name: string,
  target: Float32Array,
  { first = 0 }: { first?: number } = {},
): void {
  const array = tensors.get(name);
  if (array === undefined) throw new CuvetteError('bad_model', `${zip.path} has no array ${name}.`);
  const start = array.start + first * sizeOfNumber(array.type);
  readNumbers((part, position) => zip.read(array.entry, part, position), array.type, start, target);
}

function nameOf(entry: ZipEntry): string {
  return entry.name.replace(/\.npy$/, '');
}

/** What numpy calls them. */
const TYPES: Record<string, NumberType> = {
  '<f8': 'F64',
  '<f4': 'F32',
  '<f2': 'F16',
  '<i8': 'I64',
  '<i4': 'I32',
  '<i2': 'I16',
  '|i1': 'I8',
  '|u1': 'U8',
  '|b1': 'BOOL',
};

/** Headers are a hundred bytes or so; a longer one is no array of numbers. */
const LARGEST_HEADER = 1 << 16;

function readArrayHeader(zip: ZipFile, entry: ZipEntry): StoredArray {
  const { text, start } = readHeaderText(zip, entry);
  const description = /'descr':\s*'([^']*)'/.exec(text)?.[1];
  const order = /'fortran_order':\s*(True|False)/.exec(text)?.[1];
  const sizes = /'shape':\s*\(([\d,\s]*)\)/.exec(text)?.[1];
  if (description === undefined || order === undefined || sizes === undefined) {
    throw unusable(
      zip,
      entry,
      `does not say its type, order and shape, or has Python objects: ${text.trim().slice(0, 100)}`,
    );
  }
  const type = Object.hasOwn(TYPES, description) ? TYPES[description] : undefined;
  if (type === undefined) throw unusable(zip, entry, `has numbers of type ${description}, which are not read`);
  const shape = Array.from(sizes.matchAll(/\d+/g), ([size]) => Number(size));
  const expected = elementsOf(shape) * sizeOfNumber(type);
  if (start + expected !== entry.size) {
    throw unusable(
      zip,
      entry,
      `has ${entry.size - start} bytes of numbers, and its shape [${shape}] asks for ${expected}`,
    );
  }
  const columnMajor = order === 'True' && shape.length > 1;
  if (columnMajor && shape.length > 2) throw unusable(zip, entry, 'has more than two dimensions in Fortran order');
  return { shape, columnMajor, entry, type, start };
}

function readHeaderText(zip: ZipFile, entry: ZipEntry): { text: string; start: number } {
  const prefix = Buffer.alloc(Math.min(12, entry.size));
  zip.read(entry, prefix, 0);
  if (prefix.length < 12 || prefix.toString('latin1', 0, 6) !== '\x93NUMPY') {
    throw unusable(zip, entry, 'is no numpy array');
  }
  // From version 2 of the format on, the header's length has four bytes instead of two.
  const headerStart = prefix.readUInt8(6) === 1 ? 10 : 12;
  const length = headerStart === 10 ? prefix.readUInt16LE(8) : prefix.readUInt32LE(8);
  const start = headerStart + length;
  if (length > LARGEST_HEADER || start > entry.size) throw unusable(zip, entry, 'has a broken header');
  const header = Buffer.alloc(length);
  zip.read(entry, header, headerStart);
  return { text: header.toString('latin1'), start };
}

function unusable(zip: ZipFile, entry: ZipEntry, what: string): CuvetteError {
  const advice = 'Save it again with numpy.savez, as arrays of float32.';
  return new CuvetteError('bad_model', `${zip.path} cannot be used: ${entry.name} ${what}. ${advice}`);
}
