/** Converts the number types of stored tensors to 32-bit floats. All are little-endian. */

import { widenBfloats, widenHalves } from './float16.ts';

/** Each fills the target from a buffer that holds as many numbers. */
type Widening = (encoded: ArrayBuffer, target: Float32Array) => void;

const TYPES = {
  F64: { size: 8, widen: (encoded, target) => target.set(new Float64Array(encoded, 0, target.length)) },
  F32: { size: 4, widen: (encoded, target) => target.set(new Float32Array(encoded, 0, target.length)) },
  F16: { size: 2, widen: (encoded, target) => widenHalves(new Uint16Array(encoded, 0, target.length), target) },
  BF16: { size: 2, widen: (encoded, target) => widenBfloats(new Uint16Array(encoded, 0, target.length), target) },
  I64: { size: 8, widen: (encoded, target) => widenLongs(new BigInt64Array(encoded, 0, target.length), target) },
  I32: { size: 4, widen: (encoded, target) => target.set(new Int32Array(encoded, 0, target.length)) },
  I16: { size: 2, widen: (encoded, target) => target.set(new Int16Array(encoded, 0, target.length)) },
  I8: { size: 1, widen: (encoded, target) => target.set(new Int8Array(encoded, 0, target.length)) },
  U8: { size: 1, widen: (encoded, target) => target.set(new Uint8Array(encoded, 0, target.length)) },
  BOOL: { size: 1, widen: (encoded, target) => target.set(new Uint8Array(encoded, 0, target.length)) },
} satisfies Record<string, { size: number; widen: Widening }>;

export type NumberType = keyof typeof TYPES;

/** Numbers that are widened at a time. */
const PART = 1 << 18;

export function sizeOfNumber(type: NumberType): number {
  return TYPES[type].size;
}

/** Fills the target with numbers that stand one after the other from `start` on; `read` is asked for bytes, a part at a time. */
export function readNumbers(
  read: (target: Uint8Array, position: number) => void,
  type: NumberType,
  start: number,
  target: Float32Array,
): void {
  if (type === 'F32') {
    read(new Uint8Array(target.buffer, target.byteOffset, target.byteLength), start);
    return;
  }
  const { size, widen } = TYPES[type];
  const part = new Uint8Array(Math.min(PART, target.length) * size);
  for (let done = 0; done < target.length; done += PART) {
    const numbers = target.subarray(done, done + PART);
    read(part.subarray(0, numbers.length * size), start + done * size);
    widen(part.buffer, numbers);
  }
}

function widenLongs(source: BigInt64Array, target: Float32Array): void {
  source.forEach((long, i) => {
    target[i] = Number(long);
  });
}
