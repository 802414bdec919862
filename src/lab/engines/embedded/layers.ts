/** Owns a model's way through its layers: a batch of lanes goes in, and at the end the residual stream of every row is there. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import { type Batch, createBatches } from './batch.ts';
import type { Heap } from './heap.ts';
import { boundary, type Lane, pointNumber } from './lane.ts';
import type { PackedLayer, PackedWeights } from './packed-weights.ts';
import type { NormSettings, Program, Rows } from './program.ts';
import { createTurnTable } from './turns.ts';

export interface Layers {
  /** Computes the layers before `depth`. The residual stream stays until the next call. */
  run(lanes: readonly Lane[], depth: number): LanesRun;
}

export interface LanesRun {
  /** Where the residual stream of a lane's first row is. */
  residual(lane: Lane): number;
  /** Bytes from one row to the next. */
  stride: number;
}

/** Rows that are best computed together: more would take more memory, and would not be faster. */
export const ROWS_AT_ONCE = 512;

/** Tells the kernel that a layer attends to all positions. */
const NO_WINDOW = 0;

const ACTIVATIONS: Record<ModelSpec['activation'], number> = { gelu: 0, 'gelu-tanh': 1, silu: 2, relu: 3 };

export function createLayers(
  spec: ModelSpec,
  weights: PackedWeights,
  heap: Heap,
  program: Program,
  checkAborted: () => void,
): Layers {
  const { width, hidden } = spec;
  const batches = createBatches(spec, heap);
  const turnTable = createTurnTable(spec, heap);
  const normSettings: NormSettings = { width, epsilon: spec.normEpsilon, takesMean: spec.norm === 'layer' };

  return {
    run(unordered, depth) {
      // Lanes that begin early come first, so that the rows at work are always the first ones.
      const lanes = [...unordered].sort((a, b) => a.start - b.start);
      const batch = batches.prepare(lanes);
      const firstRows = rowsOf(lanes);
      const turns = turnTable.upTo(Math.max(...lanes.map(({ first, tokens }) => first + tokens.length)));
      const visitors = visitorsOf(lanes);
      let atWork = 0;

      for (let layer = lanes[0]?.start ?? depth; layer <= depth; layer++) {
        const before = atWork;
        while (lanes[atWork] && lanes[atWork]?.start === layer) atWork++;
        const entering = lanes.slice(before, atWork);
        if (entering.length > 0) {
          program.run();
          enter(entering);
          if (layer > 0) visit(boundary(layer) - 1, batch.residual, ({ start }) => start === layer);
        }
        visit(boundary(layer), batch.residual);
        const packed = weights.layers[layer];
        if (layer === depth || !packed) break;
        compute(packed, layer, rowCount(lanes.slice(0, atWork)));
        program.run();
        checkAborted();
      }
      return { residual: (lane) => addressOf(batch.residual, lane), stride: batch.residual.stride };

      function compute(packed: PackedLayer, layer: number, count: number): void {
        attend(batch, packed, layer, count);
        visit(pointNumber({ layer, place: 'attn_out' }), batch.attentionOut);
        if (!spec.parallel) program.add(batch.residual, batch.attentionOut, count, width);
        feedForward(batch, packed, count);
        visit(pointNumber({ layer, place: 'mlp_out' }), batch.mlpOut);
        if (spec.parallel) program.add(batch.residual, batch.attentionOut, count, width);
        program.add(batch.residual, batch.mlpOut, count, width);
        visit(pointNumber({ layer, place: 'resid_post' }), batch.residual);
      }

      function attend({ tables, ...rows }: Batch, packed: PackedLayer, layer: number, count: number): void {
        const norms = { query: packed.queryNorm, key: packed.keyNorm, epsilon: spec.normEpsilon };
        program.normalize(rows.residual, count, packed.attentionNorm, normSettings, rows.normed);
        program.multiply(rows.normed, count, packed.queryKeyValue, rows.heads);
        program.prepareHeads(rows.heads, count, spec, turns, norms, tables, layer);
        program.attend(rows.heads, count, spec, spec.window[layer] ?? NO_WINDOW, rows.attended, tables, layer);
        program.multiply(rows.attended, count, packed.output, rows.attentionOut);
      }

      /** Tokens are looked up, or the residual stream is taken from where an earlier run has left it. */
      function enter(entering: readonly Lane[]): void {
        if (entering[0]?.start === 0) {
          program.embed(batch.residual, rowCount(entering), weights.embedding, weights.positions, batch.tokens);
          return;
        }
        const numbers = batch.residual.stride / 4;
        for (const lane of entering) {
          const count = lane.tokens.length * numbers;
          heap.floats(addressOf(batch.residual, lane), count).set(heap.floats(lane.input, count));
        }
      }

      function visit(point: number, rows: Rows, isThere = ({ start }: Lane) => boundary(start) <= point): void {
        const visiting = (visitors.get(point) ?? []).filter(isThere);
        if (visiting.length === 0) return;
        program.run();
        for (const lane of visiting) {
          const address = addressOf(rows, lane);
          const row = (index: number) => heap.floats(address + index * rows.stride, width);
          for (const visit of lane.visits.get(point) ?? []) visit(row);
        }
      }

      function addressOf(rows: Rows, lane: Lane): number {
        return rows.address + (firstRows.get(lane) ?? missing('first row of a lane')) * rows.stride;
      }
    },
  };

  function feedForward(batch: Batch, packed: PackedLayer, count: number): void {
    program.normalize(batch.residual, count, packed.mlpNorm, normSettings, batch.normed);
    program.multiply(batch.normed, count, packed.up, batch.hidden);
    program.activate(batch.hidden, count, hidden, ACTIVATIONS[spec.activation], spec.gated);
    program.multiply(batch.hidden, count, packed.down, batch.mlpOut);
  }
}

/** The lanes that have something to do at a point. */
function visitorsOf(lanes: readonly Lane[]): Map<number, Lane[]> {
  const visitors = new Map<number, Lane[]>();
  for (const lane of lanes) {
    for (const point of lane.visits.keys()) {
      const there = visitors.get(point);
      if (there) there.push(lane);
      else visitors.set(point, [lane]);
    }
  }
  return visitors;
}

function rowsOf(lanes: readonly Lane[]): Map<Lane, number> {
  const rows = new Map<Lane, number>();
  let row = 0;
  for (const lane of lanes) {
    rows.set(lane, row);
    row += lane.tokens.length;
  }
  return rows;
}

function rowCount(lanes: readonly Lane[]): number {
  return lanes.reduce((sum, { tokens }) => sum + tokens.length, 0);
}
