/** What handlers of primitives work with: one open model, what is kept of it, and the making of manifests. */

import { nanoid } from 'nanoid';
import type { ExitReport, Output, Variable } from '../interpreters/interpreter.ts';
import { VERSION } from '../version.ts';
import type { Engine, ModelDescription } from './engine.ts';
import { createManifest, type Experiment, type Manifest } from './manifest.ts';
import type { Sae } from './sae/sae.ts';
import type { Store } from './store/store.ts';

export interface LabContext {
  /** Aborted when the caller gives up. */
  signal: AbortSignal;
  /** Tells the caller what goes on. */
  progress(message: string): void;
  /** Takes what code shows, as it is shown. */
  output?(output: Output): void;
  /** SHA-256 of the model that the caller means: a lab elsewhere that has another refuses the call. */
  weights?: string;
}

/** The Python that holds the model, for code beside it. */
export interface CodeRunner {
  run(code: string, options: RunOptions): Promise<{ ending: ExitReport; life: number }>;
  /** The run of that name, if it goes on. */
  interrupt(run: string): void;
  describe(): Promise<{ version: string; executable: string; life: number }>;
  variables(): Promise<Variable[]>;
  /** A fresh one, which loads the model again. */
  reset(): Promise<void>;
}

export interface RunOptions {
  run: string;
  /** Seconds. */
  timeout: number | null;
  /** Characters that may be printed. */
  limit: number;
  /** A number for tracebacks. */
  cell: number;
  signal: AbortSignal;
  onOutput(output: Output): void;
}

export interface Workbench {
  engine: Engine;
  model: ModelDescription;
  store: Store;
  /** Text of the model's own kind, for guards; a model from elsewhere has none of its own. */
  neutralPrompts: readonly string[] | undefined;
  /** Where the engine has a Python. */
  code?: CodeRunner;
  /** By path, folder, `demo`, or `hf://org/repo#path`. Read once. */
  openSae(id: string, context: LabContext): Promise<Sae>;
  /** A file of the hub, by `hf://org/repo#path`; of anything else, the path itself. */
  findFile(source: string, context: LabContext): Promise<string>;
}

/** The experiment's hash, for an answer; `keepManifest` puts it on record. */
export function manifestFor(
  { model }: Workbench,
  done: Omit<Experiment, 'config'> & { data: string | null; seed?: number },
): Manifest {
  const config = {
    program: VERSION,
    engine: model.engine,
    dtype: model.dtype,
    weights: model.weights,
    tokenizer: model.tokenizer,
    data: done.data,
    seed: done.seed ?? null,
  };
  const { tool, inputs, outputs } = done;
  return createManifest({ tool, inputs, outputs, config }, { time: new Date().toISOString(), id: nanoid() });
}

/** Puts the experiment on record, and gives its hash for the answer. */
export async function recorded(bench: Workbench, done: Parameters<typeof manifestFor>[1]): Promise<string> {
  const manifest = manifestFor(bench, done);
  await bench.store.manifests.append(manifest);
  return manifest.manifest_sha256;
}
