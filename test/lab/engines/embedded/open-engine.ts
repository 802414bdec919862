/** Opens an engine with one of the small random models, and closes it after the test. */

import { onTestFinished } from 'vitest';
import type { Engine } from '../../../../src/lab/core/engine.ts';
import { createEmbeddedEngine } from '../../../../src/lab/engines/embedded/embedded-engine.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { openReference } from '../../parity-reference.ts';

export async function openEngine(name: string, options: { threads?: number } = {}): Promise<Engine> {
  const model = await openModelFolder(openReference(name).folder);
  const engine = await createEmbeddedEngine({ model, id: name, threads: options.threads ?? 2 });
  model.close();
  onTestFinished(() => engine.close());
  return engine;
}

/** Texts of random tokens, of these lengths. */
export function randomPrompts(engine: Engine, lengths: readonly number[], seed = 1): number[][] {
  const random = createRandom(seed, 'prompts');
  const { vocabulary } = engine.describe();
  return lengths.map((length) => Array.from({ length }, () => random.integer(vocabulary)));
}

export function randomVector(engine: Engine, seed: number, length = 1): Float32Array {
  return createRandom(seed, 'vector')
    .direction(engine.describe().width)
    .map((value) => value * length);
}
