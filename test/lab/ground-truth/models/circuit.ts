/** Describes what the heads and units of a hand-built model do, in terms of named axes: who looks where, who copies what, who reads what. */

import type { Along } from './basis.ts';

/** Looks from where the query's axes are to where the key's are, and copies what is there. */
export interface Head {
  layer: number;
  query: Along;
  key: Along;
  copies: readonly { from: string; to: string; gain: number }[];
}

/** Adds `writes` times the positive part of `reads` to the residual stream. */
export interface Unit {
  layer: number;
  reads: Along;
  writes: Along;
  /** A gated MLP multiplies by what is on this axis. Others have no gates, and work at every token. */
  gate: string;
}

/** Of attention that is to look at one token only. */
const FOCUS = 8;

/** The axis on which every activation is 1 × the constant of the model. */
export const CONSTANT = 'constant';

/** Takes what is on these axes from the token with a mark to the question mark; other tokens look everywhere. */
export function takeToQuestion(layer: number, mark: string, axes: readonly string[]): Head {
  return lookFor(
    layer,
    mark,
    axes.map((axis) => ({ from: axis, to: axis, gain: 1 })),
  );
}

export function lookFor(layer: number, mark: string, copies: Head['copies']): Head {
  return { layer, query: { question: FOCUS }, key: { [mark]: FOCUS }, copies };
}

export function ramp(layer: number, reads: Along, writes: Along, gate = 'question'): Unit {
  return { layer, reads, writes, gate };
}

/** What is on an axis, times the slope. For GELU, SiLU and ReLU alike, f(x) − f(−x) is x. */
export function line(layer: number, from: string, to: string, slope: number, gate?: string): Unit[] {
  return [ramp(layer, { [from]: 1 }, { [to]: slope }, gate), ramp(layer, { [from]: -1 }, { [to]: -slope }, gate)];
}

/** From −height to height as the sum of the axes goes from −bound to bound, and level beyond. */
export function clamp(layer: number, axes: readonly string[], to: string, height: number, bound: number): Unit[] {
  const at = (level: number): Along => ({
    ...Object.fromEntries(axes.map((axis) => [axis, 1])),
    [CONSTANT]: level,
  });
  return [
    ramp(layer, at(bound), { [to]: height / bound }),
    ramp(layer, at(-bound), { [to]: -height / bound }),
    shift(layer, to, -height),
  ];
}

/** The same for every prompt. */
export function shift(layer: number, to: string, by: number): Unit {
  return ramp(layer, { [CONSTANT]: 1 }, { [to]: by });
}
