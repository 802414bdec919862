/** Collects operations for the kernel: how each is laid out in memory, and into how many items its work is split between threads. */

import { missing } from '../../core/missing.ts';
import type { QueryKeyNorm } from '../../models/architectures/model-spec.ts';
import { CONTROL, type Heap } from './heap.ts';
import type { Kernel } from './kernel.ts';

/** A matrix of weights, [outputs, inputs], packed in panels of eight outputs. See `kernel/matmul.as`. */
export interface PackedMatrix {
  address: number;
  /** Or 0. */
  bias: number;
  outputs: number;
  inputs: number;
}

export interface Norm {
  weight: number;
  /** Or 0. */
  bias: number;
}

/** Rows of numbers in the kernel's memory. */
export interface Rows {
  address: number;
  /** Bytes from one row to the next. */
  stride: number;
}

export interface Heads {
  heads: number;
  keyValueHeads: number;
  headWidth: number;
}

/** Which sequence each row belongs to: see `kernel/sequences.as`. */
export interface Tables {
  rows: number;
  sequences: number;
}

/** Weights of attention: for each row of the batch one head after the other, each with a weight for each position of the text. */
export interface PatternRows extends Rows {
  /** Bytes from one head to the next. */
  headStride: number;
}

/** Operations are collected, and performed in order when `run` is called. */
export interface KernelProgram {
  multiply(from: Rows, count: number, matrix: PackedMatrix, to: Rows): void;
  normalize(from: Rows | { addresses: number }, count: number, norm: Norm, settings: NormSettings, to: Rows): void;
  prepareHeads(
    batch: Rows,
    count: number,
    heads: Heads,
    rotary: RotaryRows,
    norms: HeadNorms,
    tables: Tables,
    layer: number,
  ): void;
  /** With `patterns`, the weights are written there, too. With `listed`, the address of a table of rows, only those are computed, and written without gaps. */
  attend(
    batch: Rows,
    count: number,
    heads: Heads,
    reach: Reach,
    to: Rows,
    tables: Tables,
    layer: number,
    options?: { patterns?: PatternRows; listed?: number },
  ): void;
  /** Computes the outputs of some rows' heads again, from weights in `patterns`. `rows` is the address of a table with a row and a head for each. */
  mixPatterns(
    batch: Rows,
    changed: { rows: number; count: number },
    heads: Heads,
    reach: Reach,
    to: Rows,
    tables: Tables,
    layer: number,
    patterns: PatternRows,
  ): void;
  activate(rows: Rows, count: number, width: number, activation: number, gated: boolean): void;
  add(to: Rows, from: Rows, count: number, width: number): void;
  embed(to: Rows, count: number, embedding: PackedMatrix, positions: Rows | undefined, options: EmbedOptions): void;
  /** Values become cap × tanh(value / cap). */
  cap(rows: Rows, count: number, width: number, cap: number): void;
  measureLogits(logits: Rows, count: number, vocabulary: number, logarithms: number): void;
  compareLogits(
    logits: MeasuredRows,
    count: number,
    vocabulary: number,
    base: MeasuredRows & { rows: number },
    to: number,
  ): void;
  run(): void;
  /** Drops operations that have not been performed. */
  clear(): void;
}

export interface NormSettings {
  width: number;
  epsilon: number;
  takesMean: boolean;
}

/** Cosines and sines of the rotary embedding, a row for each position; `half` is how many of each. */
export interface RotaryRows extends Rows {
  half: number;
  /** A text of more than `beyond` tokens has other ones, so many bytes behind these. */
  long?: { beyond: number; away: number } | undefined;
}

/** Norms of queries and keys: addresses of their weights, or 0. */
export interface HeadNorms {
  query: number;
  key: number;
  epsilon: number;
  takesMean: boolean;
  over: QueryKeyNorm;
}

/** Which positions attention sees, and how far scores go: 0 for all of them, and for any score. */
export interface Reach {
  window: number;
  cap: number;
}

export interface EmbedOptions {
  /** The address of each row's token and position. */
  tokens: number;
  /** What embeddings are multiplied by. */
  scale: number;
}

/** Logits, and for each row a double: the logarithm of the sum of all exponentials. */
export interface MeasuredRows extends Rows {
  logarithms: number;
}

const KINDS = {
  multiply: 0,
  normalize: 1,
  prepareHeads: 2,
  attend: 3,
  activate: 4,
  add: 5,
  embed: 6,
  measureLogits: 7,
  compareLogits: 8,
  cap: 9,
  mixPatterns: 10,
};
/** As in `kernel/heads.as`. */
const NORMS_OVER: Record<QueryKeyNorm, number> = { shared: 0, each: 1, whole: 2 };
/** As in `kernel/operation.as`. */
const OPERATION_BYTES = 128;
const HEAD_WORDS = 8;
const ROWS_PER_ITEM = 4;
const LONGEST = 64;
/** What one item of a product is: as many rows as stay in a processor's cache while panels pass by, and so few panels that threads end at nearly the same time. */
const ROWS_PER_PRODUCT = 192;
const PANELS_PER_PRODUCT = 4;
/** Outputs that lie side by side in a packed matrix. */
export const PANEL = 8;

export function createProgram(kernel: Kernel, heap: Heap, scratch: number): KernelProgram {
  const address = heap.allocate(LONGEST * OPERATION_BYTES);
  const words = heap.words(address, (LONGEST * OPERATION_BYTES) / 4);
  let length = 0;

  function push(kind: keyof typeof KINDS, items: number, fields: readonly number[]): void {
    if (length === LONGEST) program.run();
    const start = (length++ * OPERATION_BYTES) / 4;
    words[start] = KINDS[kind];
    words[start + 1] = items;
    words.set(fields, start + HEAD_WORDS);
  }

  const program: KernelProgram = {
    multiply(from, count, { address: weights, bias, outputs, inputs }, to) {
      const panels = Math.ceil(outputs / PANEL);
      push('multiply', Math.ceil(count / ROWS_PER_PRODUCT) * Math.ceil(panels / PANELS_PER_PRODUCT), [
        ...[from.address, from.stride, count, inputs, weights, panels, bias, to.address, to.stride],
        ...[ROWS_PER_PRODUCT, PANELS_PER_PRODUCT],
      ]);
    },
    normalize(from, count, { weight, bias }, { width, epsilon, takesMean }, to) {
      const isTable = 'addresses' in from;
      push('normalize', items(count), [
        ...(isTable ? [0, 0] : [from.address, from.stride]),
        ...[to.address, to.stride, count, width, weight, bias, bitsOf(epsilon), Number(takesMean)],
        isTable ? from.addresses : 0,
      ]);
    },
    prepareHeads(batch, count, { heads, keyValueHeads, headWidth }, rotary, norms, tables, layer) {
      push('prepareHeads', items(count), [
        ...[batch.address, batch.stride, count, heads, keyValueHeads, headWidth],
        ...[rotary.half, rotary.address, rotary.stride, norms.query, norms.key, bitsOf(norms.epsilon)],
        ...[tables.rows, tables.sequences, layer, NORMS_OVER[norms.over], Number(norms.takesMean)],
        ...(rotary.long ? [rotary.long.beyond, rotary.long.away] : [0, 0]),
      ]);
    },
    attend(batch, count, heads, reach, to, tables, layer, { patterns = NO_PATTERNS, listed = ALL_ROWS } = {}) {
      const fields = attention(batch, count, heads, reach, to, tables, layer, patterns);
      push('attend', items(count) * heads.heads, [...fields, listed]);
    },
    mixPatterns(batch, { rows, count }, heads, reach, to, tables, layer, patterns) {
      push('mixPatterns', count, attention(batch, rows, heads, reach, to, tables, layer, patterns));
    },
    activate(rows, count, width, activation, gated) {
      push('activate', items(count), [rows.address, rows.stride, count, width, activation, Number(gated)]);
    },
    add(to, from, count, width) {
      push('add', items(count), [to.address, to.stride, from.address, from.stride, count, width]);
    },
    embed(to, count, embedding, positions, { tokens, scale }) {
      const learned = positions ?? NO_ROWS;
      push('embed', items(count), [
        ...[to.address, to.stride, count, embedding.inputs, embedding.address],
        ...[learned.address, learned.stride, tokens, bitsOf(scale)],
      ]);
    },
    cap(rows, count, width, cap) {
      push('cap', items(count), [rows.address, rows.stride, count, width, bitsOf(cap)]);
    },
    measureLogits(logits, count, vocabulary, logarithms) {
      push('measureLogits', items(count), [logits.address, logits.stride, count, vocabulary, logarithms]);
    },
    compareLogits(logits, count, vocabulary, base, to) {
      push('compareLogits', items(count), [
        ...[logits.address, logits.stride, count, vocabulary, logits.logarithms],
        ...[base.address, base.logarithms, base.rows, to],
      ]);
    },
    run() {
      if (length === 0) return;
      const count = length;
      length = 0;
      kernel.runProgram(CONTROL, address, count, scratch);
    },
    clear() {
      length = 0;
    },
  };
  return program;
}

/** Of each thread's own room: the attention scores of as many queries as are computed together, with their sums, as `kernel/attention.as` has it. */
export function scratchBytes(context: number): number {
  return 4 * ROWS_PER_ITEM * (1 + context + 3);
}

function items(rows: number): number {
  return Math.ceil(rows / ROWS_PER_ITEM);
}

/** The fields that both operations of attention have. `rows` is how many there are, or the address of a table of some. */
function attention(
  batch: Rows,
  rows: number,
  { heads, keyValueHeads, headWidth }: Heads,
  { window, cap }: Reach,
  to: Rows,
  tables: Tables,
  layer: number,
  patterns: PatternRows,
): number[] {
  return [
    ...[batch.address, batch.stride, rows, heads, keyValueHeads, headWidth, to.address, to.stride],
    ...[bitsOf(1 / Math.sqrt(headWidth)), window, tables.rows, tables.sequences, layer, bitsOf(cap)],
    ...[patterns.address, patterns.stride, patterns.headStride],
  ];
}

/** Tells the kernel that a model has no learned positions. */
const NO_ROWS: Rows = { address: 0, stride: 0 };

/** Tells the kernel that the rows are all of the first ones. */
const ALL_ROWS = 0;

/** Tells the kernel to write no weights. */
const NO_PATTERNS: PatternRows = { ...NO_ROWS, headStride: 0 };

const oneFloat = new Float32Array(1);
const itsBits = new Uint32Array(oneFloat.buffer);

/** The bits of a number in single precision. */
function bitsOf(value: number): number {
  oneFloat[0] = value;
  return itsBits[0] ?? missing('bits of', value);
}
