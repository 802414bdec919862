/**
 * Builds transformers by hand whose causal structure is known: heads and units that are written down by name become the weights of a
 * model in Hugging Face's format.
 */

import { missing } from '../../../../src/lab/core/missing.ts';
import { createRandom, type Random } from '../../../../src/lab/statistics/random.ts';
import { type Along, type Basis, createBasis, putAlong } from './basis.ts';
import { CONSTANT, type Head, type Unit } from './circuit.ts';
import { FLAGS, type Lexicon, NO, QUESTION, tokenizerJson, YES } from './lexicon.ts';
import { type Matrix, put, zeros } from './matrices.ts';
import { HEAD_WIDTH, headsFor, type LayerWeights, type Shape, storeAs } from './shapes.ts';

export interface ToyDesign {
  shape: Shape;
  width: number;
  layers: number;
  lexicon: Lexicon;
  /** The standard deviation of what words have on each noise axis. */
  noise: number;
  /** What a concept word has beyond its mark, its own code and noise. */
  carries(word: ConceptWord, random: Random): Along;
  heads: readonly Head[];
  units: readonly Unit[];
}

export interface ConceptWord {
  /** 1 or −1, as the label. */
  sign: number;
  /** In a crossed word, the correlate has the other sign. */
  correlate: number;
  /** Its number among the words of its label. */
  index: number;
}

export interface Toy {
  /** config.json, tokenizer.json, tokenizer_config.json and model.safetensors. */
  files: Record<string, Uint8Array | string>;
  /** A direction of the residual stream along axes with names, in the turned basis. */
  direction(along: Along): Float64Array;
}

/** Large enough that SiLU and GELU are as good as ramps. */
const SHARPNESS = 8;
/** In the pair that Llama's rotary embedding turns slowest, so that distance does not matter; GPT-NeoX's does not turn it, and GPT-2 has none. */
const FOCUS_ROW = HEAD_WIDTH / 2 - 1;
/** What activations have beyond their constant, squared, about. */
const VARYING = 8.4;

export function buildToy(design: ToyDesign, seed: number): Toy {
  const { shape, width, lexicon } = design;
  const random = createRandom(seed, 'toy model');
  const basis = createBasis(width, random);
  const units = unitsOf(basis);
  const embedding = basis.turn(embeddingOf(design, basis, units, random));
  const unembedding = basis.turn(unembeddingOf(lexicon, basis, random));
  const heads = [...design.heads, spreadingHead(width)];
  const layers = Array.from({ length: design.layers }, (_, layer) =>
    layerOf(
      heads.filter((head) => head.layer === layer),
      design.units.filter((unit) => unit.layer === layer),
      { basis, scale: units, heads: headsFor(shape, width, heads.length) },
    ),
  );
  return {
    files: {
      ...storeAs(shape, { embedding, unembedding, layers }),
      'tokenizer.json': JSON.stringify(tokenizerJson(lexicon.vocabulary), null, 2),
      // Else transformers takes the tokenizer of the architecture.
      'tokenizer_config.json': JSON.stringify({ tokenizer_class: 'PreTrainedTokenizerFast' }),
    },
    direction: basis.direction,
  };
}

interface Scale {
  /** The constant part of every activation: so large that norms hardly change from prompt to prompt. */
  constant: number;
  /** What the norm multiplies activations of about that length with. */
  norm: number;
}

function unitsOf({ width }: Basis): Scale {
  const constant = Math.sqrt(width / 2);
  return { constant, norm: Math.sqrt(width / (constant ** 2 + VARYING)) };
}

/** Identity codes and noise take a quarter of the axes each. */
function blockSize(width: number): number {
  return width / 4;
}

/** Every word has the constant, a code of its own and noise; some have what they stand for. */
function embeddingOf(
  { lexicon, noise, carries }: ToyDesign,
  basis: Basis,
  { constant }: Scale,
  random: Random,
): Matrix {
  const { vocabulary, concept, crossed } = lexicon;
  const matrix = zeros(vocabulary.length, basis.width);
  const count = blockSize(basis.width);
  const rowOf = (word: string) => vocabulary.indexOf(word);
  for (const row of vocabulary.keys()) {
    put(matrix, row, basis.axis(CONSTANT), constant);
    for (const axis of basis.block('identity', count)) put(matrix, row, axis, random.normal() / Math.sqrt(count));
    for (const axis of basis.block('noise', count)) put(matrix, row, axis, noise * random.normal());
  }
  putAlong(matrix, rowOf(QUESTION), { question: 1 }, basis);
  putAlong(matrix, rowOf(FLAGS[1]), { flag: 1, flagMark: 1, context: 1 }, basis);
  putAlong(matrix, rowOf(FLAGS[0]), { flag: -1, flagMark: 1 }, basis);
  for (const label of [1, 0] as const) {
    const sign = label === 1 ? 1 : -1;
    const words = [
      ...concept[label].map((word, index) => ({ word, sign, correlate: sign, index })),
      ...crossed[label].map((word, index) => ({ word, sign, correlate: -sign, index })),
    ];
    for (const { word, ...one } of words)
      putAlong(matrix, rowOf(word), { conceptMark: 1, ...carries(one, random) }, basis);
  }
  return matrix;
}

/** Yes and no come after the question mark and are read from `out`; other words are read from the constant and from codes. */
function unembeddingOf({ vocabulary }: Lexicon, basis: Basis, random: Random): Matrix {
  const matrix = zeros(vocabulary.length, basis.width);
  for (const [row, word] of vocabulary.entries()) {
    const isAnswer = word === YES || word === NO;
    put(matrix, row, basis.axis(CONSTANT), isAnswer ? 0.2 : 0.15 * random.normal());
    if (isAnswer) {
      putAlong(matrix, row, { question: 2.5, out: word === YES ? 0.5 : -0.5 }, basis);
      continue;
    }
    for (const axis of basis.block('identity', blockSize(basis.width))) put(matrix, row, axis, 0.3 * random.normal());
  }
  return matrix;
}

/** Every token gets a mean of the codes before it, so that activations vary with all of the prompt. */
function spreadingHead(width: number): Head {
  const count = Math.min(HEAD_WIDTH, blockSize(width));
  const copies = Array.from({ length: count }, (_, i) => ({ from: `identity ${i}`, to: `identity ${i}`, gain: 1 }));
  return { layer: 0, query: {}, key: {}, copies };
}

interface Frame {
  basis: Basis;
  scale: Scale;
  heads: number;
}

function layerOf(heads: readonly Head[], units: readonly Unit[], frame: Frame): LayerWeights {
  const { basis, scale } = frame;
  const { width } = basis;
  const inner = frame.heads * HEAD_WIDTH;
  const [query, key, value] = [zeros(inner, width), zeros(inner, width), zeros(inner, width)];
  const output = zeros(width, inner);
  heads.forEach((head, i) => {
    const first = i * HEAD_WIDTH;
    putAlong(query, first + FOCUS_ROW, head.query, basis);
    putAlong(key, first + FOCUS_ROW, head.key, basis);
    head.copies.forEach(({ from, to, gain }, row) => {
      if (row >= HEAD_WIDTH) throw new RangeError(`A head copies ${HEAD_WIDTH} axes at most.`);
      put(value, first + row, basis.axis(from), 1 / scale.norm);
      put(output, basis.axis(to), first + row, gain);
    });
  });
  const [read, gate, write] = [zeros(HIDDEN, width), zeros(HIDDEN, width), zeros(width, HIDDEN)];
  units.forEach((unit, row) => {
    if (row >= HIDDEN) throw new RangeError(`A layer has ${HIDDEN} units at most.`);
    for (const [name, weight] of Object.entries(unit.reads)) {
      put(read, row, basis.axis(name), (SHARPNESS * weight) / (name === CONSTANT ? scale.constant : 1));
    }
    put(gate, row, basis.axis(unit.gate), 1 / scale.norm);
    for (const [name, slope] of Object.entries(unit.writes)) {
      put(write, basis.axis(name), row, slope / (SHARPNESS * scale.norm));
    }
  });
  return {
    query: basis.turn(query),
    key: basis.turn(key),
    value: basis.turn(value),
    output: basis.turnColumns(output),
    read: basis.turn(read),
    gate: basis.turn(gate),
    write: basis.turnColumns(write),
  };
}

const HIDDEN = 16;

/** Nobody finds a direction to the last digit. */
export function roughly(direction: Float64Array, random: Random): number[] {
  const length = Math.hypot(...direction);
  const error = random.direction(direction.length);
  return Array.from(direction, (value, i) => value / length + 0.05 * (error[i] ?? missing('error of axis', i)));
}
