/** Implements the engine interface with Cuvette's own forward pass on the CPU, in worker threads. Checks requests and passes them to the threads. */

import { availableParallelism } from 'node:os';
import type { Engine } from '../../core/engine.ts';
import type { Sae } from '../../core/sae.ts';
import type { ModelFiles } from '../../models/open-model.ts';
import { checkGenerate, checkRun, checkSaeRows } from '../check-request.ts';
import { startThreads } from './threads.ts';

export interface EmbeddedEngineOptions {
  model: ModelFiles;
  /** As the user named the model. */
  id: string;
  /** As many as the machine has processors, but at most 8, unless told otherwise. Results do not depend on it. */
  threads?: number;
  /** Ends opening. */
  signal?: AbortSignal;
}

const MOST_THREADS = 8;

export async function createEmbeddedEngine(options: EmbeddedEngineOptions): Promise<Engine> {
  const { model, id, signal: opening } = options;
  const { spec, parameters, hashes, tokenizer, folder } = model;
  const count = options.threads ?? Math.min(MOST_THREADS, availableParallelism());
  const threads = await startThreads(folder, Math.max(1, count), opening);
  const saeNumbers = new WeakMap<Sae, number>();
  let saes = 0;

  return {
    describe: () => ({
      id,
      engine: 'embedded',
      architecture: spec.architecture,
      layers: spec.layers,
      width: spec.width,
      heads: spec.heads,
      headWidth: spec.headWidth,
      vocabulary: spec.vocabulary,
      context: spec.context,
      parameters,
      dtype: 'float32',
      device: 'cpu',
      weights: hashes.weights,
      tokenizer: hashes.tokenizer,
    }),
    tokenize: async (texts, options) => texts.map((text) => tokenizer.encode(text, options)),
    detokenize: async (tokens, options) => tokenizer.decode(tokens, options),

    async run(request, signal) {
      checkRun(request, spec);
      const answer = await threads.ask({ do: 'run', request }, signal);
      return 'run' in answer ? answer.run : unexpected();
    },

    async generate(request, signal) {
      checkGenerate(request, spec);
      const answer = await threads.ask({ do: 'generate', request }, signal);
      return 'generate' in answer ? answer.generate : unexpected();
    },

    async encodeSae(sae, rows, signal) {
      checkSaeRows(rows, sae.width, spec);
      const known = saeNumbers.get(sae);
      const number = known ?? saes++;
      saeNumbers.set(sae, number);
      const work = { do: 'encode', sae: number, rows } as const;
      const contents = encodingPart(sae);
      const answer = await threads.ask(known === undefined ? { ...work, contents } : work, signal);
      if ('encode' in answer) return answer.encode;
      const again = await threads.ask({ ...work, contents }, signal);
      return 'encode' in again ? again.encode : unexpected();
    },

    close: () => threads.close(),
  };
}

/** Only what encoding takes goes to the thread. */
function encodingPart(sae: Sae): Sae {
  const part = { ...sae, decoder: new Float32Array() };
  delete part.descriptions;
  delete part.skip;
  return part;
}

function unexpected(): never {
  throw new Error('The engine has answered something else than what it was asked.');
}
