/** Applies interventions to activations, and finds the first layer and position that they change. Components are computed in double precision. */

import type { Intervention } from '../../core/engine.ts';
import { formatHookPoint } from '../../core/hook-points.ts';
import { missing } from '../../core/missing.ts';
import { resolvePositions } from '../../core/positions.ts';
import { dot } from '../../statistics/vectors.ts';
import { checkPatternRow } from '../pattern-row.ts';
import { addHook, depthOf, type Hook, pointNumber } from './sequence.ts';

export interface Change {
  /** The first layer that computes something else than without the interventions. */
  start: number;
  /** The first position that does. */
  first: number;
}

/** Undefined if nothing is changed. */
export function firstChange(interventions: readonly Intervention[], length: number): Change | undefined {
  let change: Change | undefined;
  for (const { point, positions } of interventions) {
    // At the end of a block, only what comes after it is changed.
    const start = point.place === 'resid_post' ? depthOf(point) : point.layer;
    for (const position of resolvePositions(positions, length)) {
      change = { start: Math.min(start, change?.start ?? start), first: Math.min(position, change?.first ?? position) };
    }
  }
  return change;
}

/** Adds hooks that apply the interventions to a sequence whose rows are the positions `first` to before `end` of a text with a prompt of `length` tokens. */
export function addInterventions(
  hooks: Map<number, Hook[]>,
  interventions: readonly Intervention[],
  { length, first, end }: { length: number; first: number; end: number },
): void {
  for (const intervention of interventions) {
    const rows = positionsUpTo(intervention, length, end).filter((position) => position >= first);
    if (rows.length === 0) continue;
    const { point } = intervention;
    addHook(hooks, pointNumber(point), (row, changed) => {
      for (const position of rows) {
        const x = row(position - first, point.head);
        intervene(intervention, x);
        if (point.place !== 'pattern') continue;
        checkPatternRow(x, position, formatHookPoint(point));
        changed(position - first, point.head ?? missing('head of', formatHookPoint(point)));
      }
    });
  }
}

/** Positions of a prompt; `{ from }` includes generated tokens behind its end. */
function positionsUpTo({ positions }: Intervention, length: number, end: number): number[] {
  const inPrompt = resolvePositions(positions, length);
  if (!('from' in positions)) return inPrompt;
  return [...inPrompt, ...Array.from({ length: Math.max(0, end - length) }, (_, i) => length + i)];
}

function intervene(intervention: Intervention, x: Float32Array): void {
  switch (intervention.kind) {
    case 'set':
      x.set(intervention.vector);
      return;
    case 'add':
      addTimes(x, 1, intervention.vector);
      return;
    case 'project-out':
      addTimes(x, -component(x, intervention.direction), intervention.direction);
      return;
    case 'interchange': {
      const { direction, source, part } = intervention;
      const difference = component(source, direction) - component(x, direction);
      if (part === 'rest') x.set(source);
      addTimes(x, part === 'along' ? difference : -difference, direction);
    }
  }
}

function addTimes(x: Float32Array, factor: number, vector: Float32Array): void {
  for (let i = 0; i < x.length; i++) {
    const value = x[i] ?? missing('number of the activation', i);
    x[i] = value + factor * (vector[i] ?? missing('number of the vector', i));
  }
}

/** The coefficient of the direction in x. */
function component(x: Float32Array, direction: Float32Array): number {
  return dot(x, direction) / dot(direction, direction);
}
