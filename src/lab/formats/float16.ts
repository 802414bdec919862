/** Converts arrays of halves (IEEE 754 binary16) and bfloat16 to and from 32-bit floats. */

import { missing } from '../core/missing.ts';

let halves: Float32Array | undefined;

export function widenHalves(source: Uint16Array, target: Float32Array): void {
  halves ??= tableOfHalves();
  for (let i = 0; i < source.length; i++) {
    const half = source[i] ?? missing('half', i);
    target[i] = halves[half] ?? missing('value of the half', half);
  }
}

/** A bfloat16 is the upper half of the 32-bit float. */
export function widenBfloats(source: Uint16Array, target: Float32Array): void {
  const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < source.length; i++) bits[i] = (source[i] ?? missing('bfloat16', i)) << 16;
}

/** To the nearest half; ties go to the even one, and what is too large becomes infinite. */
export function narrowToHalves(source: Float32Array): Uint16Array<ArrayBuffer> {
  return narrowed(source, halfOf);
}

/** To the nearest bfloat16; ties go to the even one. */
export function narrowToBfloats(source: Float32Array): Uint16Array<ArrayBuffer> {
  return narrowed(source, bfloatOf);
}

function narrowed(source: Float32Array, narrow: (bits: number) => number): Uint16Array<ArrayBuffer> {
  const bits = new Uint32Array(source.buffer, source.byteOffset, source.length);
  const target = new Uint16Array(bits.length);
  for (let i = 0; i < bits.length; i++) target[i] = narrow(bits[i] ?? missing('float', i));
  return target;
}

const INFINITY = 0x7f800000;
/** 65520: from here on, the nearest half is infinite. */
const TOO_LARGE_FOR_HALF = 0x477ff000;
/** 2^-14: below it, halves have no leading one and are multiples of 2^-24. */
const SMALLEST_NORMAL_HALF = 0x38800000;

function halfOf(bits: number): number {
  const sign = (bits >>> 16) & 0x8000;
  const magnitude = bits & 0x7fffffff;
  if (magnitude > INFINITY) return sign | 0x7e00;
  if (magnitude >= TOO_LARGE_FOR_HALF) return sign | 0x7c00;
  if (magnitude >= SMALLEST_NORMAL_HALF) {
    const tie = 0xfff + ((magnitude >>> 13) & 1);
    return sign | ((magnitude - (112 << 23) + tie) >>> 13);
  }
  // Below 2^-126 all halves are 0, so that the value can be computed as if there were always a leading one.
  const value = (1 + (magnitude & 0x7fffff) * 2 ** -23) * 2 ** ((magnitude >>> 23) - 127);
  // Adding and taking away 2^52 rounds to a whole number, ties to even.
  return sign | (value * 2 ** 24 + 2 ** 52 - 2 ** 52);
}

function bfloatOf(bits: number): number {
  if ((bits & 0x7fffffff) > INFINITY) return (bits >>> 16) | 0x40;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

function tableOfHalves(): Float32Array {
  return Float32Array.from({ length: 0x10000 }, (_, half) => {
    const sign = half & 0x8000 ? -1 : 1;
    const exponent = (half >> 10) & 0x1f;
    const fraction = half & 0x3ff;
    if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
    if (exponent === 0) return sign * fraction * 2 ** -24;
    return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
  });
}
