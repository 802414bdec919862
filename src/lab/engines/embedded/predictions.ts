/** SessionQueue rows of the final residual stream into logits, log-probabilities of next tokens, and KL divergences between predictions. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { splitBySize } from './batch.ts';
import { type Heap, roundUp } from './heap.ts';
import { type PackedWeights, selectOutputs } from './packed-weights.ts';
import { type KernelProgram, type MeasuredRows, PANEL, type PackedMatrix, type Rows } from './program.ts';

export interface Predictions {
  /** Logits of all tokens, or of some, for rows of the residual stream at these addresses. `take` must not keep the array. */
  logits(addresses: readonly number[], options: { tokens?: readonly number[] | undefined; take: Taking }): void;
  /** The log-probability of the token that came next. */
  logProbabilities(rows: readonly FinalRow[]): Float64Array;
  /** The same, and the divergence from the prediction of the row at `base`. */
  compare(rows: readonly (FinalRow & { base: number })[]): Comparison;
}

export interface FinalRow {
  address: number;
  /** The token that came next in the text, if there was one. */
  next: number | undefined;
}

export interface Comparison {
  /** Natural logarithms; 0 where no token came next. */
  logProbabilities: Float64Array;
  /** Kullback-Leibler divergence in nats. */
  divergences: Float64Array;
}

type Taking = (index: number, logits: Float32Array) => void;

/** Bytes of logits in memory at a time. */
const ROOM = 8 * 2 ** 20;

export function createPredictions(
  spec: ModelSpec,
  weights: PackedWeights,
  heap: Heap,
  program: KernelProgram,
  checkAborted: () => void,
): Predictions {
  const { width, vocabulary } = spec;
  const rowStride = roundUp(width, PANEL) * 4;
  const rowsAtOnce = Math.max(4, Math.min(256, Math.floor(ROOM / (roundUp(vocabulary, PANEL) * 4))));
  const normSettings = { width, epsilon: spec.normEpsilon, takesMean: spec.norm === 'layer' };

  return {
    logits(addresses, { tokens, take }) {
      const matrix = tokens ? selectOutputs(heap, weights.unembedding, tokens) : weights.unembedding;
      try {
        let done = 0;
        for (const group of splitBySize(addresses, () => 1, rowsAtOnce)) {
          withLogits(group, matrix, ({ address, stride }) => {
            program.run();
            for (const i of group.keys()) take(done + i, heap.floats(address + i * stride, matrix.outputs));
          });
          done += group.length;
        }
      } finally {
        if (tokens) heap.free(matrix.address);
      }
    },

    logProbabilities(rows) {
      const results: number[] = [];
      for (const group of splitBySize(rows, () => 1, rowsAtOnce)) {
        withMeasured(addressesOf(group), (measured) => {
          program.run();
          results.push(...group.map(({ next }, i) => logProbability(measured, i, next)));
        });
      }
      return Float64Array.from(results);
    },

    compare(rows) {
      const results: number[] = [];
      const divergences: number[] = [];
      for (const group of splitBySize(rows, () => 1, rowsAtOnce)) {
        const bases = [...new Set(group.map(({ base }) => base))];
        withMeasured(bases, (base) => {
          withMeasured(addressesOf(group), (measured) => {
            const places = group.map((row) => bases.indexOf(row.base));
            divergences.push(...compareMeasured(measured, base, places));
            results.push(...group.map(({ next }, i) => logProbability(measured, i, next)));
          });
        });
      }
      return { logProbabilities: Float64Array.from(results), divergences: Float64Array.from(divergences) };
    },
  };

  function withLogits(addresses: readonly number[], matrix: PackedMatrix, use: (logits: Rows) => void): void {
    checkAborted();
    const count = addresses.length;
    const stride = roundUp(matrix.outputs, PANEL) * 4;
    const table = heap.allocate(count * 4);
    const normed = { address: heap.allocate(count * rowStride), stride: rowStride };
    const logits = { address: heap.allocate(count * stride), stride };
    try {
      heap.words(table, count).set(addresses);
      program.normalize({ addresses: table }, count, weights.finalNorm, normSettings, normed);
      program.multiply(normed, count, matrix, logits);
      if (spec.logitCap !== undefined) program.cap(logits, count, matrix.outputs, spec.logitCap);
      use(logits);
    } finally {
      for (const address of [table, normed.address, logits.address]) heap.free(address);
    }
  }

  function withMeasured(addresses: readonly number[], use: (measured: MeasuredRows) => void): void {
    withLogits(addresses, weights.unembedding, (logits) => {
      const logarithms = heap.allocate(addresses.length * 8);
      try {
        program.measureLogits(logits, addresses.length, vocabulary, logarithms);
        use({ ...logits, logarithms });
      } finally {
        heap.free(logarithms);
      }
    });
  }

  function compareMeasured(measured: MeasuredRows, base: MeasuredRows, places: readonly number[]): Float64Array {
    const count = places.length;
    const table = heap.allocate(count * 4);
    const to = heap.allocate(count * 8);
    try {
      heap.words(table, count).set(places);
      program.compareLogits(measured, count, vocabulary, { ...base, rows: table }, to);
      program.run();
      // The same prediction comes out as a number that is 0 but for rounding, on either side.
      return heap.doubles(to, count).map((divergence) => Math.max(0, divergence));
    } finally {
      heap.free(table);
      heap.free(to);
    }
  }

  function logProbability(
    { address, stride, logarithms }: MeasuredRows,
    row: number,
    next: number | undefined,
  ): number {
    if (next === undefined) return 0;
    const logit = heap.floats(address + row * stride + next * 4, 1)[0] ?? missing('logit of token', next);
    return logit - (heap.doubles(logarithms, row + 1)[row] ?? missing('logarithm of row', row));
  }
}

function addressesOf(rows: readonly FinalRow[]): number[] {
  return rows.map(({ address }) => address);
}
