/** Owns computing prompts as they are, as far as something is needed of them that is not known yet. */

import type { HookPoint } from '../../core/engine.ts';
import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { type Alike, type Beginnings, beginningOf } from './beginnings.ts';
import { inGroups } from './groups.ts';
import type { Heap } from './heap.ts';
import { addVisit, boundary, type Lane, pointNumber, type Visit } from './lane.ts';
import { type Layers, ROWS_AT_ONCE } from './layers.ts';
import type { Rows } from './program.ts';
import { type PromptRecord, type PromptRecords, residualRow } from './prompt-records.ts';

export interface BaseNeed {
  record: PromptRecord;
  /** Layers before which the residual stream is needed. */
  residuals: Set<number>;
  /** What is read at points between those: it is not kept, and always computed. */
  reads: { point: HookPoint; visit: Visit }[];
}

export interface BaseRuns {
  /** Afterwards, keys and values of the layers before `depth` are there, and what else is needed. */
  compute(needs: readonly BaseNeed[], depth: number): void;
}

interface PlannedBase {
  need: BaseNeed;
  start: number;
  /** Layers before which the residual stream is to be kept. */
  keep: number[];
  /** Whose first tokens have been computed. */
  alike: Alike | undefined;
}

export function createBaseRuns(
  spec: ModelSpec,
  layers: Layers,
  records: PromptRecords,
  beginnings: Beginnings,
  heap: Heap,
): BaseRuns {
  return {
    compute(needs, depth) {
      const begun = new Set<string>();
      const bases: PlannedBase[] = [];
      const later: BaseNeed[] = [];
      for (const need of needs) {
        const base = plan(need, depth);
        if (!base) continue;
        const beginning = isNew(need) && !base.alike ? beginningOf(need.record.tokens) : undefined;
        // Of new texts that begin alike, the others take over what the first has computed.
        if (beginning !== undefined && begun.has(beginning)) later.push(need);
        else bases.push(base);
        if (beginning !== undefined) begun.add(beginning);
      }
      computeInGroups(bases, depth);
      computeInGroups(
        later.flatMap((need) => plan(need, depth) ?? []),
        depth,
      );
    },
  };

  function computeInGroups(bases: readonly PlannedBase[], depth: number): void {
    const rows = ({ need, alike }: PlannedBase) => need.record.tokens.length - takenOver(alike);
    for (const group of inGroups(bases, rows, ROWS_AT_ONCE)) computeGroup(group, depth);
  }

  function plan(need: BaseNeed, depth: number): PlannedBase | undefined {
    const { record } = need;
    const keep = new Set([...need.residuals].filter((layer) => !record.residuals.has(layer)));
    // So that a later run which goes deeper can begin there.
    if (record.depth < depth && depth < spec.layers && !record.residuals.has(depth)) keep.add(depth);
    const latest = Math.min(
      ...(record.depth < depth ? [record.depth] : []),
      ...[...keep].map((layer) => Math.max(0, layer - 1)),
      ...need.reads.map(({ point }) => point.layer),
    );
    if (latest === Number.POSITIVE_INFINITY) return undefined;
    const start = Math.max(0, ...[...record.residuals.keys()].filter((layer) => layer <= latest));
    const like = isNew(need) ? beginnings.like(record.tokens) : undefined;
    const isEnough = like && like.record.depth >= depth && [...keep].every((layer) => like.record.residuals.has(layer));
    return { need, start, keep: [...keep], alike: isEnough ? like : undefined };
  }

  function computeGroup(group: readonly PlannedBase[], depth: number): void {
    const reserved = group.map(({ need, keep }) => new Map(keep.map((layer) => [layer, records.reserve(need.record)])));
    try {
      const lanes = group.map((base, index) => {
        const kept = reserved[index] ?? missing('place for the residual stream of text', index);
        if (base.alike) takeOver(base.alike, base.need.record, kept, depth);
        return laneOf(base, kept);
      });
      layers.run(lanes, depth);
    } catch (error) {
      group.forEach(({ need }, index) => {
        for (const rows of reserved[index]?.values() ?? []) records.release(need.record, rows);
      });
      throw error;
    }
    group.forEach(({ need: { record } }, index) => {
      record.depth = Math.max(record.depth, depth);
      for (const [layer, rows] of reserved[index] ?? []) record.residuals.set(layer, rows);
      beginnings.remember(record);
    });
  }

  function takeOver(alike: Alike, record: PromptRecord, kept: ReadonlyMap<number, Rows>, depth: number): void {
    beginnings.copyKeysAndValues(alike, record, depth);
    for (const [layer, { address, stride }] of kept) {
      const count = (alike.length * stride) / 4;
      heap.floats(address, count).set(heap.floats(residualRow(alike.record, layer, 0), count));
    }
  }

  function laneOf({ need, start, alike }: PlannedBase, kept: ReadonlyMap<number, Rows>): Lane {
    const { tokens, store } = need.record;
    const first = takenOver(alike);
    const visits = new Map<number, Visit[]>();
    for (const [layer, rows] of kept) addVisit(visits, boundary(layer), keeping(first, tokens.length, rows));
    for (const { point, visit } of need.reads) addVisit(visits, pointNumber(point), visit);
    return {
      tokens: tokens.slice(first),
      first,
      start,
      input: start === 0 ? 0 : residualRow(need.record, start, 0),
      shared: { ...store, length: first, lengthBefore: first, changesAt: 0 },
      own: { ...store, address: store.address + first * spec.headWidth * 4 },
      visits,
    };
  }

  /** For rows of the positions from `first` to before `end`. */
  function keeping(first: number, end: number, { address, stride }: Rows): Visit {
    return (row) => {
      for (let position = first; position < end; position++) {
        const values = row(position - first);
        heap.floats(address + position * stride, values.length).set(values);
      }
    };
  }
}

/** Whether nothing of it has been computed, and nothing is read on the way. */
function isNew({ record, reads }: BaseNeed): boolean {
  return record.depth === 0 && record.residuals.size === 0 && reads.length === 0;
}

/** How many positions are not computed, as another text begins with the same. */
function takenOver(alike: Alike | undefined): number {
  return alike ? alike.length : 0;
}
