/** Computes the cosines and sines of the rotary embedding, and extends the table when a longer text needs more positions. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import type { Heap } from './heap.ts';
import type { RotaryRows } from './program.ts';

export interface RotaryTable {
  /** For positions below `length`, in texts with and without the frequencies for long ones. */
  upTo(length: number): RotaryRows;
}

const FIRST_LENGTH = 256;

export function createRotaryTable(positions: ModelSpec['positions'], context: number, heap: Heap): RotaryTable {
  if (positions.kind === 'learned') return { upTo: () => ({ half: 0, address: 0, stride: 0 }) };
  const { inverseFrequencies, scale, long } = positions;
  const half = inverseFrequencies.length;
  const frequencies = [inverseFrequencies, ...(long ? [long.inverseFrequencies] : [])];
  let held = 0;
  let address = 0;

  return {
    upTo(length) {
      if (length > held) {
        if (held) heap.free(address);
        held = Math.max(FIRST_LENGTH, Math.min(context, 2 * length), length);
        const bytes = held * half * 8;
        address = heap.allocate(frequencies.length * bytes);
        frequencies.forEach((some, i) => {
          fill(heap.floats(address + i * bytes, held * half * 2), some);
        });
      }
      const rows = { half, address, stride: half * 8 };
      return long ? { ...rows, long: { beyond: long.beyond, away: held * half * 8 } } : rows;
    },
  };

  function fill(table: Float32Array, inverseFrequencies: Float64Array): void {
    for (let position = 0, at = 0; position < held; position++, at += 2 * half) {
      for (let i = 0; i < half; i++) {
        const angle = Math.fround(position * (inverseFrequencies[i] ?? missing('inverse frequency', i)));
        table[at + i] = Math.cos(angle) * scale;
        table[at + half + i] = Math.sin(angle) * scale;
      }
    }
  }
}
