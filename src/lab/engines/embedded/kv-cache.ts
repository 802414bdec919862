/** Caches keys, values and some residual streams of unmodified prompts, and evicts the least recently used when they take more than their budget. */

import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { type Heap, roundUp } from './heap.ts';
import { PANEL, type Rows } from './program.ts';
import type { KeyValueStore } from './sequence.ts';

export interface CachedPrompt {
  tokens: readonly number[];
  store: KeyValueStore;
  /** How many layers have their keys and values cached. */
  depth: number;
  /** By layer: the residual stream before it, a row for each token. */
  residuals: Map<number, Rows>;
}

export interface KvCache {
  /** The entry of a prompt, which is made if there is none. */
  get(tokens: readonly number[]): CachedPrompt;
  /** Allocates a residual stream; the caller puts it among the entry's residuals or releases it. */
  reserve(prompt: CachedPrompt): Rows;
  release(prompt: CachedPrompt, rows: Rows): void;
  /** The size of the entry of a prompt with so many tokens and residual streams. */
  bytes(length: number, residuals: number): number;
  /** Evicts entries until the rest fits into the budget. */
  evict(): void;
}

/** `onEvict` is called with each evicted entry. */
export function createKvCache(
  spec: ModelSpec,
  heap: Heap,
  budget: number,
  onEvict: (prompt: CachedPrompt) => void,
): KvCache {
  const keyValueBytes = spec.keyValueHeads * spec.headWidth * 4;
  const stride = roundUp(spec.width, PANEL) * 4;
  const bytes = (length: number, residuals: number) => length * (2 * spec.layers * keyValueBytes + residuals * stride);
  const prompts = new Map<string, CachedPrompt>();
  let used = 0;

  return {
    bytes,

    get(tokens) {
      const key = tokens.join();
      const prompt = prompts.get(key) ?? create(tokens);
      // Keeps the map in the order of use.
      prompts.delete(key);
      prompts.set(key, prompt);
      return prompt;
    },

    reserve({ tokens }) {
      used += tokens.length * stride;
      return { address: heap.allocate(tokens.length * stride), stride };
    },

    release({ tokens }, { address }) {
      used -= tokens.length * stride;
      heap.free(address);
    },

    evict() {
      for (const [key, prompt] of prompts) {
        if (used <= budget) return;
        const { tokens, store, residuals } = prompt;
        prompts.delete(key);
        onEvict(prompt);
        heap.free(store.address);
        for (const { address } of residuals.values()) heap.free(address);
        used -= bytes(tokens.length, residuals.size);
      }
    },
  };

  function create(tokens: readonly number[]): CachedPrompt {
    used += bytes(tokens.length, 0);
    const store = { address: heap.allocate(bytes(tokens.length, 0)), layerBytes: 2 * tokens.length * keyValueBytes };
    return { tokens, store, depth: 0, residuals: new Map() };
  }
}

/** The address of a row of a cached residual stream. */
export function residualRow({ residuals }: CachedPrompt, layer: number, position: number): number {
  const rows = residuals.get(layer);
  if (!rows) throw new Error(`The residual stream before layer ${layer} has not been kept.`);
  return rows.address + position * rows.stride;
}
