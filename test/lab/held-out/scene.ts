/** Makes what hand-built families share: words with codes of their own, noise, other business of the model, and how targets are read. A family adds what its content words mean and what its layers do with that. */

import { createRandom, type Random } from '../../../src/lab/statistics/random.ts';
import { type Blueprint, type Head, type Layer, type Named, plus, times, type Unit } from './blueprint.ts';
import type { Label } from './family.ts';
import type { Shape } from './model-folder.ts';
import { createLexicon, ENDINGS, type Lexicon } from './vocabulary.ts';
import { type Written, writeModel } from './write-model.ts';

export interface SceneOptions {
  shape: Pick<Shape, 'kind' | 'width'>;
  /** What a content word has, besides `content`, which marks it. */
  meaning(label: Label, random: Random, index: number): Named;
  /** What words other than content words have. */
  others?: Record<string, Named>;
  layers: readonly Layer[];
  contentWords?: number;
  targets?: Lexicon['targets'];
  /** The length of what all words have in common, against which everything else is measured. */
  constant?: number;
  /** Of noise that each word has all over the residual stream. */
  noise?: number;
  /** How much of the words' codes shows in the logits of the targets. */
  chatter?: number;
  /** How far targets stand out after an ending; below 0, other words always win. */
  boost?: number;
  /** What makes words likelier, besides. */
  answers?: Record<string, Named>;
}

export interface Scene extends Written {
  lexicon: Lexicon;
  /** For the dataset. */
  random: Random;
}

const CODES = 12;
/** Axes that families may name, besides codes and noise. */
const ROOM = 14;
const POSITIONS = 32;
const BOOST = 2.5;

export function createScene(name: string, seed: number, options: SceneOptions): Scene {
  const random = createRandom(seed, `held-out model ${name}`);
  const {
    shape,
    others = {},
    targets,
    constant = 8,
    noise = 0.9,
    chatter = 0.15,
    boost = BOOST,
    answers = {},
  } = options;
  const codes = axes('code', Math.min(CODES, shape.width / 4));
  const noises = axes('noise', shape.width - 1 - codes.length - ROOM);
  const lexicon = createLexicon(random, {
    contentWords: options.contentWords ?? 24,
    extra: Object.keys(others),
    ...(targets && { targets }),
  });
  const anywhere = (size: number) => spread(noises, size, random);
  const blueprint: Blueprint = {
    embedding: new Map(lexicon.words.map((word) => [word, embeddingOf(word)])),
    unembedding: new Map(lexicon.words.map((word) => [word, unembeddingOf(word)])),
    positions: Array.from({ length: POSITIONS }, () => anywhere(0.3)),
    layers: options.layers.map(({ heads, units }, i) => ({
      heads: [...heads, ...(i === 0 ? [mixing()] : [])],
      units: [...units, ...Array.from({ length: 4 }, otherUnit)],
    })),
    constant,
    size: Math.hypot(constant, 1.5, noise),
  };
  const written = writeModel(blueprint, roomFor(blueprint, shape), random);
  return { ...written, lexicon, random: createRandom(seed, `held-out dataset ${name}`) };

  function embeddingOf(word: string): Named {
    const parts: Named[] = [{ constant }, spread(codes, 1, random), anywhere(noise), others[word] ?? {}];
    if (ENDINGS.includes(word)) parts.push({ ending: 1 });
    for (const label of [0, 1] as const) {
      const index = lexicon.content[label].indexOf(word);
      if (index >= 0) parts.push({ content: 1 }, options.meaning(label, random, index));
    }
    return plus(...parts);
  }

  function unembeddingOf(word: string): Named {
    const sign = Number(lexicon.targets.positive.includes(word)) - Number(lexicon.targets.negative.includes(word));
    if (sign === 0)
      return plus({ constant: random.normal() / constant }, spread(codes, 3, random), answers[word] ?? {});
    return plus({ out: sign / 2, ending: boost }, spread(codes, 3 * chatter, random));
  }

  /** Takes a mean of all words' codes along, so that no two prompts look alike at their end. */
  function mixing(): Head {
    return {
      scores: [],
      moves: codes.map((code) => ({ from: { [code]: 1 }, to: plus({ [code]: 1.5 }, anywhere(1)) })),
    };
  }

  function otherUnit(): Unit {
    return { reads: spread(codes, 1.5, random), writes: anywhere(0.4) };
  }
}

/** About 1, so that what goes along with a label does not do so to the letter. */
export function jitter(random: Random): number {
  return 0.6 + 0.8 * random.uniform();
}

/** About the label's sign, and now and then on the wrong side of 0. */
export function blurred(label: Label, random: Random, noise = 0.5): number {
  return signOf(label) + noise * random.normal();
}

export function signOf(label: Label): 1 | -1 {
  return label === 1 ? 1 : -1;
}

function axes(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${name}.${i}`);
}

/** A random vector of about this length. */
function spread(names: readonly string[], length: number, random: Random): Named {
  return times(Object.fromEntries(names.map((name) => [name, random.normal()])), length / Math.sqrt(names.length));
}

function roomFor({ layers }: Blueprint, { kind, width }: Pick<Shape, 'kind' | 'width'>): Shape {
  const hidden = 8 * Math.ceil(Math.max(...layers.map(({ units }) => units.length)) / 8);
  let heads = Math.max(...layers.map((layer) => layer.heads.length));
  if (kind === 'llama') return { kind, width, layers: layers.length, heads, headWidth: 16, hidden };
  while (width % heads !== 0) heads++;
  return { kind, width, layers: layers.length, heads, headWidth: width / heads, hidden };
}
