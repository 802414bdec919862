/** Owns planning one variant of a run: what it takes from its prompt as it is, what it computes by itself, and what is read where. */

import type { HookPoint, RunRequest, Variant } from '../../core/engine.ts';
import { resolvePositions } from '../../core/positions.ts';
import type { BaseNeed } from './base-runs.ts';
import { addInterventions, type Change, firstChange } from './interventions.ts';
import { addVisit, boundary, depthOf, type Lane, pointNumber, type Visit } from './lane.ts';
import type { Model } from './model.ts';
import { type PromptRecord, residualRow } from './prompt-records.ts';

export interface Plan {
  tokens: readonly number[];
  /** Undefined where nothing that is asked for comes out other than for the prompt as it is. */
  change: Change | undefined;
  visits: Map<number, Visit[]>;
  /** For each tap: positions × width. */
  activations: Float32Array[];
  /** Copies what is taken from the prompt as it is, once that has been computed. */
  takeFromBase: (() => void)[];
}

/** What is needed of the prompt as it is, is added to `need`. */
export function planVariant({ spec, heap }: Model, variant: Variant, request: RunRequest, need: BaseNeed): Plan {
  const { width, layers } = spec;
  const { record } = need;
  const { tokens } = record;
  const change = observedChange(variant, request, tokens.length, layers);
  const visits = new Map<number, Visit[]>();
  const takeFromBase: (() => void)[] = [];
  if (change) {
    const rows = { length: tokens.length, first: change.first, end: tokens.length };
    addInterventions(visits, variant.interventions, rows);
    if (change.start > 0) need.residuals.add(change.start);
  }

  const activations = (request.taps ?? []).map(({ point, positions }) => {
    const resolved = resolvePositions(positions, tokens.length);
    const activation = new Float32Array(resolved.length * width);
    const slots = resolved.map((position, i) => ({
      position,
      target: activation.subarray(i * width, (i + 1) * width),
    }));
    const isChanged = ({ position }: Slot) => isComputed(change, point, position);
    if (change) planReading(point, slots.filter(isChanged), change.first);
    planTaking(
      point,
      slots.filter((slot) => !isChanged(slot)),
    );
    return activation;
  });
  return { tokens, change, visits, activations, takeFromBase };

  function planReading(point: HookPoint, slots: readonly Slot[], first: number): void {
    if (slots.length > 0) addVisit(visits, pointNumber(point), reading(slots, first));
  }

  function planTaking(point: HookPoint, slots: readonly Slot[]): void {
    if (slots.length === 0) return;
    const layer = residualLayer(point);
    if (layer === undefined) {
      need.reads.push({ point, visit: reading(slots, 0) });
      return;
    }
    need.residuals.add(layer);
    takeFromBase.push(() => {
      for (const { position, target } of slots) target.set(heap.floats(residualRow(record, layer, position), width));
    });
  }
}

/** How many layers a request needs. */
export function requestDepth({ taps = [], logits, surprise }: RunRequest, layers: number): number {
  if (logits || surprise) return layers;
  return Math.max(0, ...taps.map(({ point }) => depthOf(point)));
}

/** From its first change on. */
export function laneOf({ tokens, visits }: Plan, { start, first }: Change, record: PromptRecord): Lane {
  const input = start > 0 ? residualRow(record, start, first) : 0;
  const shared = { ...record.store, length: first, lengthBefore: first, changesAt: 0 };
  return { tokens: tokens.slice(first), first, start, input, shared, own: undefined, visits };
}

interface Slot {
  position: number;
  target: Float32Array;
}

function observedChange(variant: Variant, request: RunRequest, length: number, layers: number): Change | undefined {
  const change = firstChange(variant.interventions, length);
  return change && change.start <= requestDepth(request, layers) ? change : undefined;
}

function isComputed(change: Change | undefined, point: HookPoint, position: number): boolean {
  return change !== undefined && position >= change.first && pointNumber(point) >= boundary(change.start) - 1;
}

/** Where the point is a residual stream: the layer that it is before. */
function residualLayer({ layer, place }: HookPoint): number | undefined {
  if (place === 'resid_pre') return layer;
  return place === 'resid_post' ? layer + 1 : undefined;
}

function reading(slots: readonly Slot[], first: number): Visit {
  return (row) => {
    for (const { position, target } of slots) target.set(row(position - first));
  };
}
