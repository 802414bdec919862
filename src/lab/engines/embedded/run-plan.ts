/** Plans one variant of a run: what it copies from the unmodified prompt, what it computes itself, and which activations are read where. */

import type { ForwardRequest, HookPoint, Positions, Variant } from '../../core/engine.ts';
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
  /** The first position at which anything is read or changed that the last layer computes from its keys and values. */
  neededFrom: number;
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
  const depth = requestDepth(request, layers);
  const neededFrom = firstNeeded(variant, request, tokens.length, depth);
  const change = observedChange(variant, tokens.length, depth) ?? lastLayer();
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
  const logitsFrom = request.logits ? firstOf(request.logits.positions, tokens.length) : tokens.length;
  const readsBase = request.surprise || (request.logits && (!change || logitsFrom < change.first));
  if (readsBase) need.residuals.add(layers);
  return { tokens, change, neededFrom, hooks, activations, takeFromBase };

  /** What is read of an unmodified prompt behind its last layer is computed for those positions alone, as if that layer had been changed there. */
  function lastLayer(): Change | undefined {
    if (depth < layers || neededFrom === 0 || cached.residuals.has(layers)) return undefined;
    return { start: layers - 1, first: neededFrom };
  }

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
export function changedSequence(plan: RunPlan, { start, first }: Change, cached: CachedPrompt): Sequence {
  const { tokens, neededFrom, hooks } = plan;
  const input = start > 0 ? residualRow(cached, start, first) : 0;
  const { address, layerBytes } = cached.store;
  return {
    tokens: tokens.slice(first),
    first,
    length: tokens.length,
    start,
    input,
    shared: { address, layerBytes, length: first, lengthBefore: first, changesAt: 0 },
    own: undefined,
    neededFrom: Math.max(first, neededFrom),
    hooks,
  };
}

interface Slot {
  position: number;
  target: Float32Array;
}

function observedChange({ interventions }: Variant, length: number, depth: number): Change | undefined {
  const change = firstChange(interventions, length);
  return change && change.start <= depth ? change : undefined;
}

function firstNeeded(
  { interventions }: Variant,
  { taps = [], logits, surprise }: ForwardRequest,
  length: number,
  depth: number,
): number {
  if (surprise) return 0;
  const inLastLayer = [...taps, ...interventions].filter(({ point }) => pointNumber(point) > boundary(depth - 1));
  const asked = [...inLastLayer.map(({ positions }) => positions), ...(logits ? [logits.positions] : [])];
  return Math.min(length, ...asked.map((positions) => firstOf(positions, length)));
}

/** The length if there is none. */
function firstOf(positions: Positions, length: number): number {
  return Math.min(length, ...resolvePositions(positions, length));
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
