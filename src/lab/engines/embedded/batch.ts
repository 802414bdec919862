/** Allocates the memory in which a batch of sequences is computed, grows it for a larger batch, and splits work into batches that fit. */

import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { type Heap, roundUp } from './heap.ts';
import { PANEL, type Rows, type Tables } from './program.ts';
import { ROW_WORDS, SEQUENCE_WORDS, type Sequence, writeSequence } from './sequence.ts';

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
  /** The address of a table that lists rows, with room for all. */
  listed: number;
}

export interface Batches {
  /** A batch with memory and tables for these sequences, whose rows follow one another in order. */
  prepare(sequences: readonly Sequence[]): Batch;
}

export function createBatches(spec: ModelSpec, heap: Heap): Batches {
  const { width, heads, keyValueHeads, headWidth, hidden } = spec;
  let batch: Batch | undefined;
  let rowsHeld = 0;
  let sequencesHeld = 0;
  let held: number[] = [];

  return {
    prepare(sequences) {
      const rows = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
      if (!batch || rows > rowsHeld || sequences.length > sequencesHeld) {
        rowsHeld = Math.max(rows, rowsHeld);
        sequencesHeld = Math.max(sequences.length, sequencesHeld);
        for (const address of held) heap.free(address);
        held = [];
        batch = allocate();
      }
      write(batch, sequences);
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
      tables: { rows: take(rowsHeld * ROW_WORDS * 4), sequences: take(sequencesHeld * SEQUENCE_WORDS * 4) },
      tokens: take(rowsHeld * 8),
      listed: take(rowsHeld * 4),
    };
  }

  function take(bytes: number): number {
    const address = heap.allocate(bytes);
    held.push(address);
    return address;
  }

  function write({ tables, tokens: tokensAt }: Batch, sequences: readonly Sequence[]): void {
    const rowTable = heap.words(tables.rows, rowsHeld * ROW_WORDS);
    const tokenTable = heap.words(tokensAt, rowsHeld * 2);
    let row = 0;
    sequences.forEach((sequence, index) => {
      writeSequence(heap, tables.sequences + index * SEQUENCE_WORDS * 4, sequence, row);
      sequence.tokens.forEach((token, offset) => {
        rowTable[2 * row] = index;
        tokenTable[2 * row] = token;
        rowTable[2 * row + 1] = sequence.first + offset;
        tokenTable[2 * row + 1] = sequence.first + offset;
        row++;
      });
    });
  }
}

/** Splits values, in order, into groups whose sizes sum to at most `room`; a larger value is a group of its own. */
export function splitBySize<T>(values: readonly T[], size: (value: T) => number, room: number): T[][] {
  const groups: T[][] = [];
  let left = 0;
  for (const value of values) {
    const group = groups.at(-1);
    const fits = group !== undefined && size(value) <= left;
    if (!fits) left = room;
    left -= size(value);
    if (fits) group.push(value);
    else groups.push([value]);
  }
  return groups;
}
