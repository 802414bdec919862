/**
 * Reads Python pickles without executing them. A pickle is a program for a small stack machine; this one knows containers, texts and numbers.
 * Whatever names something to be imported or called goes to the caller's `build`, which makes a value of it or refuses.
 */

import { CuvetteError } from '../../errors.ts';

/** Lists and tuples are arrays, dictionaries are maps. */
export type PickleValue<Built> =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | Global
  | Built
  | PickleValue<Built>[]
  | Map<PickleValue<Built>, PickleValue<Built>>;

/** Something that Python would import: only its name is known here. */
export interface Global {
  global: string;
}

export interface PickleBuilder<Built> {
  /** Whether this name may occur at all. */
  allows(global: string): boolean;
  /** What calling it with arguments means. */
  call(global: string, args: PickleValue<Built>[]): PickleValue<Built>;
  /** What is kept outside of the pickle, by the id that stands in it. */
  load(id: PickleValue<Built>): PickleValue<Built>;
}

/** Of a whole file: the pickle of a checkpoint has some hundred bytes for each tensor. */
const LARGEST_PICKLE = 1 << 26;

export function readPickle<Built>(path: string, bytes: Uint8Array, builder: PickleBuilder<Built>): PickleValue<Built> {
  if (bytes.length > LARGEST_PICKLE) throw refused(path, `its pickle has ${bytes.length} bytes`);
  return run({
    path,
    builder,
    bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length),
    at: 0,
    stack: [],
    marks: [],
    memo: new Map(),
  });
}

interface Machine<Built> {
  path: string;
  builder: PickleBuilder<Built>;
  bytes: Buffer;
  /** The next byte to be read. */
  at: number;
  stack: PickleValue<Built>[];
  /** Heights of the stack at which a container's items begin. */
  marks: number[];
  memo: Map<number, PickleValue<Built>>;
}

/** Instructions by their number in the pickle format. */
function run<Built>(machine: Machine<Built>): PickleValue<Built> {
  const { stack } = machine;
  for (;;) {
    const code = unsigned(machine, 1);
    switch (code) {
      case 0x2e: // STOP
        return pop(machine);
      case 0x80: // PROTO
        checkProtocol(machine);
        break;
      case 0x95: // FRAME
        take(machine, 8);
        break;

      case 0x4e: // NONE
        stack.push(null);
        break;
      case 0x88: // NEWTRUE
      case 0x89: // NEWFALSE
        stack.push(code === 0x88);
        break;
      case 0x4a: // BININT
        stack.push(take(machine, 4).readInt32LE());
        break;
      case 0x4b: // BININT1
        stack.push(unsigned(machine, 1));
        break;
      case 0x4d: // BININT2
        stack.push(unsigned(machine, 2));
        break;
      case 0x8a: // LONG1
        stack.push(signedInteger(machine, unsigned(machine, 1)));
        break;
      case 0x47: // BINFLOAT
        stack.push(take(machine, 8).readDoubleBE());
        break;

      case 0x58: // BINUNICODE
        stack.push(text(machine, 4));
        break;
      case 0x8c: // SHORT_BINUNICODE
        stack.push(text(machine, 1));
        break;
      case 0x54: // BINSTRING
        stack.push(text(machine, 4));
        break;
      case 0x55: // SHORT_BINSTRING
        stack.push(text(machine, 1));
        break;
      case 0x42: // BINBYTES
        stack.push(take(machine, unsigned(machine, 4)));
        break;
      case 0x43: // SHORT_BINBYTES
        stack.push(take(machine, unsigned(machine, 1)));
        break;

      case 0x28: // MARK
        machine.marks.push(stack.length);
        break;
      case 0x5d: // EMPTY_LIST
      case 0x29: // EMPTY_TUPLE
        stack.push([]);
        break;
      case 0x7d: // EMPTY_DICT
        stack.push(new Map());
        break;
      case 0x74: // TUPLE
      case 0x6c: // LIST
        stack.push(popItems(machine));
        break;
      case 0x85: // TUPLE1
      case 0x86: // TUPLE2
      case 0x87: // TUPLE3
        stack.push(popSome(machine, code - 0x84));
        break;
      case 0x61: // APPEND
        append(machine, popSome(machine, 1));
        break;
      case 0x65: // APPENDS
        append(machine, popItems(machine));
        break;
      case 0x73: // SETITEM
        setItems(machine, popSome(machine, 2));
        break;
      case 0x75: // SETITEMS
        setItems(machine, popItems(machine));
        break;

      case 0x71: // BINPUT
        machine.memo.set(unsigned(machine, 1), top(machine));
        break;
      case 0x72: // LONG_BINPUT
        machine.memo.set(unsigned(machine, 4), top(machine));
        break;
      case 0x94: // MEMOIZE
        machine.memo.set(machine.memo.size, top(machine));
        break;
      case 0x68: // BINGET
        stack.push(recall(machine, unsigned(machine, 1)));
        break;
      case 0x6a: // LONG_BINGET
        stack.push(recall(machine, unsigned(machine, 4)));
        break;

      case 0x63: // GLOBAL
        stack.push(global(machine, line(machine), line(machine)));
        break;
      case 0x93: // STACK_GLOBAL
        stackGlobal(machine);
        break;
      case 0x52: // REDUCE
      case 0x81: // NEWOBJ
        call(machine);
        break;
      case 0x62: // BUILD
        build(machine);
        break;
      case 0x51: // BINPERSID
        stack.push(machine.builder.load(pop(machine)));
        break;

      default:
        throw refused(
          machine.path,
          `its pickle has the instruction 0x${code.toString(16)}, which no file of tensors needs`,
        );
    }
  }
}

// What instructions do.

function checkProtocol<Built>(machine: Machine<Built>): void {
  const protocol = unsigned(machine, 1);
  if (protocol > 5) throw refused(machine.path, `its pickle has protocol ${protocol}`);
}

function append<Built>(machine: Machine<Built>, items: PickleValue<Built>[]): void {
  const list = top(machine);
  if (!Array.isArray(list)) throw broken(machine);
  for (const item of items) list.push(item);
}

function setItems<Built>(machine: Machine<Built>, items: PickleValue<Built>[]): void {
  const dictionary = top(machine);
  if (!(dictionary instanceof Map) || items.length % 2 !== 0) throw broken(machine);
  for (let i = 0; i + 1 < items.length; i += 2) dictionary.set(items[i] ?? null, items[i + 1] ?? null);
}

function recall<Built>(machine: Machine<Built>, place: number): PickleValue<Built> {
  const value = machine.memo.get(place);
  if (value === undefined) throw broken(machine);
  return value;
}

function stackGlobal<Built>(machine: Machine<Built>): void {
  const name = pop(machine);
  const module = pop(machine);
  if (typeof name !== 'string' || typeof module !== 'string') throw broken(machine);
  machine.stack.push(global(machine, module, name));
}

function global<Built>(machine: Machine<Built>, module: string, name: string): Global {
  const full = `${module}.${name}`;
  if (machine.builder.allows(full)) return { global: full };
  throw refused(
    machine.path,
    `unpickling it would import ${JSON.stringify(full.slice(0, 200))}, and a file of tensors has no need of that`,
  );
}

function call<Built>(machine: Machine<Built>): void {
  const args = pop(machine);
  const callee = pop(machine);
  if (!isGlobal(callee) || !Array.isArray(args)) throw broken(machine);
  machine.stack.push(machine.builder.call(callee.global, args));
}

/** Sets attributes of what is on the stack. A state dictionary has some, about the versions of modules, and its items do not depend on them. */
function build<Built>(machine: Machine<Built>): void {
  pop(machine);
  if (!(top(machine) instanceof Map)) throw refused(machine.path, 'its pickle sets attributes of an object');
}

export function isGlobal(value: unknown): value is Global {
  return typeof value === 'object' && value !== null && 'global' in value;
}

// The stack.

function pop<Built>(machine: Machine<Built>): PickleValue<Built> {
  const value = machine.stack.pop();
  if (value === undefined || machine.stack.length < lastMark(machine)) throw broken(machine);
  return value;
}

/** Where what may be taken begins: with no mark, at the bottom of the stack. */
function lastMark<Built>({ marks }: Machine<Built>): number {
  return marks.at(-1) ?? 0;
}

function top<Built>(machine: Machine<Built>): PickleValue<Built> {
  const value = machine.stack.at(-1);
  if (value === undefined) throw broken(machine);
  return value;
}

function popItems<Built>(machine: Machine<Built>): PickleValue<Built>[] {
  const mark = machine.marks.pop();
  if (mark === undefined || mark > machine.stack.length) throw broken(machine);
  return machine.stack.splice(mark);
}

function popSome<Built>(machine: Machine<Built>, count: number): PickleValue<Built>[] {
  if (machine.stack.length - lastMark(machine) < count) throw broken(machine);
  return machine.stack.splice(-count);
}

// The bytes.

function take<Built>(machine: Machine<Built>, count: number): Buffer {
  const start = machine.at;
  machine.at += count;
  if (machine.at > machine.bytes.length) throw broken(machine);
  return machine.bytes.subarray(start, machine.at);
}

function unsigned<Built>(machine: Machine<Built>, size: number): number {
  return take(machine, size).readUIntLE(0, size);
}

function text<Built>(machine: Machine<Built>, sizeOfLength: number): string {
  return take(machine, unsigned(machine, sizeOfLength)).toString('utf8');
}

function line<Built>(machine: Machine<Built>): string {
  const end = machine.bytes.indexOf(0x0a, machine.at);
  if (end < 0) throw broken(machine);
  const content = machine.bytes.toString('utf8', machine.at, end);
  machine.at = end + 1;
  return content;
}

function signedInteger<Built>(machine: Machine<Built>, size: number): number | bigint {
  if (size === 0) return 0;
  const digits = Buffer.from(take(machine, size)).reverse().toString('hex');
  const value = BigInt.asIntN(size * 8, BigInt(`0x${digits}`));
  return Number.isSafeInteger(Number(value)) ? Number(value) : value;
}

function broken<Built>(machine: Machine<Built>): CuvetteError {
  return refused(machine.path, `its pickle is broken at byte ${machine.at}`);
}

function refused(path: string, what: string): CuvetteError {
  const advice = 'Only tensors, texts, numbers and containers of them are read, and nothing is ever executed.';
  return new CuvetteError('bad_model', `${path} is refused: ${what}. ${advice} Save the tensors as safetensors.`);
}
