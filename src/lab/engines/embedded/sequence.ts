/** Describes one sequence of a batch: the tokens to compute, the layer and position to start from, its KV stores and the hooks on its activations. */

import type { HookPlace, HookPoint } from '../../core/engine.ts';
import type { Heap } from './heap.ts';

export interface Sequence {
  /** The tokens to compute, one row of the batch for each. */
  tokens: readonly number[];
  /** The position of the first of them. */
  first: number;
  /** How many tokens its whole text has, which the rotary embedding of some models depends on. */
  length: number;
  /** The layer to start with. */
  start: number;
  /** The address of its residual stream before that layer; unused for layer 0. */
  input: number;
  shared: SharedStore | undefined;
  /** Where its own keys and values are written, if they are cached. */
  own: KeyValueStore | undefined;
  /** The first position that the last layer computes to its end: of those before it, only keys and values are needed. No hook behind them is called for less. */
  neededFrom: number;
  /** By the number of the hook point. */
  hooks: ReadonlyMap<number, readonly Hook[]>;
}

/** Keys and values in memory: for each layer the keys, then the values; in each, one head after the other with all of its positions. */
export interface KeyValueStore {
  address: number;
  layerBytes: number;
}

/** Keys and values of the positions before the sequence's own: `length` of them, but `lengthBefore` in layers before `changesAt`. */
export interface SharedStore extends KeyValueStore {
  length: number;
  lengthBefore: number;
  changesAt: number;
}

/** Reads or changes activations of the sequence, and says which heads' patterns it has changed: what is computed from those is computed again. */
export type Hook = (row: RowAt, changed: (index: number, head: number) => void) => void;

/** Gives an activation by row number, from 0; of a head, where the point has one. */
export type RowAt = (index: number, head?: number) => Float32Array;

const PLACES: Record<HookPlace, number> = { resid_pre: 0, pattern: 1, z: 2, attn_out: 3, mlp_out: 4, resid_post: 5 };
const PLACES_PER_LAYER = 6;

/** Hook points are numbered in the order in which the forward pass reaches them. */
export function pointNumber({ layer, place }: HookPoint): number {
  return layer * PLACES_PER_LAYER + PLACES[place];
}

/** The number of the residual stream before a layer, or after the last for `layer` = the number of layers. */
export function boundary(layer: number): number {
  return layer * PLACES_PER_LAYER;
}

/** How many layers must be computed to reach a point. */
export function depthOf({ layer, place }: HookPoint): number {
  return place === 'resid_pre' ? layer : layer + 1;
}

export function addHook(hooks: Map<number, Hook[]>, point: number, hook: Hook): void {
  const there = hooks.get(point);
  if (there) there.push(hook);
  else hooks.set(point, [hook]);
}

/** Words of a sequence and of a row in the kernel's tables: see `kernel/sequences.as`. */
export const SEQUENCE_WORDS = 9;
export const ROW_WORDS = 2;

/** Tells the kernel that a sequence has no store of this kind. */
const NO_STORE: SharedStore = { address: 0, layerBytes: 0, length: 0, lengthBefore: 0, changesAt: 0 };

export function writeSequence(heap: Heap, address: number, sequence: Sequence, firstRow: number): void {
  const { shared = NO_STORE, own = NO_STORE } = sequence;
  heap
    .words(address, SEQUENCE_WORDS)
    .set([
      ...[shared.address, shared.layerBytes, shared.length, shared.lengthBefore],
      ...[shared.changesAt, own.address, own.layerBytes, firstRow, sequence.length],
    ]);
}
