/** Defines the messages between the engine and its worker threads. */

import type { ErrorCode } from '../../../errors.ts';
import type { ForwardRequest, GenerateRequest, VariantResult } from '../../core/engine.ts';
import type { Sae } from '../../core/sae.ts';

/** What the thread is started with. */
export interface EngineWorkerData {
  folder: string;
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  threads: number;
}

/** What a helping thread is started with. */
export interface ComputeWorkerData {
  module: WebAssembly.Module;
  memory: WebAssembly.Memory;
  /** The address of room that is its own. */
  scratch: number;
}

export type Work =
  | { do: 'run'; request: ForwardRequest }
  | { do: 'generate'; request: GenerateRequest }
  /** The SAE comes along when the thread does not have it. */
  | { do: 'encode'; sae: number; contents?: Sae; rows: Float32Array };

export interface WorkMessage {
  id: number;
  work: Work;
  /** Becomes 1 when nobody wants the answer any more. */
  aborted: Int32Array;
}

export type EngineAnswer =
  | { run: VariantResult[] }
  | { generate: number[][] }
  | { encode: Float32Array }
  /** The SAE was evicted, and must be sent again. */
  | { missing: 'sae' };

export type WorkerMessage =
  | { kind: 'ready'; scratch: number[] }
  | { kind: 'answer'; id: number; answer: EngineAnswer }
  /** Without an id, the model could not be loaded. */
  | { kind: 'failed'; id?: number; code: ErrorCode; message: string };
