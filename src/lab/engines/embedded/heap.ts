/** Allocates the kernel's memory, which grows on demand up to what 32-bit addresses reach. */

import { CuvetteError } from '../../../errors.ts';

export interface Heap {
  /** The address of that many bytes, at a multiple of 64. What is there is left over from before. */
  allocate(bytes: number): number;
  free(address: number): void;
  floats(address: number, count: number): Float32Array;
  doubles(address: number, count: number): Float64Array;
  words(address: number, count: number): Uint32Array;
}

/** Where threads learn of work; below it are the zeros that the kernel starts sums from. Nobody is given anything below `RESERVED`. */
export const CONTROL = 128;
const RESERVED = 1024;
const PAGE = 65536;
export const LARGEST_MEMORY = 65536 * PAGE;

/** Shared by all threads of one engine. */
export function createMemory(): WebAssembly.Memory {
  return new WebAssembly.Memory({ initial: 16, maximum: LARGEST_MEMORY / PAGE, shared: true });
}

export function createHeap(memory: WebAssembly.Memory): Heap {
  const taken = new Map<number, number>();
  /** In the order of their addresses; no two of them touch. */
  const gaps: { start: number; size: number }[] = [];
  let end = RESERVED;

  return {
    allocate(bytes) {
      const size = Math.max(64, roundUp(bytes, 64));
      const index = gaps.findIndex((gap) => gap.size >= size);
      const gap = gaps[index];
      const start = gap?.start ?? end;
      if (gap) {
        gap.start += size;
        gap.size -= size;
        if (gap.size === 0) gaps.splice(index, 1);
      } else {
        grow(memory, end + size);
        end += size;
      }
      taken.set(start, size);
      return start;
    },

    free(address) {
      const size = taken.get(address);
      if (size === undefined) return;
      taken.delete(address);
      const index = gaps.findIndex((gap) => gap.start > address);
      gaps.splice(index === -1 ? gaps.length : index, 0, { start: address, size });
      joinGaps(gaps);
    },

    floats: (address, count) => new Float32Array(memory.buffer, address, count),
    doubles: (address, count) => new Float64Array(memory.buffer, address, count),
    words: (address, count) => new Uint32Array(memory.buffer, address, count),
  };
}

export function roundUp(value: number, multiple: number): number {
  return Math.ceil(value / multiple) * multiple;
}

function grow(memory: WebAssembly.Memory, bytes: number): void {
  const missing = bytes - memory.buffer.byteLength;
  if (missing <= 0) return;
  if (bytes <= LARGEST_MEMORY) {
    memory.grow(Math.ceil(missing / PAGE));
    return;
  }
  throw new CuvetteError(
    'bad_model',
    `The embedded engine can hold 4 GiB, and this needs ${Math.ceil(bytes / 2 ** 20)} MiB. Use fewer or shorter prompts at a time, or the torch engine.`,
  );
}

function joinGaps(gaps: { start: number; size: number }[]): void {
  for (let i = gaps.length - 1; i > 0; i--) {
    const gap = gaps[i];
    const before = gaps[i - 1];
    if (!gap || !before || before.start + before.size !== gap.start) continue;
    before.size += gap.size;
    gaps.splice(i, 1);
  }
}
