/** Defines a transformer in a basis whose axes have names, whatever its architecture. Writing it as a model is left to `write-model.ts`. */

/** Weights by the names of axes; an axis that is not named has 0. */
export type Named = Readonly<Record<string, number>>;

export interface Blueprint {
  /** For every word of the vocabulary, in its order. */
  embedding: ReadonlyMap<string, Named>;
  /** For every word of the vocabulary: a logit is the product with the residual stream, where that has the typical size. */
  unembedding: ReadonlyMap<string, Named>;
  /** Added to the embedding by models with learned positions. */
  positions: readonly Named[];
  layers: readonly Layer[];
  /** What every word has along the axis `constant`. */
  constant: number;
  /** The typical length of a row of the residual stream, by which weights make up for norms. */
  size: number;
}

export interface Layer {
  heads: readonly Head[];
  units: readonly Unit[];
}

/** Attention from a query to a key has the sum of the products of its `scores`; `moves` are added at the query in that proportion. */
export interface Head {
  scores: readonly { query: Named; key: Named }[];
  moves: readonly { from: Named; to: Named }[];
}

/** Adds `writes` times ramp(`reads` · x + `bias`), where a ramp is the activation function, so steep that it is as good as a ramp. */
export interface Unit {
  reads: Named;
  bias?: number;
  writes: Named;
}

export function layer(heads: readonly Head[] = [], units: readonly Unit[] = []): Layer {
  return { heads, units };
}

/** Two units that pass on what they read as it is: a ramp up less a ramp down is a line. */
export function line(reads: Named, writes: Named): Unit[] {
  return [
    { reads, writes },
    { reads: times(reads, -1), writes: times(writes, -1) },
  ];
}

/** Three units that pass on what they read within −bound and bound, and the bound beyond. */
export function clipped(reads: Named, bound: number, writes: Named): Unit[] {
  return [
    { reads, bias: bound, writes },
    { reads, bias: -bound, writes: times(writes, -1) },
    { reads: {}, bias: bound, writes: times(writes, -1) },
  ];
}

/** A head that looks from wherever the query's axis is set to wherever the key's is, and takes these axes along as they are. */
export function gather(query: string, key: string, axes: readonly string[], gain = 1): Head {
  return {
    scores: [{ query: { [query]: FOCUS }, key: { [key]: 1 } }],
    moves: axes.map((axis) => ({ from: { [axis]: 1 }, to: { [axis]: gain } })),
  };
}

/** A score that leaves next to nothing for tokens that have none. */
export const FOCUS = 9;

export function times(named: Named, factor: number): Named {
  return Object.fromEntries(Object.entries(named).map(([axis, weight]) => [axis, weight * factor]));
}

export function plus(...parts: readonly Named[]): Named {
  const sum: Record<string, number> = {};
  for (const part of parts) for (const [axis, weight] of Object.entries(part)) sum[axis] = (sum[axis] ?? 0) + weight;
  return sum;
}
