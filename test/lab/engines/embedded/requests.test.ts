import { expect, it } from 'vitest';
import type { Engine, ForwardRequest, Intervention, Tap } from '../../../../src/lab/core/engine.ts';
import { openEngine, randomPrompts, randomVector } from './open-engine.ts';

it('the embedded engine describes its model', async () => {
  const engine = await openEngine('llama');
  expect(engine.describe()).toMatchObject({
    id: 'llama',
    engine: 'embedded',
    architecture: 'LlamaForCausalLM',
    layers: 2,
    width: 48,
    dtype: 'float32',
    weights: expect.stringMatching(/^[0-9a-f]{64}$/),
  });
});

it('the embedded engine refuses prompts that the model cannot compute', async () => {
  const engine = await openEngine('gpt2');
  const { vocabulary, context } = engine.describe();
  await refuses(engine, { prompts: [[1], []] }, 'Prompt 1 is empty');
  await refuses(engine, { prompts: [[1, vocabulary]] }, `Prompt 0 has token ${vocabulary}`);
  await refuses(engine, { prompts: [[1, -1]] }, 'Prompt 0 has token -1');
  await refuses(engine, { prompts: [[1, 0.5]] }, 'Prompt 0 has token 0.5');
  const long = randomPrompts(engine, [3, context + 1]);
  await refuses(engine, { prompts: long }, `Prompt 1 has ${context + 1} tokens; ${context} fit`);
  await expect(engine.generate({ prompts: [[]], maxNewTokens: 1 })).rejects.toThrow('Prompt 0 is empty');
});

it('the embedded engine refuses positions outside the prompt, and layers that the model does not have', async () => {
  const engine = await openEngine('gpt2');
  const prompts = randomPrompts(engine, [5, 3]);
  const tap = (layer: number, position: number): Tap[] => [
    { point: { layer, place: 'resid_post' }, positions: [position] },
  ];
  await refuses(engine, { prompts, taps: tap(0, 4) }, 'Position 4 is outside prompt 1, which has 3 tokens');
  await refuses(engine, { prompts, taps: tap(0, -4) }, 'Position -4 is outside prompt 1, which has 3 tokens');
  const { layers } = engine.describe();
  const message = `There is no layer ${layers}. The model has layers 0 to ${layers - 1}.`;
  await refuses(engine, { prompts, taps: tap(layers, 0) }, message);
  await refuses(engine, { prompts, logits: { positions: { from: 9 } } }, 'Position 9 is outside prompt 0');
  await refuses(engine, { prompts, logits: { positions: [0], tokens: [9999] } }, 'token 9999');
  await refuses(engine, { prompts, variants: [{ prompt: 2, interventions: [] }] }, 'A variant is of prompt 2');
  // A prompt that no variant is of need not have the position.
  const variants = [{ prompt: 0, interventions: [] }];
  await expect(engine.run({ prompts, variants, taps: tap(0, 4) })).resolves.toHaveLength(1);
});

it('the embedded engine refuses vectors of another width, or that are not finite or zero', async () => {
  const engine = await openEngine('gpt2');
  const { width } = engine.describe();
  const prompts = randomPrompts(engine, [5]);
  const where = { point: { layer: 1, place: 'mlp_out' }, positions: [0] } as const;
  const vector = randomVector(engine, 1);
  const spoiled = Float32Array.from(vector).fill(Number.NaN, 3, 4);
  const short = vector.slice(1);
  const cases: [Intervention, string][] = [
    [
      { ...where, kind: 'add', vector: short },
      `The vector at blocks.1.hook_mlp_out has ${width - 1} numbers, and the model is ${width} wide`,
    ],
    [{ ...where, kind: 'set', vector: spoiled }, 'The vector at blocks.1.hook_mlp_out has a number that is not finite'],
    [{ ...where, kind: 'project-out', direction: new Float32Array(width) }, 'is 0 everywhere'],
    [{ ...where, kind: 'interchange', direction: vector, source: short, part: 'along' }, 'The source at'],
    [{ ...where, kind: 'add', positions: [7], vector }, 'Position 7 is outside prompt 0, which has 5 tokens'],
    [{ ...where, kind: 'add', point: { layer: -1, place: 'mlp_out' }, vector }, 'There is no layer -1'],
  ];
  for (const [intervention, message] of cases) {
    const variants = [{ prompt: 0, interventions: [intervention] }];
    await refuses(engine, { prompts, variants }, message);
    await expect(engine.generate({ prompts, variants, maxNewTokens: 1 })).rejects.toThrow(message);
  }
});

it('the embedded engine refuses a negative number of tokens and an invalid temperature', async () => {
  const engine = await openEngine('gpt2');
  const prompts = randomPrompts(engine, [5]);
  await expect(engine.generate({ prompts, maxNewTokens: -1 })).rejects.toThrow('whole number from 0 on');
  await expect(engine.generate({ prompts, maxNewTokens: 1, temperature: Number.NaN })).rejects.toThrow('temperature');
});

async function refuses(engine: Engine, request: ForwardRequest, message: string): Promise<void> {
  await expect(engine.run(request)).rejects.toMatchObject({
    code: 'invalid_input',
    message: expect.stringContaining(message),
  });
}
