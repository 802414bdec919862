import { describe, expect, it } from 'vitest';
import type { Engine, GenerateRequest, Intervention } from '../../../../src/lab/core/engine.ts';
import { openEngine, randomPrompts, randomVector } from './open-engine.ts';

/** With the length of a prompt; with 13 tokens, what is generated of the model with longrope goes beyond its original context. */
const MODELS: [string, number][] = [
  ['gpt2', 5],
  ['gpt-neox', 5],
  ['mistral', 5],
  ['qwen3', 5],
  ['gemma2', 5],
  ['gemma3', 5],
  ['phi3-longrope', 13],
  ['olmo2', 5],
  ['granite', 5],
  ['stablelm-parallel', 5],
];

describe.each(MODELS)('generating with the model %s', (name, length) => {
  it('takes the likeliest token of the whole text so far, each time', async () => {
    const engine = await openEngine(name);
    const [prompt = []] = randomPrompts(engine, [length]);
    const [generated = []] = await engine.generate({ prompts: [prompt], maxNewTokens: 12 });
    expect(generated.length).toBeGreaterThan(0);
    for (const [i, token] of generated.entries()) {
      expect(await likeliest(engine, [...prompt, ...generated.slice(0, i)])).toBe(token);
    }
  });

  it('applies interventions to generated tokens', async () => {
    const engine = await openEngine(name);
    const [prompt = []] = randomPrompts(engine, [length]);
    const vector = randomVector(engine, 3, 20);
    for (const place of ['resid_post', 'attn_out', 'resid_pre'] as const) {
      const steer: Intervention = { kind: 'add', point: { layer: 1, place }, positions: { from: -2 }, vector };
      const variants = [{ prompt: 0, interventions: [steer] }];
      const [generated = []] = await engine.generate({ prompts: [prompt], variants, maxNewTokens: 8 });
      for (const [i, token] of generated.entries()) {
        const whole = { ...steer, positions: { from: length - 2 } };
        expect(await likeliest(engine, [...prompt, ...generated.slice(0, i)], [whole])).toBe(token);
      }
    }
  });
});

it('the embedded engine generates the same for a text alone and in a batch', async () => {
  const engine = await openEngine('smollm');
  const request = manyTexts(engine);
  for (const temperature of [0, 1.5]) {
    const together = await engine.generate({ ...request, temperature });
    const cold = await openEngine('smollm', { threads: 1 });
    for (const place of [0, 1, 2]) {
      const [variant] = request.variants?.slice(place, place + 1) ?? [];
      if (!variant) throw new Error('There is no such variant.');
      // The first texts are drawn for by their place, so the one in question must stay first.
      if (place > 0 && temperature > 0) continue;
      expect(await cold.generate({ ...request, temperature, variants: [variant] })).toEqual([together[place]]);
    }
  }
});

it('the embedded engine samples the same tokens with the same seed, and others with another', async () => {
  const engine = await openEngine('gpt2');
  const request: GenerateRequest = { prompts: randomPrompts(engine, [4]), maxNewTokens: 20, temperature: 1 };
  const first = await engine.generate({ ...request, seed: 1 });
  expect(await engine.generate({ ...request, seed: 1 })).toEqual(first);
  expect(await engine.generate({ ...request, seed: 2 })).not.toEqual(first);
});

it('the embedded engine samples tokens by their probability', async () => {
  const engine = await openEngine('gpt2');
  const [prompt = []] = randomPrompts(engine, [4]);
  const temperature = 0.5;
  const variants = Array.from({ length: 2000 }, () => ({ prompt: 0, interventions: [] }));
  const drawn = await engine.generate({ prompts: [prompt], variants, maxNewTokens: 1, temperature, seed: 7 });
  const [result] = await engine.run({ prompts: [prompt], logits: { positions: [-1] } });
  const weights = Array.from(result?.logits ?? [], (logit) => Math.exp(logit / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  const likely = weights.indexOf(Math.max(...weights));
  const share = drawn.filter(([token]) => token === likely).length / drawn.length;
  const expected = (weights[likely] ?? 0) / total;
  expect(Math.abs(share - expected)).toBeLessThan(4 * Math.sqrt((expected * (1 - expected)) / drawn.length));
});

it('generation ends at the end of the context', async () => {
  const engine = await openEngine('gpt2');
  const { context } = engine.describe();
  const prompts = randomPrompts(engine, [context - 3, context]);
  const generated = await engine.generate({ prompts, maxNewTokens: 10 });
  expect(generated.map(({ length }) => length <= 3)).toEqual([true, true]);
  expect(generated[1]).toEqual([]);
});

it('generation leaves out the end token', async () => {
  const engine = await openEngine('smollm');
  const prompts = randomPrompts(engine, [3]);
  const end = 0;
  const vector = await pushTowards(engine, end);
  const push: Intervention = { kind: 'add', point: { layer: 1, place: 'resid_post' }, positions: { from: 0 }, vector };
  const variants = [{ prompt: 0, interventions: [push] }];
  expect(await engine.generate({ prompts, variants, maxNewTokens: 5 })).toEqual([[]]);
});

async function likeliest(engine: Engine, tokens: number[], interventions: Intervention[] = []): Promise<number> {
  const variants = [{ prompt: 0, interventions }];
  const [result] = await engine.run({ prompts: [tokens], variants, logits: { positions: [-1] } });
  const logits = result?.logits ?? new Float32Array();
  return logits.indexOf(Math.max(...logits));
}

function manyTexts(engine: Engine): GenerateRequest {
  const steer: Intervention = {
    kind: 'add',
    point: { layer: 0, place: 'resid_post' },
    positions: { from: 1 },
    vector: randomVector(engine, 1, 5),
  };
  const variants = Array.from({ length: 30 }, (_, i) => ({ prompt: i % 3, interventions: i % 2 ? [steer] : [] }));
  return { prompts: randomPrompts(engine, [4, 9, 2]), variants, maxNewTokens: 7, seed: 3 };
}

/** A large vector that makes a token the likeliest, found by trying. */
async function pushTowards(engine: Engine, token: number): Promise<Float32Array> {
  for (let seed = 0; seed < 3000; seed++) {
    const vector = randomVector(engine, seed, 1000);
    const set: Intervention = { kind: 'set', point: { layer: 1, place: 'resid_post' }, positions: [0], vector };
    if ((await likeliest(engine, [1], [set])) === token) return vector;
  }
  throw new Error('No vector was found.');
}
