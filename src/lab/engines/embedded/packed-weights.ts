/** Reads a model's weights into the kernel's memory, and packs matrices in place, so that no weight is in memory twice. */

import { CuvetteError } from '../../../errors.ts';
import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import type { WeightTensor } from '../../models/weights.ts';
import { type Heap, LARGEST_MEMORY, roundUp } from './heap.ts';
import { type Norm, PANEL, type PackedMatrix, type Rows } from './program.ts';

export interface PackedWeights {
  embedding: PackedMatrix;
  /** Learned ones. */
  positions: Rows | undefined;
  layers: PackedLayer[];
  finalNorm: Norm;
  unembedding: PackedMatrix;
}

export interface PackedLayer {
  attentionNorm: Norm | undefined;
  /** Queries, keys and values, one below the other. */
  queryKeyValue: PackedMatrix;
  /** Addresses, or 0. */
  queryNorm: number;
  keyNorm: number;
  output: PackedMatrix;
  attentionAfterNorm: Norm | undefined;
  mlpNorm: Norm | undefined;
  /** Gate and up, one below the other, or up alone. */
  up: PackedMatrix;
  down: PackedMatrix;
  mlpAfterNorm: Norm | undefined;
}

type Tensors = ReadonlyMap<string, WeightTensor>;

export function packWeights(spec: ModelSpec, tensors: Tensors, heap: Heap): PackedWeights {
  checkSize(spec, tensors);
  const matrix = (...names: string[]) => packMatrix(tensors, names, heap);
  const vector = (name: string) => placeVector(tensors, name, heap);
  const norm = (name: string): Norm => ({ weight: vector(`${name}.weight`), bias: vector(`${name}.bias`) });
  const normIfAny = (name: string) => (tensors.has(`${name}.weight`) ? norm(name) : undefined);
  const headNorms = (name: string, heads: number) => {
    if (spec.queryKeyNorm !== 'each') return vector(`${name}.weight`);
    return placeVectors(
      Array.from({ length: heads }, (_, head) => find(tensors, `${name}.${head}.weight`)),
      heap,
    );
  };
  const embedding = packMatrix(tensors, ['embedding'], heap, '');

  return {
    embedding,
    positions: spec.positions.kind === 'learned' ? placeRows(tensors, 'positions', heap) : undefined,
    layers: spec.window.map((_, layer) => {
      const attention = `layers.${layer}.attention`;
      const mlp = `layers.${layer}.mlp`;
      const attentionNorm = normIfAny(`${attention}.norm`);
      return {
        attentionNorm,
        queryKeyValue: matrix(`${attention}.query`, `${attention}.key`, `${attention}.value`),
        queryNorm: headNorms(`${attention}.queryNorm`, spec.heads),
        keyNorm: headNorms(`${attention}.keyNorm`, spec.keyValueHeads),
        output: matrix(`${attention}.output`),
        attentionAfterNorm: normIfAny(`${attention}.afterNorm`),
        mlpNorm: normIfAny(`${mlp}.norm`) ?? (spec.parallel ? attentionNorm : undefined),
        up: spec.gated ? matrix(`${mlp}.gate`, `${mlp}.up`) : matrix(`${mlp}.up`),
        down: matrix(`${mlp}.down`),
        mlpAfterNorm: normIfAny(`${mlp}.afterNorm`),
      };
    }),
    finalNorm: norm('final.norm'),
    unembedding: tensors.has('unembedding.weight')
      ? matrix('unembedding')
      : { ...embedding, bias: vector('unembedding.bias') },
  };
}

/** Rows of a matrix, [outputs, inputs], that lie one after the other from `address` on, are put into panels, each in its own place. */
export function packInPlace(heap: Heap, address: number, outputs: number, inputs: number): void {
  const size = PANEL * inputs;
  const rows = new Float32Array(size);
  for (let first = 0; first < outputs; first += PANEL) {
    const panel = heap.floats(address + first * inputs * 4, size);
    rows.set(panel);
    // Behind the last row is what was in memory before.
    if (first + PANEL > outputs) rows.fill(0, (outputs - first) * inputs);
    for (let row = 0; row < PANEL; row++) {
      const start = row * inputs;
      for (let i = 0, to = row; i < inputs; i++, to += PANEL)
        panel[to] = rows[start + i] ?? missing('weight', start + i);
    }
  }
}

/** Some outputs of a packed matrix as a matrix of its own; whoever asks frees it. */
export function selectOutputs(heap: Heap, matrix: PackedMatrix, outputs: readonly number[]): PackedMatrix {
  const { inputs } = matrix;
  const padded = roundUp(outputs.length, PANEL);
  const address = heap.allocate(padded * (inputs + 1) * 4);
  const to = heap.floats(address, padded * inputs).fill(0);
  const bias = heap.floats(address + padded * inputs * 4, padded).fill(0);
  outputs.forEach((output, index) => {
    const panel = heap.floats(matrix.address + (output - (output % PANEL)) * inputs * 4, PANEL * inputs);
    const start = (index - (index % PANEL)) * inputs + (index % PANEL);
    for (let i = 0; i < inputs; i++) {
      to[start + i * PANEL] = panel[(output % PANEL) + i * PANEL] ?? missing('weight of output', output);
    }
    if (matrix.bias) bias[index] = heap.floats(matrix.bias + output * 4, 1)[0] ?? missing('bias of output', output);
  });
  return { address, bias: matrix.bias ? address + padded * inputs * 4 : 0, outputs: outputs.length, inputs };
}

/** Several matrices of the same inputs become one. */
function packMatrix(tensors: Tensors, names: readonly string[], heap: Heap, suffix = '.weight'): PackedMatrix {
  const parts = names.map((name) => find(tensors, name + suffix));
  const inputs = parts[0]?.shape[1] ?? missing('columns of', names.join(' and '));
  const outputs = parts.reduce((sum, part) => sum + rowsIn(part), 0);
  const address = heap.allocate(roundUp(outputs, PANEL) * inputs * 4);
  let at = address;
  for (const part of parts) {
    const count = rowsIn(part) * inputs;
    part.read(heap.floats(at, count));
    at += count * 4;
  }
  packInPlace(heap, address, outputs, inputs);
  return { address, bias: suffix ? placeBiases(tensors, names, parts, heap) : 0, outputs, inputs };
}

/** One after the other; where one is absent beside others, it is 0. */
function placeBiases(tensors: Tensors, names: readonly string[], parts: readonly WeightTensor[], heap: Heap): number {
  if (!names.some((name) => tensors.has(`${name}.bias`))) return 0;
  const outputs = parts.reduce((sum, part) => sum + rowsIn(part), 0);
  const address = heap.allocate(roundUp(outputs, PANEL) * 4);
  heap.floats(address, roundUp(outputs, PANEL)).fill(0);
  let at = address;
  names.forEach((name, index) => {
    const count = rowsIn(parts[index] ?? missing('matrix', name));
    tensors.get(`${name}.bias`)?.read(heap.floats(at, count));
    at += count * 4;
  });
  return address;
}

function rowsIn({ shape }: WeightTensor): number {
  return shape[0] ?? missing('rows of a tensor');
}

/** 0 if there is no such tensor. */
function placeVector(tensors: Tensors, name: string, heap: Heap): number {
  const tensor = tensors.get(name);
  return tensor ? placeVectors([tensor], heap) : 0;
}

/** One after the other. */
function placeVectors(vectors: readonly WeightTensor[], heap: Heap): number {
  const padded = roundUp(
    vectors.reduce((sum, vector) => sum + rowsIn(vector), 0),
    PANEL,
  );
  const address = heap.allocate(padded * 4);
  heap.floats(address, padded).fill(0);
  let at = address;
  for (const vector of vectors) {
    vector.read(heap.floats(at, rowsIn(vector)));
    at += rowsIn(vector) * 4;
  }
  return address;
}

function placeRows(tensors: Tensors, name: string, heap: Heap): Rows {
  const tensor = find(tensors, name);
  const [rows = missing('rows of', name), width = missing('columns of', name)] = tensor.shape;
  const address = heap.allocate(rows * width * 4);
  tensor.read(heap.floats(address, rows * width));
  return { address, stride: width * 4 };
}

function find(tensors: Tensors, name: string): WeightTensor {
  const tensor = tensors.get(name);
  if (tensor) return tensor;
  throw new CuvetteError('bad_model', `The model has no tensor ${name}. Its weights do not fit its config.json.`);
}

function checkSize(spec: ModelSpec, tensors: Tensors): void {
  let numbers = 0;
  for (const { shape } of tensors.values()) numbers += shape.reduce((product, size) => product * size, 1);
  const bytes = numbers * 4;
  // What is computed needs room beside the weights.
  if (bytes * 1.05 <= LARGEST_MEMORY) return;
  const gibibytes = (bytes / 2 ** 30).toFixed(1);
  throw new CuvetteError(
    'bad_model',
    `This ${spec.architecture} has ${numbers} parameters, which take ${gibibytes} GiB in single precision; the embedded engine can hold 4 GiB. Use the torch engine for it.`,
  );
}
