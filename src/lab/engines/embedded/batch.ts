/** Owns the memory in which a batch of rows is computed; it becomes larger with the largest batch, and is used again. */

import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { type Heap, roundUp } from './heap.ts';
import { LANE_WORDS, type Lane, ROW_WORDS, writeLane } from './lane.ts';
import { PANEL, type Rows, type Tables } from './program.ts';

export interface Batch {
  /** The residual stream. */
  residual: Rows;
  normed: Rows;
  /** Queries, keys and values, side by side. */
  heads: Rows;
  attended: Rows;
  attentionOut: Rows;
  hidden: Rows;
  mlpOut: Rows;
  tables: Tables;
  /** For each row its token and its position. */
  tokens: number;
}

export interface Batches {
  /** A batch with room for these lanes, whose tables are written: rows follow one another in the order of the lanes. */
  prepare(lanes: readonly Lane[]): Batch;
}

export function createBatches(spec: ModelSpec, heap: Heap): Batches {
  const { width, heads, keyValueHeads, headWidth, hidden } = spec;
  let batch: Batch | undefined;
  let rowsHeld = 0;
  let lanesHeld = 0;
  let held: number[] = [];

  return {
    prepare(lanes) {
      const rows = lanes.reduce((sum, { tokens }) => sum + tokens.length, 0);
      if (!batch || rows > rowsHeld || lanes.length > lanesHeld) {
        rowsHeld = Math.max(rows, rowsHeld);
        lanesHeld = Math.max(lanes.length, lanesHeld);
        for (const address of held) heap.free(address);
        held = [];
        batch = allocate();
      }
      write(batch, lanes);
      return batch;
    },
  };

  function allocate(): Batch {
    const rowsOf = (numbers: number): Rows => {
      const stride = roundUp(numbers, PANEL) * 4;
      return { address: take(rowsHeld * stride), stride };
    };
    return {
      residual: rowsOf(width),
      normed: rowsOf(width),
      heads: rowsOf((heads + 2 * keyValueHeads) * headWidth),
      attended: rowsOf(heads * headWidth),
      attentionOut: rowsOf(width),
      hidden: rowsOf(spec.gated ? 2 * hidden : hidden),
      mlpOut: rowsOf(width),
      tables: { rows: take(rowsHeld * ROW_WORDS * 4), lanes: take(lanesHeld * LANE_WORDS * 4) },
      tokens: take(rowsHeld * 8),
    };
  }

  function take(bytes: number): number {
    const address = heap.allocate(bytes);
    held.push(address);
    return address;
  }

  function write({ tables, tokens: tokensAt }: Batch, lanes: readonly Lane[]): void {
    const rowTable = heap.words(tables.rows, rowsHeld * ROW_WORDS);
    const tokenTable = heap.words(tokensAt, rowsHeld * 2);
    let row = 0;
    lanes.forEach((lane, index) => {
      writeLane(heap, tables.lanes + index * LANE_WORDS * 4, lane, row);
      lane.tokens.forEach((token, offset) => {
        rowTable[2 * row] = index;
        tokenTable[2 * row] = token;
        rowTable[2 * row + 1] = lane.first + offset;
        tokenTable[2 * row + 1] = lane.first + offset;
        row++;
      });
    });
  }
}
