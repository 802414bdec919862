/** Holds a model in the kernel's memory, with the caches and buffers that computing it takes. One thread uses it, and other threads compute parts of its operations. */

import { missing } from '../../core/missing.ts';
import type { ModelSpec } from '../../models/architectures/model-spec.ts';
import type { WeightTensor } from '../../models/weights.ts';
import { type BaseRuns, createBaseRuns } from './base-runs.ts';
import { createHeap, type Heap } from './heap.ts';
import { instantiateKernel } from './kernel.ts';
import { createKvCache, type KvCache } from './kv-cache.ts';
import { createLayers, type Layers } from './layers.ts';
import { packWeights } from './packed-weights.ts';
import { createPredictions, type Predictions } from './predictions.ts';
import { createPrefixCache } from './prefix-cache.ts';
import { createProgram, type KernelProgram, scratchBytes } from './program.ts';

export interface Model {
  spec: ModelSpec;
  heap: Heap;
  program: KernelProgram;
  layers: Layers;
  cache: KvCache;
  bases: BaseRuns;
  predictions: Predictions;
  limits: MemoryLimits;
}

interface Machine {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  threads: number;
  /** Called between steps; throws if the request was cancelled. */
  checkAborted: () => void;
}

/** In bytes. */
export interface MemoryLimits {
  /** For the KV cache between requests. */
  cached: number;
  /** For prompts or generated texts that are computed together. A single one is computed even if it exceeds the limit. */
  atOnce: number;
}

const MEMORY_LIMITS: MemoryLimits = { cached: 256 * 2 ** 20, atOnce: 128 * 2 ** 20 };

/** `scratch` has the address of each thread's own buffer. */
export function createModel(
  { spec, tensors }: { spec: ModelSpec; tensors: ReadonlyMap<string, WeightTensor> },
  { module, memory, threads, checkAborted }: Machine,
  limits: MemoryLimits = MEMORY_LIMITS,
): { model: Model; scratch: number[] } {
  const heap = createHeap(memory);
  const kernel = instantiateKernel(module, memory);
  const scratch = Array.from({ length: threads }, () => heap.allocate(scratchBytes(spec.context)));
  const program = createProgram(kernel, heap, scratch[0] ?? missing('thread', 0));
  const weights = packWeights(spec, tensors, heap);
  const layers = createLayers(spec, weights, heap, program, checkAborted);
  const prefixes = createPrefixCache(spec, heap);
  const cache = createKvCache(spec, heap, limits.cached, prefixes.remove);
  const bases = createBaseRuns(spec, layers, cache, prefixes, heap);
  const predictions = createPredictions(spec, weights, heap, program, checkAborted);
  return { model: { spec, heap, program, layers, cache, bases, predictions, limits }, scratch };
}
