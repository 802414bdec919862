/** Computes attention whose weights are read or changed: writes the weights out, runs the hooks on them, and mixes the values of changed rows again. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import type { Heap } from './heap.ts';
import type { KernelProgram, Reach, Rows, Tables } from './program.ts';
import type { Hook, RowAt } from './sequence.ts';

export interface Patterns {
  attend(attention: Attention, sequences: readonly HookedSequence[]): void;
}

/** Attention of one layer, for the first `count` rows of a batch. */
interface Attention {
  heads: Rows;
  attended: Rows;
  tables: Tables;
  layer: number;
  reach: Reach;
  count: number;
}

interface HookedSequence {
  hooks: readonly Hook[];
  /** Its first row in the batch. */
  row: number;
  /** How many tokens its text has. */
  end: number;
}

export function createPatterns(spec: ModelSpec, heap: Heap, program: KernelProgram): Patterns {
  return {
    attend({ heads, attended, tables, layer, reach, count }, sequences) {
      const longest = longestText(tables, count);
      const headStride = longest * 4;
      const stride = spec.heads * headStride;
      const address = heap.allocate(count * stride);
      const changed: number[] = [];
      try {
        const patterns = { address, stride, headStride };
        program.attend(heads, count, spec, reach, attended, tables, layer, { patterns });
        program.run();
        for (const { hooks, row: first, end } of sequences) {
          const weights: RowAt = (index, head = missing('head of a pattern')) =>
            heap.floats(address + (first + index) * stride + head * headStride, end);
          for (const hook of hooks) hook(weights, (index, head) => changed.push(first + index, head));
        }
        if (changed.length > 0) mixAgain();

        function mixAgain(): void {
          const rows = heap.allocate(changed.length * 4);
          try {
            heap.words(rows, changed.length).set(changed);
            program.mixPatterns(
              heads,
              { rows, count: changed.length / 2 },
              spec,
              reach,
              attended,
              tables,
              layer,
              patterns,
            );
            program.run();
          } finally {
            heap.free(rows);
          }
        }
      } finally {
        heap.free(address);
      }
    },
  };

  /** The most positions that a row of the batch may attend to. */
  function longestText(tables: Tables, count: number): number {
    const words = heap.words(tables.rows, 2 * count);
    let last = 0;
    for (let row = 0; row < count; row++) last = Math.max(last, words[2 * row + 1] ?? missing('position of row', row));
    return last + 1;
  }
}
