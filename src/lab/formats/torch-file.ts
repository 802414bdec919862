/** Reads torch's .pt files: a ZIP archive with a pickle that describes tensors, and their storages. The pickle is parsed, never executed. */

import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import { type FileBytes, openFileBytes } from './file-bytes.ts';
import { type NumberType, readNumbers, sizeOfNumber } from './number-types.ts';
import { isGlobal, type PickleValue, readPickle } from './pickle.ts';
import { elementsOf, type StoredTensor, type TensorFile } from './tensor-file.ts';
import { openZip, type ZipEntry, type ZipFile } from './zip.ts';

export interface TorchFile extends TensorFile {
  tensors: ReadonlyMap<string, StoredTensor>;
  /** Plain values that stand beside the tensors. */
  values: ReadonlyMap<string, string | number | boolean>;
}

/** Names of nested dictionaries and lists are joined by dots; a file that is one tensor has it under the empty name. */
export function openTorchFile(path: string): TorchFile {
  refuseOtherPickles(path);
  const zip = openZip(path);
  try {
    const content = flatten(path, readPickle(path, readDescription(zip), builderFor(zip)));
    const { views, values } = content;
    const tensors = new Map(Array.from(views, ([name, view]) => [name, storedTensor(view)]));
    return {
      path,
      tensors,
      values,
      into: (name, target, options) => into(zip, views, name, target, options),
      close: zip.close,
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

/** All tensors of a small file. */
export function readTorchTensors(path: string): Map<string, { shape: readonly number[]; data: Float32Array }> {
  const file = openTorchFile(path);
  try {
    return new Map(
      Array.from(file.tensors, ([name, tensor]) => [name, { shape: tensor.shape, data: rowMajor(file, name, tensor) }]),
    );
  } finally {
    file.close();
  }
}

function rowMajor(file: TorchFile, name: string, { shape, columnMajor }: StoredTensor): Float32Array {
  const numbers = new Float32Array(elementsOf(shape));
  file.into(name, numbers);
  if (!columnMajor) return numbers;
  const [rows = missing('rows of', name), columns = missing('columns of', name)] = shape;
  const at = (index: number) => numbers[index] ?? missing(`number of ${name}`, index);
  return Float32Array.from(numbers, (_, i) => at((i % columns) * rows + Math.floor(i / columns)));
}

// What the pickle describes.

/** Numbers of a storage that a tensor shows, `strides` apart. */
interface View {
  storage: Storage;
  offset: number;
  shape: number[];
  strides: number[];
}

interface Storage {
  entry: ZipEntry;
  type: NumberType;
  length: number;
}

type TorchValue = PickleValue<View | Storage>;

const STORAGES: Record<string, NumberType> = {
  'torch.DoubleStorage': 'F64',
  'torch.FloatStorage': 'F32',
  'torch.HalfStorage': 'F16',
  'torch.BFloat16Storage': 'BF16',
  'torch.LongStorage': 'I64',
  'torch.IntStorage': 'I32',
  'torch.ShortStorage': 'I16',
  'torch.CharStorage': 'I8',
  'torch.ByteStorage': 'U8',
  'torch.BoolStorage': 'BOOL',
};

/** All that may be called, and what it makes of its arguments. */
const CALLS: Record<string, (path: string, args: TorchValue[]) => TorchValue> = {
  'collections.OrderedDict': () => new Map(),
  'torch._utils._rebuild_tensor': viewOf,
  'torch._utils._rebuild_tensor_v2': viewOf,
  'torch._utils._rebuild_parameter': (_, [tensor]) => tensor ?? null,
  'torch.Size': (_, [sizes]) => sizes ?? null,
  'torch.device': (_, [name]) => name ?? null,
};

/** Types of numbers, which settings beside the tensors mention. */
const NUMBER_TYPE = /^torch\.(float(16|32|64)|bfloat16|u?int\d+|bool)$/;

function builderFor(zip: ZipFile) {
  const { path } = zip;
  const entries = entriesByName(zip);
  return {
    allows: (name: string) => Object.hasOwn(CALLS, name) || Object.hasOwn(STORAGES, name) || NUMBER_TYPE.test(name),
    call(name: string, args: TorchValue[]): TorchValue {
      const make = Object.hasOwn(CALLS, name) ? CALLS[name] : undefined;
      if (make === undefined) throw broken(path, `${name} is called`);
      return make(path, args);
    },
    load: (id: TorchValue) => storageOf(path, entries, id),
  };
}

function storageOf(path: string, entries: Map<string, ZipEntry>, id: TorchValue): Storage {
  const [kind, type, key, , length] = Array.isArray(id) ? id : [];
  const numbers = isGlobal(type) && Object.hasOwn(STORAGES, type.global) ? STORAGES[type.global] : undefined;
  if (kind !== 'storage' || numbers === undefined || typeof key !== 'string' || !isCount(length)) {
    throw broken(path, 'a storage is described in an unknown way');
  }
  const entry = entries.get(`data/${key}`);
  if (entry === undefined) throw broken(path, `it has no storage ${key}`);
  if (entry.size !== length * sizeOfNumber(numbers)) {
    throw broken(path, `storage ${key} has ${entry.size} bytes instead of ${length} numbers of type ${numbers}`);
  }
  return { entry, type: numbers, length };
}

function viewOf(path: string, [storage, offset, shape, strides]: TorchValue[]): View {
  if (
    !isStorage(storage) ||
    !isCount(offset) ||
    !isCounts(shape) ||
    !isCounts(strides) ||
    shape.length !== strides.length
  ) {
    throw broken(path, 'a tensor is described in an unknown way');
  }
  const elements = elementsOf(shape);
  const last = shape.reduce((sum, size, i) => sum + (size - 1) * strideOf(strides, i), offset);
  // A tensor that shows numbers several times over could be made as large as anyone likes.
  if (shape.length > 16 || elements > storage.length || (elements > 0 && last >= storage.length)) {
    throw broken(path, `a tensor of shape [${shape}] does not fit its storage of ${storage.length} numbers`);
  }
  return { storage, offset, shape, strides };
}

/** The deepest nesting and the most items that are read. */
const DEEPEST = 16;
const MOST_ITEMS = 100_000;

/** A container may occur in many places, so a short pickle can expand without bound: items are counted. */
function flatten(
  path: string,
  content: TorchValue,
): { views: Map<string, View>; values: Map<string, string | number | boolean> } {
  const views = new Map<string, View>();
  const values = new Map<string, string | number | boolean>();
  let items = 0;
  visit('', content, 0);
  return { views, values };

  function visit(name: string, value: TorchValue, depth: number): void {
    if (depth > DEEPEST || ++items > MOST_ITEMS) throw broken(path, 'it has containers in containers without end');
    if (isView(value)) views.set(name, value);
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') values.set(name, value);
    const children = value instanceof Map ? value : Array.isArray(value) ? value.entries() : [];
    for (const [key, child] of children) {
      if (typeof key !== 'string' && typeof key !== 'number') continue;
      visit(name === '' ? String(key) : `${name}.${key}`, child, depth + 1);
    }
  }
}

// The numbers.

function storedTensor({ shape, strides }: View): StoredTensor {
  if (isDense(shape, strides)) return { shape };
  return { shape, columnMajor: isColumnMajor(shape, strides) };
}

function into(
  zip: ZipFile,
  views: ReadonlyMap<string, View>,
  name: string,
  target: Float32Array,
  { first = 0 }: { first?: number } = {},
): void {
  const view = views.get(name);
  if (view === undefined) throw new CuvetteError('bad_model', `${zip.path} has no tensor ${JSON.stringify(name)}.`);
  const { storage, offset, shape, strides } = view;
  if (isDense(shape, strides) || isColumnMajor(shape, strides)) {
    readStorage(zip, storage, offset + first, target);
    return;
  }
  // Some columns of a larger tensor, say: the storage is read whole.
  const numbers = new Float32Array(storage.length);
  readStorage(zip, storage, 0, numbers);
  for (let i = 0; i < target.length; i++) {
    target[i] = numbers[placeOf(view, first + i)] ?? missing(`number of ${name}`, first + i);
  }
}

function readStorage(zip: ZipFile, { entry, type }: Storage, first: number, target: Float32Array): void {
  readNumbers((part, position) => zip.read(entry, part, position), type, first * sizeOfNumber(type), target);
}

/** Of a number of the tensor, counted row by row, in the storage. */
function placeOf({ offset, shape, strides }: View, index: number): number {
  let place = offset;
  let rest = index;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = sizeOf(shape, axis);
    place += (rest % size) * strideOf(strides, axis);
    rest = Math.floor(rest / size);
  }
  return place;
}

function sizeOf(shape: readonly number[], axis: number): number {
  return shape[axis] ?? missing('size of axis', axis);
}

function strideOf(strides: readonly number[], axis: number): number {
  return strides[axis] ?? missing('stride of axis', axis);
}

function isDense(shape: readonly number[], strides: readonly number[]): boolean {
  let expected = 1;
  for (let axis = shape.length - 1; axis >= 0; axis--) {
    const size = sizeOf(shape, axis);
    if (size !== 1 && strideOf(strides, axis) !== expected) return false;
    expected *= size;
  }
  return true;
}

function isColumnMajor(shape: readonly number[], strides: readonly number[]): boolean {
  return shape.length === 2 && isDense([...shape].reverse(), [...strides].reverse());
}

// The archive.

function readDescription(zip: ZipFile): Uint8Array {
  const entries = entriesByName(zip);
  const order = entries.get('byteorder');
  if (order !== undefined && order.size <= 16 && readEntry(zip, order).toString() !== 'little') {
    throw broken(zip.path, 'it was saved on a big-endian machine');
  }
  const description = entries.get('data.pkl');
  if (description === undefined) throw broken(zip.path, 'it has no data.pkl, so torch did not save it');
  return readEntry(zip, description);
}

/** All entries stand in one folder, whose name is whatever the file was called when it was saved. */
function entriesByName(zip: ZipFile): Map<string, ZipEntry> {
  return new Map(Array.from(zip.entries.values(), (entry) => [entry.name.slice(entry.name.indexOf('/') + 1), entry]));
}

function readEntry(zip: ZipFile, entry: ZipEntry): Buffer {
  const bytes = Buffer.alloc(entry.size);
  zip.read(entry, bytes, 0);
  return bytes;
}

/** Until torch 1.6, files were several pickles in a row. */
function refuseOtherPickles(path: string): void {
  const file: FileBytes = openFileBytes(path);
  const start = Buffer.alloc(Math.min(2, file.length));
  file.read(start, 0);
  file.close();
  if (start[0] !== 0x80) return;
  throw new CuvetteError(
    'bad_model',
    `${path} is a bare pickle, as torch saved before 1.6. Load and save it with a newer torch, best as safetensors.`,
  );
}

function isStorage(value: TorchValue | undefined): value is Storage {
  return typeof value === 'object' && value !== null && 'entry' in value;
}

function isView(value: TorchValue): value is View {
  return typeof value === 'object' && value !== null && 'storage' in value;
}

function isCount(value: TorchValue | undefined): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isCounts(value: TorchValue | undefined): value is number[] {
  return Array.isArray(value) && value.every(isCount);
}

function broken(path: string, what: string): CuvetteError {
  return new CuvetteError('bad_model', `${path} cannot be read: ${what}. Save it again, best as safetensors.`);
}
