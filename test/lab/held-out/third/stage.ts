/** Builds the hand-made models of the third set: words with random codes, a row of blocks that a family designs, and logits of two target classes along the axis `out`. */

import { createRandom, type Random } from '../../../../src/lab/statistics/random.ts';
import { type Blueprint, type Head, type Layer, type Named, plus, times, type Unit } from '../blueprint.ts';
import type { Example, Family, Label, Made, Verdict } from '../family.ts';
import type { Shape } from '../model-folder.ts';
import { type Written, writeModel } from '../write-model.ts';
import { createWords, ENDS, type Targets, type Words } from './words.ts';

export interface StageOptions {
  kind: Shape['kind'];
  width: number;
  blocks: readonly Layer[];
  /** What a content word has besides `mark`, by which heads find it. */
  meaning(label: Label, random: Random, index: number): Named;
  perLabel?: number;
  /** Words with a meaning of their own. */
  cast?: Record<string, Named>;
  targets?: Targets;
  /** Logits between the classes per unit of `out`. */
  gain?: number;
  /** Between the classes too, but by the words' codes. */
  chatter?: number;
  /** The length of what all words have in common. */
  constant?: number;
  /** The length of a word's code. */
  noise?: number;
  /** How much of the mean of all codes the first block brings to every token; 0 leaves that out. */
  mix?: number;
  /** How much likelier the targets are at the end than other words. */
  boost?: number;
}

export interface Stage extends Written {
  words: Words;
  /** For the dataset. */
  random: Random;
}

/** Axes that families may name. */
const ROOM = 13;
const MIXED = 10;
const LEAK = 0.06;
const POSITIONS = 32;

export function createStage(name: string, seed: number, options: StageOptions): Stage {
  const random = createRandom(seed, `third set, model ${name}`);
  const { kind, width, cast = {}, gain = 1, chatter = 0.12, constant = 6, noise = 1.1, mix = 1, boost = 3 } = options;
  const codes = Array.from({ length: width - 1 - ROOM }, (_, i) => `code.${i}`);
  const mixed = codes.slice(0, MIXED);
  const words = createWords(random, {
    perLabel: options.perLabel ?? 20,
    extras: Object.keys(cast),
    targets: options.targets ?? { positive: ['true'], negative: ['false'] },
  });
  const code = (length: number): Named =>
    times(Object.fromEntries(codes.map((axis) => [axis, random.normal()])), length / Math.sqrt(codes.length));
  const blueprint: Blueprint = {
    embedding: new Map(words.all.map((word) => [word, embeddingOf(word)])),
    unembedding: new Map(words.all.map((word) => [word, unembeddingOf(word)])),
    positions: Array.from({ length: POSITIONS }, () => code(0.25)),
    layers: options.blocks.map(({ heads, units }, i) => ({
      heads: i === 0 && mix > 0 ? [...heads, mixing()] : heads,
      units: [...units, ...Array.from({ length: 3 }, idleUnit)],
    })),
    constant,
    size: Math.hypot(constant, noise, 1.5),
  };
  const written = writeModel(blueprint, shapeFor(blueprint, kind, width), random);
  return { ...written, words, random: createRandom(seed, `third set, dataset ${name}`) };

  function embeddingOf(word: string): Named {
    const parts: Named[] = [{ constant }, code(noise), leaks(), cast[word] ?? {}];
    if (ENDS.includes(word)) parts.push({ end: 1 });
    for (const label of [1, 0] as const) {
      const index = words.content[label].indexOf(word);
      if (index >= 0) parts.push({ mark: 1 }, options.meaning(label, random, index));
    }
    return plus(...parts);
  }

  /** Words have a little of what matters, whatever they mean. */
  function leaks(): Named {
    return { c: LEAK * random.normal(), out: LEAK * random.normal() };
  }

  function unembeddingOf(word: string): Named {
    const side = Number(words.targets.positive.includes(word)) - Number(words.targets.negative.includes(word));
    if (side === 0) return plus({ constant: (0.7 * random.normal()) / constant }, code(2.5));
    return plus({ out: (side * gain) / 2, end: boost }, code(chatter));
  }

  function mixing(): Head {
    return {
      scores: [],
      moves: mixed.map((axis) => ({ from: { [axis]: 1 }, to: plus({ [axis]: mix }, code(mix / 2)) })),
    };
  }

  /** Does something with codes that matters to nothing. */
  function idleUnit(): Unit {
    return { reads: code(2), writes: code(0.3) };
  }
}

function shapeFor({ layers }: Blueprint, kind: Shape['kind'], width: number): Shape {
  const most = (count: (one: Layer) => number) => Math.max(1, ...layers.map(count));
  const hidden = 4 * Math.ceil(most(({ units }) => units.length) / 4);
  const moves = most((one) => Math.max(0, ...one.heads.map((head) => Math.max(head.moves.length, head.scores.length))));
  let heads = most((one) => one.heads.length);
  if (kind === 'llama')
    return { kind, width, layers: layers.length, heads, headWidth: 8 * Math.ceil(Math.max(16, moves) / 8), hidden };
  while (width % heads !== 0) heads++;
  const headWidth = width / heads;
  if (headWidth < moves + 4) throw new RangeError(`Heads of ${headWidth} have no room for ${moves} moves.`);
  return { kind, width, layers: layers.length, heads, headWidth, hidden };
}

/** A head that looks from the end to content words and adds what `moves` says of them. */
export function bring(moves: Head['moves'], query: Named = { end: 12 }, key: Named = { mark: 1 }): Head {
  return { scores: [{ query, key }], moves };
}

/** Moves axes as they are. */
export function asIs(...axes: readonly string[]): { from: Named; to: Named }[] {
  return axes.map((axis) => ({ from: { [axis]: 1 }, to: { [axis]: 1 } }));
}

/** Two units that rise from 0 to `writes` where what they read goes from `from` to `to`. */
export function step(reads: Named, from: number, to: number, writes: Named): Unit[] {
  const slope = 1 / (to - from);
  return [
    { reads: times(reads, slope), bias: -from * slope, writes },
    { reads: times(reads, slope), bias: -to * slope, writes: times(writes, -1) },
  ];
}

/** Adds the same to every token. */
export function always(writes: Named): Unit {
  return { reads: {}, bias: 1, writes };
}

/** About 1. */
export function about(random: Random, spread = 0.25): number {
  return 1 + spread * (2 * random.uniform() - 1);
}

export interface Site {
  layer: number;
  position?: number;
  /** Left to the asker to fit where it is absent. */
  direction?: Named;
}

export function ask(stage: Stage, dataset: Example[], { layer, position = -1, direction }: Site): Made {
  const { positive, negative } = stage.words.targets;
  return {
    files: stage.files,
    question: {
      dataset,
      site: { layer, position },
      target: { positive: [...positive], negative: [...negative] },
      direction: direction ? stage.direction(direction) : 'fit',
    },
  };
}

export function family(
  name: string,
  verdict: Verdict,
  why: string,
  make: (seed: number, name: string) => Made,
): Family {
  return { name, truth: { verdict }, why, make: (seed) => make(seed, name) };
}
