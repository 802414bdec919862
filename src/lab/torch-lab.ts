/** A model in the torch engine, in a Python found or made for it, with its captures as variables of code. */

import { createZygotes } from '../interpreters/python/zygotes.ts';
import { runtimeFolder } from '../paths.ts';
import { withoutSecrets } from '../sessions/environment-variables.ts';
import type { TorchSettings } from './engines/torch/startup.ts';
import { createTorchEngine, type TorchEngine } from './engines/torch/torch-engine.ts';
import { findTorchPython } from './engines/torch/torch-python.ts';
import type { LabContext } from './workbench.ts';

export interface TorchChoice extends TorchSettings {
  /** A Python that has torch; by default one is found, or made. */
  python?: string;
}

export interface TorchPlaces {
  /** Cuvette's folders. */
  cache: string;
  runtime: string;
  /** Where code runs. */
  project: string;
}

export async function openTorchEngine(
  choice: TorchChoice,
  model: { id: string; folder: string },
  { cache, runtime, project }: TorchPlaces,
  { signal, progress }: LabContext,
): Promise<TorchEngine> {
  const wanted = choice.python ?? process.env.CUVETTE_TORCH_PYTHON;
  const python = await findTorchPython({ wanted, cache, signal, progress });
  progress(`Loading ${model.id} in ${python}`);
  const folder = runtimeFolder(runtime);
  const env = withoutSecrets();
  const zygotes = createZygotes(folder, env);
  try {
    const engine = await createTorchEngine({
      ...choice,
      ...model,
      python,
      zygotes,
      runtime: folder,
      project,
      env,
      signal,
    });
    const close = async () => {
      await engine.close();
      await zygotes.dismiss(true);
    };
    return { ...engine, close };
  } catch (error) {
    await zygotes.dismiss(true);
    throw error;
  }
}
