/** Computes the layers of a model for a batch of sequences, runs the hooks on the way, and leaves the residual stream of every row. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { type Batch, createBatches } from './batch.ts';
import type { Heap } from './heap.ts';
import type { PackedLayer, PackedWeights } from './packed-weights.ts';
import { createPatterns } from './patterns.ts';
import type { KernelProgram, Norm, NormSettings, Reach, Rows } from './program.ts';
import { createRotaryTable } from './rotary-table.ts';
import { boundary, pointNumber, type RowAt, type Sequence } from './sequence.ts';

export interface Layers {
  /** Computes the layers before `depth`. The residual stream stays valid until the next call. */
  run(sequences: readonly Sequence[], depth: number): SequencesRun;
}

export interface SequencesRun {
  /** The address of the residual stream of a sequence's first row. */
  residual(sequence: Sequence): number;
  /** Bytes from one row to the next. */
  stride: number;
}

/** The rows of a batch: more would take more memory, and would not be faster. */
export const ROWS_AT_ONCE = 512;

/** Tell the kernel that a layer attends to all positions, and that scores are not capped. */
const NO_WINDOW = 0;
const NO_CAP = 0;

const ACTIVATIONS: Record<ModelSpec['activation'], number> = { gelu: 0, 'gelu-tanh': 1, silu: 2, relu: 3 };

export function createLayers(
  spec: ModelSpec,
  weights: PackedWeights,
  heap: Heap,
  program: KernelProgram,
  checkAborted: () => void,
): Layers {
  const { width, hidden, headWidth } = spec;
  const zWidth = spec.heads * headWidth;
  const batches = createBatches(spec, heap);
  const rotaryTable = createRotaryTable(spec.positions, spec.context, heap);
  const windowTable = spec.windowPositions && createRotaryTable(spec.windowPositions, spec.context, heap);
  const patterns = createPatterns(spec, heap, program);
  const normSettings: NormSettings = { width, epsilon: spec.normEpsilon, takesMean: spec.norm === 'layer' };

  return {
    run(unordered, depth) {
      // Sequences are sorted by their first layer, so that the active rows are always the first ones.
      const sequences = [...unordered].sort((a, b) => a.start - b.start);
      const batch = batches.prepare(sequences);
      const firstRows = rowsOf(sequences);
      const end = Math.max(...sequences.map(({ first, tokens }) => first + tokens.length));
      const rotary = rotaryTable.upTo(end);
      const windowRotary = windowTable?.upTo(end) ?? rotary;
      const hooked = hookedSequences(sequences);
      let atWork = 0;

      for (let layer = sequences[0]?.start ?? depth; layer <= depth; layer++) {
        const before = atWork;
        while (sequences[atWork] && sequences[atWork]?.start === layer) atWork++;
        const entering = sequences.slice(before, atWork);
        if (entering.length > 0) {
          program.run();
          enter(entering);
          if (layer > 0) runHooks(boundary(layer) - 1, batch.residual, ({ start }) => start === layer);
        }
        runHooks(boundary(layer), batch.residual);
        const packed = weights.layers[layer];
        if (layer === depth || !packed) break;
        compute(packed, layer, rowCount(sequences.slice(0, atWork)));
        program.run();
        checkAborted();
      }
      return { residual: (sequence) => addressOf(batch.residual, sequence), stride: batch.residual.stride };

      function compute(packed: PackedLayer, layer: number, count: number): void {
        const left = attend(batch, packed, layer, count);
        if (left === 0) return;
        runHooks(pointNumber({ layer, place: 'attn_out' }), batch.attentionOut);
        if (!spec.parallel) program.add(batch.residual, batch.attentionOut, left, width);
        feedForward(batch, packed, left);
        runHooks(pointNumber({ layer, place: 'mlp_out' }), batch.mlpOut);
        if (spec.parallel) program.add(batch.residual, batch.attentionOut, left, width);
        program.add(batch.residual, batch.mlpOut, left, width);
        runHooks(pointNumber({ layer, place: 'resid_post' }), batch.residual);
      }

      /** Gives back how many rows are left: those that are needed behind the attention of this layer. */
      function attend({ tables, ...rows }: Batch, packed: PackedLayer, layer: number, count: number): number {
        const over = spec.queryKeyNorm ?? 'shared';
        const norms = { query: packed.queryNorm, key: packed.keyNorm, ...normSettings, over };
        const window = spec.window[layer];
        const turns = window === undefined ? rotary : windowRotary;
        const reach = { window: window ?? NO_WINDOW, cap: spec.attentionCap ?? NO_CAP };
        const read = normalized(rows.residual, packed.attentionNorm, count, rows.normed);
        program.multiply(read, count, packed.queryKeyValue, rows.heads);
        program.prepareHeads(rows.heads, count, spec, turns, norms, tables, layer);
        const left = attendWithHooks({ tables, ...rows }, layer, reach, count);
        if (left === 0) return 0;
        runHooks(pointNumber({ layer, place: 'z' }), rows.attended, undefined, headsOf);
        program.multiply(rows.attended, left, packed.output, rows.attentionOut);
        normalized(rows.attentionOut, packed.attentionAfterNorm, left, rows.attentionOut);
        return left;
      }

      function attendWithHooks(batch: Batch, layer: number, reach: Reach, count: number): number {
        const { tables, heads, attended } = batch;
        const hooks = hooksAt(pointNumber({ layer, place: 'pattern' }));
        if (hooks.length === 0 && layer === depth - 1) return attendNeeded(batch, layer, reach, count);
        if (hooks.length === 0) {
          program.attend(heads, count, spec, reach, attended, tables, layer);
          return count;
        }
        const located = hooks.map(({ sequence, ...rest }) => {
          const end = sequence.first + sequence.tokens.length;
          return { ...rest, row: firstRows.get(sequence) ?? missing('first row of a sequence'), end };
        });
        patterns.attend({ heads, attended, tables, layer, reach, count }, located);
        return count;
      }

      /** In the last layer. The rows that are needed move to the front of the batch; those before a sequence's first needed one are not there any more. */
      function attendNeeded(batch: Batch, layer: number, reach: Reach, count: number): number {
        const { tables, heads, attended, listed, residual } = batch;
        const needed: number[] = [];
        for (const sequence of sequences.slice(0, atWork)) {
          const { first, tokens, neededFrom } = sequence;
          const firstRow = firstRows.get(sequence) ?? missing('first row of a sequence');
          firstRows.set(sequence, needed.length - (neededFrom - first));
          for (let position = neededFrom; position < first + tokens.length; position++) {
            needed.push(firstRow + position - first);
          }
        }
        heap.words(listed, needed.length).set(needed);
        if (needed.length > 0) {
          program.attend(heads, needed.length, spec, reach, attended, tables, layer, { listed });
        }
        if (needed.length === count) return count;
        program.run();
        const numbers = residual.stride / 4;
        const rows = heap.floats(residual.address, count * numbers);
        needed.forEach((row, index) => {
          rows.copyWithin(index * numbers, row * numbers, (row + 1) * numbers);
        });
        return needed.length;
      }

      /** Writes the residual stream of sequences that start at this layer: embeddings of tokens, or a copy of a cached one. */
      function enter(entering: readonly Sequence[]): void {
        if (entering[0]?.start === 0) {
          const options = { tokens: batch.tokens, scale: spec.embeddingScale };
          program.embed(batch.residual, rowCount(entering), weights.embedding, weights.positions, options);
          return;
        }
        const numbers = batch.residual.stride / 4;
        for (const sequence of entering) {
          const count = sequence.tokens.length * numbers;
          heap.floats(addressOf(batch.residual, sequence), count).set(heap.floats(sequence.input, count));
        }
      }

      /** `rowOf` gives a row by the address of the sequence's first. */
      function runHooks(
        point: number,
        rows: Rows,
        isThere?: (sequence: Sequence) => boolean,
        rowOf: (first: number, stride: number) => RowAt = rowsOfWidth,
      ): void {
        const calling = hooksAt(point, isThere);
        if (calling.length === 0) return;
        program.run();
        for (const { sequence, hooks } of calling) {
          const row = rowOf(addressOf(rows, sequence), rows.stride);
          for (const hook of hooks) hook(row, () => {});
        }
      }

      /** The sequences at work that have hooks at a point. */
      function hooksAt(point: number, isThere = ({ start }: Sequence) => boundary(start) <= point) {
        const calling = (hooked.get(point) ?? []).filter(isThere);
        return calling.map((sequence) => ({ sequence, hooks: sequence.hooks.get(point) ?? [] }));
      }

      function addressOf(rows: Rows, sequence: Sequence): number {
        return rows.address + (firstRows.get(sequence) ?? missing('first row of a sequence')) * rows.stride;
      }
    },
  };

  function rowsOfWidth(first: number, stride: number): RowAt {
    return (index) => heap.floats(first + index * stride, width);
  }

  /** The outputs of all heads of a row, or of one. */
  function headsOf(first: number, stride: number): RowAt {
    return (index, head) => {
      const address = first + index * stride;
      return head === undefined ? heap.floats(address, zWidth) : heap.floats(address + head * headWidth * 4, headWidth);
    };
  }

  function feedForward(batch: Batch, packed: PackedLayer, count: number): void {
    const read = normalized(batch.residual, packed.mlpNorm, count, batch.normed);
    program.multiply(read, count, packed.up, batch.hidden);
    program.activate(batch.hidden, count, hidden, ACTIVATIONS[spec.activation], spec.gated);
    program.multiply(batch.hidden, count, packed.down, batch.mlpOut);
    normalized(batch.mlpOut, packed.mlpAfterNorm, count, batch.mlpOut);
  }

  /** The rows behind a norm, or the rows themselves where there is none. */
  function normalized(from: Rows, norm: Norm | undefined, count: number, to: Rows): Rows {
    if (!norm) return from;
    program.normalize(from, count, norm, normSettings, to);
    return to;
  }
}

/** The sequences with a hook at each point, by its number. */
function hookedSequences(sequences: readonly Sequence[]): Map<number, Sequence[]> {
  const hooked = new Map<number, Sequence[]>();
  for (const sequence of sequences) {
    for (const point of sequence.hooks.keys()) {
      const there = hooked.get(point);
      if (there) there.push(sequence);
      else hooked.set(point, [sequence]);
    }
  }
  return hooked;
}

function rowsOf(sequences: readonly Sequence[]): Map<Sequence, number> {
  const rows = new Map<Sequence, number>();
  let row = 0;
  for (const sequence of sequences) {
    rows.set(sequence, row);
    row += sequence.tokens.length;
  }
  return rows;
}

function rowCount(sequences: readonly Sequence[]): number {
  return sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
}
