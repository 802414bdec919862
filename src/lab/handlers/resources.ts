/** What handlers of primitives work with: one open model, what is kept of it, and the making of manifests. */

import { nanoid } from 'nanoid';
import { VERSION } from '../../version.ts';
import type { CodeRunner } from '../core/code-runner.ts';
import type { Engine, ModelDescription } from '../core/engine.ts';
import type { LabContext } from '../core/lab.ts';
import { createManifest, type Experiment, type Manifest } from '../core/manifest.ts';
import type { Sae } from '../core/sae.ts';
import type { LabStore } from '../store/store.ts';

export interface LabResources {
  engine: Engine;
  model: ModelDescription;
  store: LabStore;
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
  { model }: LabResources,
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
export async function recorded(bench: LabResources, done: Parameters<typeof manifestFor>[1]): Promise<string> {
  const manifest = manifestFor(bench, done);
  await bench.store.manifests.append(manifest);
  return manifest.manifest_sha256;
}
