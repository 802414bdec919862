/** Defines the resources that handlers work with (one open model and its store), and records manifests of experiments. */

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
  /** Neutral text for guards, in the language of the shipped model; undefined for other models. */
  neutralPrompts: readonly string[] | undefined;
  /** Runs code, where the engine has a Python. */
  code?: CodeRunner;
  /** Opens an SAE by path, folder, `demo`, or `hf://org/repo#path`, and caches it. */
  openSae(id: string, context: LabContext): Promise<Sae>;
  /** The local path of a file: downloads `hf://org/repo#path`, and resolves any other path. */
  findFile(source: string, context: LabContext): Promise<string>;
}

/** Makes the manifest of an experiment, without storing it. */
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

/** Stores the manifest of an experiment, and returns its hash for the answer. */
export async function recorded(resources: LabResources, done: Parameters<typeof manifestFor>[1]): Promise<string> {
  const manifest = manifestFor(resources, done);
  await resources.store.manifests.append(manifest);
  return manifest.manifest_sha256;
}
