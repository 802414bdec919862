/** Opens torch engines on one thread. They are forked from a Python that has imported torch once, for all tests of a file. */

import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, inject } from 'vitest';
import { createZygotes } from '../../../../src/interpreters/python/zygotes.ts';
import {
  createTorchEngine,
  type TorchEngine,
  type TorchEngineOptions,
} from '../../../../src/lab/engines/torch/torch-engine.ts';

export type OpenTorchEngine = (folder: string, options?: Partial<TorchEngineOptions>) => Promise<TorchEngine>;

/** Whoever opens an engine closes it. */
export function useTorch(): OpenTorchEngine {
  const project = realpathSync(mkdtempSync(join(tmpdir(), 'cv-')));
  const runtime = join(project, 'r');
  const zygotes = createZygotes(runtime);
  afterAll(async () => {
    await zygotes.dismiss(true);
    rmSync(project, { recursive: true, force: true });
  });
  const shared = {
    python: inject('torchPython'),
    zygotes,
    preload: ['torch', 'transformers.models.llama.modeling_llama'],
    runtime,
    project,
    threads: 1,
  };
  return (folder, options) => createTorchEngine({ id: folder, folder, ...shared, ...options });
}
