/** Computes the cosines and sines of the rotary embedding, and extends the table when a longer text needs more positions. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import type { Heap } from './heap.ts';
import type { RotaryRows } from './program.ts';

export interface RotaryTable {
  /** For positions below `length`. */
  upTo(length: number): RotaryRows;
}

const FIRST_LENGTH = 256;

export function createRotaryTable(spec: ModelSpec, heap: Heap): RotaryTable {
  const { positions } = spec;
  if (positions.kind === 'learned') return { upTo: () => ({ half: 0, address: 0, stride: 0 }) };
  const { inverseFrequencies, scale } = positions;
  const half = inverseFrequencies.length;
  let held = 0;
  let address = 0;

  return {
    upTo(length) {
      if (length > held) {
        if (held) heap.free(address);
        held = Math.max(FIRST_LENGTH, Math.min(spec.context, 2 * length), length);
        address = heap.allocate(held * half * 8);
        fill(heap.floats(address, held * half * 2));
      }
      return { half, address, stride: half * 8 };
    },
  };

  function fill(table: Float32Array): void {
    for (let position = 0, at = 0; position < held; position++, at += 2 * half) {
      for (let i = 0; i < half; i++) {
        const angle = Math.fround(position * (inverseFrequencies[i] ?? missing('inverse frequency', i)));
        table[at + i] = Math.cos(angle) * scale;
        table[at + half + i] = Math.sin(angle) * scale;
      }
    }
  }
}
