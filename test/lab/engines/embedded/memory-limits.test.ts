import { expect, it } from 'vitest';
import type { ForwardRequest, GenerateRequest, Variant } from '../../../../src/lab/core/engine.ts';
import { generate } from '../../../../src/lab/engines/embedded/generate.ts';
import { createMemory } from '../../../../src/lab/engines/embedded/heap.ts';
import { compileKernel } from '../../../../src/lab/engines/embedded/kernel.ts';
import { createModel, type MemoryLimits, type Model } from '../../../../src/lab/engines/embedded/model.ts';
import { run } from '../../../../src/lab/engines/embedded/run.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { openReference } from '../../parity-reference.ts';

const AMPLE: MemoryLimits = { cached: 2 ** 26, atOnce: 2 ** 26 };

it.each([0, 3_000, 40_000])('the embedded engine computes the same with a memory limit of %i bytes', async (bytes) => {
  const [ample, scarce] = [await openModel(AMPLE), await openModel({ cached: bytes, atOnce: bytes })];
  const { asked, generation } = requests(ample.model);
  for (let time = 0; time < 2; time++) {
    expect(run(scarce.model, asked)).toEqual(run(ample.model, asked));
    expect(generate(scarce.model, generation)).toEqual(generate(ample.model, generation));
  }
});

it('the KV cache evicts what exceeds its limit', async () => {
  const { model, memory } = await openModel({ cached: 100_000, atOnce: 100_000 });
  const random = createRandom(1, 'prompts');
  const grown = [];
  for (let time = 0; time < 40; time++) {
    const prompts = Array.from({ length: 30 }, () => tokens(random.integer, model, 40));
    run(model, { prompts, taps: [{ point: { layer: 0, place: 'resid_post' }, positions: [-1] }] });
    grown.push(memory.buffer.byteLength);
  }
  expect(grown.at(-1)).toBe(grown[5]);
});

async function openModel(rooms: MemoryLimits): Promise<{ model: Model; memory: WebAssembly.Memory }> {
  const files = await openModelFolder(openReference('smollm').folder);
  const memory = createMemory();
  const machine = { module: compileKernel(), memory, threads: 1, checkAborted: () => undefined };
  const { model } = createModel(files, machine, rooms);
  files.close();
  return { model, memory };
}

/** More than fits into little room, some of it several times. */
function requests(model: Model): { asked: ForwardRequest; generation: GenerateRequest } {
  const random = createRandom(1, 'prompts');
  const prompts = Array.from({ length: 25 }, (_, i) => tokens(random.integer, model, 1 + i));
  const variants = Array.from(
    { length: 80 },
    (_, i): Variant => ({
      prompt: i % 20,
      interventions:
        i % 3 === 0
          ? []
          : [
              {
                kind: 'add',
                point: { layer: i % 2, place: 'resid_post' },
                positions: { from: -1 },
                vector: random.direction(model.spec.width),
              },
            ],
    }),
  );
  return {
    asked: {
      prompts,
      variants,
      taps: [{ point: { layer: 1, place: 'mlp_out' }, positions: [0, -1] }],
      logits: { positions: [-1] },
      surprise: true,
    },
    generation: { prompts, variants, maxNewTokens: 5 },
  };
}

function tokens(integer: (below: number) => number, model: Model, length: number): number[] {
  return Array.from({ length }, () => integer(model.spec.vocabulary));
}
