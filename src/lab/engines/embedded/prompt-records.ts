/** Owns what is kept of prompts that have been computed as they are: keys and values, and the residual stream before some layers. The oldest go first. */

import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { type Heap, roundUp } from './heap.ts';
import type { KeyValueStore } from './lane.ts';
import { PANEL, type Rows } from './program.ts';

export interface PromptRecord {
  tokens: readonly number[];
  store: KeyValueStore;
  /** How many layers' keys and values are there. */
  depth: number;
  /** By layer: the residual stream before it, a row for each token. */
  residuals: Map<number, Rows>;
}

export interface PromptRecords {
  /** What is known of a prompt, perhaps nothing yet. */
  of(tokens: readonly number[]): PromptRecord;
  /** Room for a residual stream, which becomes the record's when it is put among its residuals; else it is released. */
  reserve(record: PromptRecord): Rows;
  release(record: PromptRecord, rows: Rows): void;
  /** How many bytes the record of a prompt takes, with so many residual streams. */
  bytes(length: number, residuals: number): number;
  /** Lets records go, until what is left fits. */
  trim(): void;
}

/** `onGone` is told of records that had to go. */
export function createPromptRecords(
  spec: ModelSpec,
  heap: Heap,
  budget: number,
  onGone: (record: PromptRecord) => void,
): PromptRecords {
  const keyValueBytes = spec.keyValueHeads * spec.headWidth * 4;
  const stride = roundUp(spec.width, PANEL) * 4;
  const bytes = (length: number, residuals: number) => length * (2 * spec.layers * keyValueBytes + residuals * stride);
  const records = new Map<string, PromptRecord>();
  let held = 0;

  return {
    bytes,

    of(tokens) {
      const key = tokens.join();
      const record = records.get(key) ?? create(tokens);
      // The last of the table is the one that was used last.
      records.delete(key);
      records.set(key, record);
      return record;
    },

    reserve({ tokens }) {
      held += tokens.length * stride;
      return { address: heap.allocate(tokens.length * stride), stride };
    },

    release({ tokens }, { address }) {
      held -= tokens.length * stride;
      heap.free(address);
    },

    trim() {
      for (const [key, record] of records) {
        if (held <= budget) return;
        const { tokens, store, residuals } = record;
        records.delete(key);
        onGone(record);
        heap.free(store.address);
        for (const { address } of residuals.values()) heap.free(address);
        held -= bytes(tokens.length, residuals.size);
      }
    },
  };

  function create(tokens: readonly number[]): PromptRecord {
    held += bytes(tokens.length, 0);
    const store = { address: heap.allocate(bytes(tokens.length, 0)), layerBytes: 2 * tokens.length * keyValueBytes };
    return { tokens, store, depth: 0, residuals: new Map() };
  }
}

/** The address of a row of a residual stream that is kept. */
export function residualRow({ residuals }: PromptRecord, layer: number, position: number): number {
  const rows = residuals.get(layer);
  if (!rows) throw new Error(`The residual stream before layer ${layer} has not been kept.`);
  return rows.address + position * rows.stride;
}
