/**
 * The lab's only random number generator: xoshiro128** (Blackman and Vigna), its 128 bits of state taken from SHA-256 of a seed and a
 * name. Each use has a name of its own, so that a new one does not shift the numbers of the others.
 */

import { createHash } from 'node:crypto';
import { norm } from './vectors.ts';

export interface Random {
  /** From 0 to 1, without 1, with 53 bits. */
  uniform(): number;
  /** From 0 to below the limit. */
  integer(below: number): number;
  /** Of the standard normal distribution. */
  normal(): number;
  choose<T>(values: readonly T[]): T;
  /** A copy in another order. */
  shuffle<T>(values: Iterable<T>): T[];
  /** A unit vector, uniform over all directions. */
  direction(width: number): Float32Array;
}

export function createRandom(seed: number | string, name: string): Random {
  const next = xoshiro(createHash('sha256').update(`${seed}\n${name}`).digest());
  let spare: number | undefined;

  const random: Random = {
    uniform() {
      const high = next() >>> 5;
      return (high * 0x4000000 + (next() >>> 6)) / 0x20000000000000;
    },

    integer: (below) => Math.floor(random.uniform() * below),

    // By Marsaglia's polar method, which makes two numbers at a time.
    normal() {
      if (spare !== undefined) {
        const value = spare;
        spare = undefined;
        return value;
      }
      while (true) {
        const x = 2 * random.uniform() - 1;
        const y = 2 * random.uniform() - 1;
        const square = x * x + y * y;
        if (square >= 1 || square === 0) continue;
        const factor = Math.sqrt((-2 * Math.log(square)) / square);
        spare = y * factor;
        return x * factor;
      }
    },

    choose(values) {
      const value = values[random.integer(values.length)];
      if (value === undefined) throw new RangeError('There is nothing to choose from.');
      return value;
    },

    shuffle(values) {
      const keyed = Array.from(values, (value) => ({ value, key: random.uniform() }));
      return keyed.sort((a, b) => a.key - b.key).map(({ value }) => value);
    },

    direction(width) {
      const values = Float64Array.from({ length: width }, () => random.normal());
      const length = norm(values);
      return Float32Array.from(values, (value) => value / length);
    },
  };
  return random;
}

function xoshiro(bytes: Buffer): () => number {
  let a = bytes.readUInt32LE(0);
  let b = bytes.readUInt32LE(4);
  let c = bytes.readUInt32LE(8);
  let d = bytes.readUInt32LE(12);
  return () => {
    const result = Math.imul(rotate(Math.imul(b, 5), 7), 9) >>> 0;
    const shifted = b << 9;
    c ^= a;
    d ^= b;
    b ^= c;
    a ^= d;
    c ^= shifted;
    d = rotate(d, 11);
    return result;
  };
}

function rotate(value: number, by: number): number {
  return (value << by) | (value >>> (32 - by));
}
