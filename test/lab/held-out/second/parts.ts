/** Holds what several families of the second set are put together from. */

import { FOCUS, gather, type Head, type Named, type Unit } from '../blueprint.ts';
import type { Example } from '../family.ts';
import type { Frame } from '../prompts.ts';
import { ENDINGS } from '../vocabulary.ts';

/** Takes axes from the content word to the end. */
export function toEnd(...axes: string[]): Head {
  return gather('ending', 'content', axes);
}

/** Takes the concept from the content word, and leaves it at the end along these axes. */
export function deliver(to: Named): Head {
  return { ...toEnd(), moves: [{ from: { concept: 1 }, to }] };
}

/** Looks from the end at the word `left` or at the word `right`, as the concept at the end says, and writes which it was. */
export function choosingSide(gain: number): Head {
  return {
    scores: [
      { query: { concept: 4 }, key: { side: 1 } },
      { query: { ending: FOCUS }, key: { marker: 1 } },
    ],
    moves: [{ from: { side: 1 }, to: { out: gain } }],
  };
}

export const SIDES: Record<string, Named> = { left: { side: 1, marker: 1 }, right: { side: -1, marker: 1 } };

export function bothSides(index: number): Frame {
  return { opening: () => (index % 2 ? ['left', 'right'] : ['right', 'left']) };
}

/** Two units that pass on what they read where the axis `gate` is 1, and nothing where it is 0. */
export function gated(axis: string, gate: string, writes: number): Unit[] {
  return [
    { reads: { [axis]: 1, [gate]: 3 }, bias: -3, writes: { out: writes } },
    { reads: { [axis]: -1, [gate]: 3 }, bias: -3, writes: { out: -writes } },
  ];
}

/** Two units that pass on by how much they read more than the threshold, either way. */
export function beyond(axis: string, threshold: number, writes: Named): Unit[] {
  return ([1, -1] as const).map((sign) => ({
    reads: { [axis]: sign },
    bias: -threshold,
    writes: Object.fromEntries(Object.entries(writes).map(([to, weight]) => [to, sign * weight])),
  }));
}

/** Endings that say this by themselves. */
export function saying(out: number): Record<string, Named> {
  return Object.fromEntries(ENDINGS.map((word) => [word, { out }]));
}

/** The content word is the second token. */
export function secondToken(): Frame {
  return { opening: () => ['the'], wordFirst: true };
}

export const SECOND_TOKEN = 1;

/** Gives one example in so many the wrong label. */
export function mislabelled(examples: readonly Example[], every: number): Example[] {
  return examples.map((one, i) => (i % every === every - 1 ? { ...one, label: one.label === 1 ? 0 : 1 } : one));
}
