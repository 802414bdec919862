/** Computes unmodified prompts as far as something is needed of them that the caches do not have. */

import type { HookPoint } from '../../core/engine.ts';
import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { splitBySize } from './batch.ts';
import type { Heap } from './heap.ts';
import { type CachedPrompt, type KvCache, residualRow } from './kv-cache.ts';
import { type Layers, ROWS_AT_ONCE } from './layers.ts';
import type { PrefixCache, SharedPrefix } from './prefix-cache.ts';
import type { Rows } from './program.ts';
import { addHook, boundary, type Hook, pointNumber, type Sequence } from './sequence.ts';

export interface BaseNeed {
  cached: CachedPrompt;
  /** Layers before which the residual stream is needed. */
  residuals: Set<number>;
  /** Activations at other points, which are never cached. */
  reads: { point: HookPoint; hook: Hook }[];
}

export interface BaseRuns {
  /** Fills the KV cache for the layers before `depth`, and computes what else is needed. */
  compute(needs: readonly BaseNeed[], depth: number): void;
}

interface PlannedBase {
  need: BaseNeed;
  start: number;
  /** Layers before which the residual stream is to be kept. */
  keep: number[];
  /** A cached prompt that begins with the same tokens. */
  prefix: SharedPrefix | undefined;
}

export function createBaseRuns(
  spec: ModelSpec,
  layers: Layers,
  cache: KvCache,
  prefixes: PrefixCache,
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
        const prefix = isNew(need) && !base.prefix ? prefixes.keyOf(need.cached.tokens) : undefined;
        // Of new prompts with the same prefix, one is computed first, and the others copy the prefix from it.
        if (prefix !== undefined && begun.has(prefix)) later.push(need);
        else bases.push(base);
        if (prefix !== undefined) begun.add(prefix);
      }
      computeInGroups(bases, depth);
      computeInGroups(
        later.flatMap((need) => plan(need, depth) ?? []),
        depth,
      );
    },
  };

  function computeInGroups(bases: readonly PlannedBase[], depth: number): void {
    const rows = ({ need, prefix }: PlannedBase) => need.cached.tokens.length - prefixLength(prefix);
    for (const group of splitBySize(bases, rows, ROWS_AT_ONCE)) computeGroup(group, depth);
  }

  function plan(need: BaseNeed, depth: number): PlannedBase | undefined {
    const { cached } = need;
    const keep = new Set([...need.residuals].filter((layer) => !cached.residuals.has(layer)));
    // A later run that goes deeper can begin there.
    if (cached.depth < depth && depth < spec.layers && !cached.residuals.has(depth)) keep.add(depth);
    const latest = Math.min(
      ...(cached.depth < depth ? [cached.depth] : []),
      ...[...keep].map((layer) => Math.max(0, layer - 1)),
      ...need.reads.map(({ point }) => point.layer),
    );
    if (latest === Number.POSITIVE_INFINITY) return undefined;
    const start = Math.max(0, ...[...cached.residuals.keys()].filter((layer) => layer <= latest));
    const found = isNew(need) ? prefixes.find(cached.tokens) : undefined;
    const isEnough =
      found && found.cached.depth >= depth && [...keep].every((layer) => found.cached.residuals.has(layer));
    return { need, start, keep: [...keep], prefix: isEnough ? found : undefined };
  }

  function computeGroup(group: readonly PlannedBase[], depth: number): void {
    const reserved = group.map(({ need, keep }) => new Map(keep.map((layer) => [layer, cache.reserve(need.cached)])));
    try {
      const sequences = group.map((base, index) => {
        const kept = reserved[index] ?? missing('memory for the residual stream of prompt', index);
        if (base.prefix) copyPrefix(base.prefix, base.need.cached, kept, depth);
        return sequenceOf(base, kept, depth);
      });
      layers.run(sequences, depth);
    } catch (error) {
      group.forEach(({ need }, index) => {
        for (const rows of reserved[index]?.values() ?? []) cache.release(need.cached, rows);
      });
      throw error;
    }
    group.forEach(({ need: { cached } }, index) => {
      cached.depth = Math.max(cached.depth, depth);
      for (const [layer, rows] of reserved[index] ?? []) cached.residuals.set(layer, rows);
      prefixes.add(cached);
    });
  }

  function copyPrefix(
    prefix: SharedPrefix,
    cached: CachedPrompt,
    kept: ReadonlyMap<number, Rows>,
    depth: number,
  ): void {
    prefixes.copyKeysAndValues(prefix, cached, depth);
    for (const [layer, { address, stride }] of kept) {
      const count = (prefix.length * stride) / 4;
      heap.floats(address, count).set(heap.floats(residualRow(prefix.cached, layer, 0), count));
    }
  }

  function sequenceOf({ need, start, prefix }: PlannedBase, kept: ReadonlyMap<number, Rows>, depth: number): Sequence {
    const { tokens, store } = need.cached;
    const first = prefixLength(prefix);
    const hooks = new Map<number, Hook[]>();
    for (const [layer, rows] of kept) addHook(hooks, boundary(layer), keeping(first, tokens.length, rows));
    for (const { point, hook } of need.reads) addHook(hooks, pointNumber(point), hook);
    const isNeededToTheEnd = [...hooks.keys()].some((point) => point > boundary(depth - 1));
    return {
      tokens: tokens.slice(first),
      first,
      neededFrom: isNeededToTheEnd ? first : tokens.length,
      length: tokens.length,
      start,
      input: start === 0 ? 0 : residualRow(need.cached, start, 0),
      shared: { ...store, length: first, lengthBefore: first, changesAt: 0 },
      own: { ...store, address: store.address + first * spec.headWidth * 4 },
      hooks,
    };
  }

  /** Copies the rows of the positions from `first` to before `end`. */
  function keeping(first: number, end: number, { address, stride }: Rows): Hook {
    return (row) => {
      for (let position = first; position < end; position++) {
        const values = row(position - first);
        heap.floats(address + position * stride, values.length).set(values);
      }
    };
  }
}

/** Whether nothing of the prompt is cached, and no other activation is read. */
function isNew({ cached, reads }: BaseNeed): boolean {
  return cached.depth === 0 && cached.residuals.size === 0 && reads.length === 0;
}

/** How many positions are copied instead of computed. */
function prefixLength(prefix: SharedPrefix | undefined): number {
  return prefix ? prefix.length : 0;
}
