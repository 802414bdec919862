/** Owns a model in the kernel's memory, with everything that computing it takes. It is used by one thread, which others help. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import type { WeightTensor } from '../../models/weights.ts';
import { type BaseRuns, createBaseRuns } from './base-runs.ts';
import { createBeginnings } from './beginnings.ts';
import { createHeap, type Heap } from './heap.ts';
import { instantiateKernel } from './kernel.ts';
import { createLayers, type Layers } from './layers.ts';
import { packWeights } from './packed-weights.ts';
import { createPredictions, type Predictions } from './predictions.ts';
import { createProgram, type Program } from './program.ts';
import { createPromptRecords, type PromptRecords } from './prompt-records.ts';

export interface Model {
  spec: ModelSpec;
  heap: Heap;
  program: Program;
  layers: Layers;
  records: PromptRecords;
  bases: BaseRuns;
  predictions: Predictions;
  rooms: Rooms;
}

interface Machine {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  threads: number;
  /** Is called between steps; throws to end what is going on. */
  checkAborted: () => void;
}

/** In bytes. */
export interface Rooms {
  /** For what is kept of prompts when nobody needs it. */
  kept: number;
  /** For prompts, or texts that are generated, while they are computed together. One is computed even if it has no room. */
  atOnce: number;
}

const ROOMS: Rooms = { kept: 256 * 2 ** 20, atOnce: 128 * 2 ** 20 };

/** Also gives each thread's room of its own. */
export function createModel(
  { spec, tensors }: { spec: ModelSpec; tensors: ReadonlyMap<string, WeightTensor> },
  { module, memory, threads, checkAborted }: Machine,
  rooms: Rooms = ROOMS,
): { model: Model; scratch: number[] } {
  const heap = createHeap(memory);
  const kernel = instantiateKernel(module, memory);
  // In it a thread has the scores of one query.
  const scratch = Array.from({ length: threads }, () => heap.allocate(spec.context * 4));
  const program = createProgram(kernel, heap, scratch[0] ?? missing('thread', 0));
  const weights = packWeights(spec, tensors, heap);
  const layers = createLayers(spec, weights, heap, program, checkAborted);
  const beginnings = createBeginnings(spec, heap);
  const records = createPromptRecords(spec, heap, rooms.kept, beginnings.forget);
  const bases = createBaseRuns(spec, layers, records, beginnings, heap);
  const predictions = createPredictions(spec, weights, heap, program, checkAborted);
  return { model: { spec, heap, program, layers, records, bases, predictions, rooms }, scratch };
}
