/** Plans one variant of a run: what it copies from the unmodified prompt, what it computes itself, and which activations are read where. */

import type { ForwardRequest, HookPoint, Variant } from '../../core/engine.ts';
import { widthAt } from '../../core/hook-points.ts';
import { resolvePositions } from '../../core/positions.ts';
import type { BaseNeed } from './base-runs.ts';
import { addInterventions, type Change, firstChange } from './interventions.ts';
import { type CachedPrompt, residualRow } from './kv-cache.ts';
import type { Model } from './model.ts';
import { addHook, boundary, depthOf, type Hook, pointNumber, type Sequence } from './sequence.ts';

export interface RunPlan {
  tokens: readonly number[];
  /** Undefined if the interventions change nothing that the request reads. */
  change: Change | undefined;
  hooks: Map<number, Hook[]>;
  /** For each tap: positions × width. */
  activations: Float32Array[];
  /** Copy activations from the unmodified prompt, once it has been computed. */
  takeFromBase: (() => void)[];
}

/** Adds to `need` what the variant needs of the unmodified prompt. */
export function planVariant({ spec, heap }: Model, variant: Variant, request: ForwardRequest, need: BaseNeed): RunPlan {
  const { layers } = spec;
  const { cached } = need;
  const { tokens } = cached;
  const change = observedChange(variant, request, tokens.length, layers);
  const hooks = new Map<number, Hook[]>();
  const takeFromBase: (() => void)[] = [];
  if (change) {
    const rows = { length: tokens.length, first: change.first, end: tokens.length };
    addInterventions(hooks, variant.interventions, rows);
    if (change.start > 0) need.residuals.add(change.start);
  }

  const activations = (request.taps ?? []).map(({ point, positions }) => {
    const resolved = resolvePositions(positions, tokens.length);
    const width = widthAt(spec, point, tokens.length);
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
  return { tokens, change, hooks, activations, takeFromBase };

  function planReading(point: HookPoint, slots: readonly Slot[], first: number): void {
    if (slots.length > 0) addHook(hooks, pointNumber(point), reading(slots, first, point.head));
  }

  function planTaking(point: HookPoint, slots: readonly Slot[]): void {
    if (slots.length === 0) return;
    const layer = residualLayer(point);
    if (layer === undefined) {
      need.reads.push({ point, hook: reading(slots, 0, point.head) });
      return;
    }
    need.residuals.add(layer);
    takeFromBase.push(() => {
      for (const { position, target } of slots)
        target.set(heap.floats(residualRow(cached, layer, position), target.length));
    });
  }
}

/** How many layers a request needs. */
export function requestDepth({ taps = [], logits, surprise }: ForwardRequest, layers: number): number {
  if (logits || surprise) return layers;
  return Math.max(0, ...taps.map(({ point }) => depthOf(point)));
}

/** The part of the variant that differs from its prompt, as a sequence to compute. */
export function changedSequence({ tokens, hooks }: RunPlan, { start, first }: Change, cached: CachedPrompt): Sequence {
  const input = start > 0 ? residualRow(cached, start, first) : 0;
  const shared = { ...cached.store, length: first, lengthBefore: first, changesAt: 0 };
  return { tokens: tokens.slice(first), first, length: tokens.length, start, input, shared, own: undefined, hooks };
}

interface Slot {
  position: number;
  target: Float32Array;
}

function observedChange(variant: Variant, request: ForwardRequest, length: number, layers: number): Change | undefined {
  const change = firstChange(variant.interventions, length);
  return change && change.start <= requestDepth(request, layers) ? change : undefined;
}

function isComputed(change: Change | undefined, point: HookPoint, position: number): boolean {
  return change !== undefined && position >= change.first && pointNumber(point) >= boundary(change.start) - 1;
}

/** The layer whose input the point is, if it is a point of the residual stream. */
function residualLayer({ layer, place }: HookPoint): number | undefined {
  if (place === 'resid_pre') return layer;
  return place === 'resid_post' ? layer + 1 : undefined;
}

function reading(slots: readonly Slot[], first: number, head: number | undefined): Hook {
  return (row) => {
    for (const { position, target } of slots) target.set(row(position - first, head));
  };
}
