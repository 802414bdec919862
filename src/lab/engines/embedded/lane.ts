/** Owns the lane: one text as it is computed, alone or beside others. Lanes may begin late, at a later layer or a later token, with what an earlier run has left. */

import type { HookPoint, Place } from '../../core/engine.ts';
import type { Heap } from './heap.ts';

export interface Lane {
  /** Those that are computed, one row for each. */
  tokens: readonly number[];
  /** The position of the first of them. */
  first: number;
  /** The layer that it begins with. */
  start: number;
  /** Where its rows of the residual stream before that layer are; not needed for layer 0. */
  input: number;
  shared: SharedStore | undefined;
  /** Where its own keys and values are kept. */
  own: KeyValueStore | undefined;
  /** What is done at points, by their numbers. */
  visits: ReadonlyMap<number, readonly Visit[]>;
}

/** For each layer the keys, then the values; of each, one head after the other with all of its positions. */
export interface KeyValueStore {
  address: number;
  layerBytes: number;
}

/** Keys and values of positions that come before the lane's own: `length` of them, but `lengthBefore` in layers before `changesAt`. */
export interface SharedStore extends KeyValueStore {
  length: number;
  lengthBefore: number;
  changesAt: number;
}

/** Gets access to the lane's rows by their number, from 0. */
export type Visit = (row: (index: number) => Float32Array) => void;

const PLACES: Record<Place, number> = { resid_pre: 0, attn_out: 1, mlp_out: 2, resid_post: 3 };

/** Points are numbered in the order in which they are passed. */
export function pointNumber({ layer, place }: HookPoint): number {
  return layer * 4 + PLACES[place];
}

/** The residual stream before a layer; for the number of layers, at the end. */
export function boundary(layer: number): number {
  return layer * 4;
}

/** How many layers must be computed until a point is passed. */
export function depthOf({ layer, place }: HookPoint): number {
  return place === 'resid_pre' ? layer : layer + 1;
}

export function addVisit(visits: Map<number, Visit[]>, point: number, visit: Visit): void {
  const there = visits.get(point);
  if (there) there.push(visit);
  else visits.set(point, [visit]);
}

/** Words of a lane and of a row in the kernel's tables: see `kernel/lanes.as`. */
export const LANE_WORDS = 8;
export const ROW_WORDS = 2;

/** Tells the kernel that a lane has no store of this kind. */
const NO_STORE: SharedStore = { address: 0, layerBytes: 0, length: 0, lengthBefore: 0, changesAt: 0 };

export function writeLane(heap: Heap, address: number, lane: Lane, firstRow: number): void {
  const { shared = NO_STORE, own = NO_STORE } = lane;
  heap
    .words(address, LANE_WORDS)
    .set([
      ...[shared.address, shared.layerBytes, shared.length, shared.lengthBefore],
      ...[shared.changesAt, own.address, own.layerBytes, firstRow],
    ]);
}
