/** Runs the kernel in the test's own thread, with tensors written to its memory and read back. */

import { createHeap, createMemory, type Heap, roundUp } from '../../../../src/lab/engines/embedded/heap.ts';
import { compileKernel, instantiateKernel, type KernelVariant } from '../../../../src/lab/engines/embedded/kernel.ts';
import { packInPlace } from '../../../../src/lab/engines/embedded/packed-weights.ts';
import {
  createProgram,
  type KernelProgram,
  type PackedMatrix,
  type Rows,
} from '../../../../src/lab/engines/embedded/program.ts';
import { createRandom, type Random } from '../../../../src/lab/statistics/random.ts';

export interface KernelInHand {
  heap: Heap;
  program: KernelProgram;
  random: Random;
  /** Random numbers of the standard normal distribution. */
  numbers(count: number): Float32Array<ArrayBuffer>;
  /** Puts a vector into memory. */
  place(values: Float32Array): number;
  /** Puts rows into memory; behind each row is something that must not matter. */
  placeRows(values: Float32Array, width: number): Rows;
  readRows(rows: Rows, count: number, width: number): Float32Array;
  emptyRows(count: number, width: number): Rows;
  pack(matrix: Float32Array, outputs: number, inputs: number, bias?: Float32Array): PackedMatrix;
}

export const KERNEL_VARIANTS: KernelVariant[] = ['simd', 'relaxed'];

export function kernelInHand(variant: KernelVariant): KernelInHand {
  const memory = createMemory();
  const heap = createHeap(memory);
  const random = createRandom(1, 'kernel');
  const program = createProgram(instantiateKernel(compileKernel(variant), memory), heap, heap.allocate(1 << 16));
  const hand: KernelInHand = {
    heap,
    program,
    random,
    numbers: (count) => Float32Array.from({ length: count }, () => random.normal()),
    place(values) {
      const address = heap.allocate(roundUp(values.length, 8) * 4);
      heap.floats(address, roundUp(values.length, 8)).fill(Number.NaN);
      heap.floats(address, values.length).set(values);
      return address;
    },
    placeRows(values, width) {
      const rows = hand.emptyRows(values.length / width, width);
      for (let i = 0; i * width < values.length; i++) {
        heap.floats(rows.address + i * rows.stride, width).set(values.subarray(i * width, (i + 1) * width));
      }
      return rows;
    },
    readRows(rows, count, width) {
      const values = new Float32Array(count * width);
      for (let i = 0; i < count; i++) values.set(heap.floats(rows.address + i * rows.stride, width), i * width);
      return values;
    },
    emptyRows(count, width) {
      const stride = roundUp(width, 8) * 4;
      const address = heap.allocate(count * stride);
      heap.floats(address, (count * stride) / 4).fill(Number.NaN);
      return { address, stride };
    },
    pack(matrix, outputs, inputs, bias) {
      const address = heap.allocate(roundUp(outputs, 8) * inputs * 4);
      heap.floats(address, matrix.length).set(matrix);
      packInPlace(heap, address, outputs, inputs);
      return { address, bias: bias ? hand.place(bias) : 0, outputs, inputs };
    },
  };
  return hand;
}

/** The largest difference between numbers, as a part of the largest of them where that is above 1. */
export function largestError(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  let largest = 1;
  let error = 0;
  for (let i = 0; i < expected.length; i++) {
    const difference = Math.abs((actual[i] ?? Number.NaN) - (expected[i] ?? Number.NaN));
    if (!(difference <= error)) error = difference;
    largest = Math.max(largest, Math.abs(expected[i] ?? 0));
  }
  return error / largest;
}
