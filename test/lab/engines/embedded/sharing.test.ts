import { describe, expect, it } from 'vitest';
import type { Engine, ForwardRequest, Intervention, Variant } from '../../../../src/lab/core/engine.ts';
import { openEngine, randomPrompts, randomVector } from './open-engine.ts';

const MODELS = ['gpt2', 'gpt-neox', 'mistral', 'qwen3', 'gemma3', 'phi3-longrope', 'olmo2', 'stablelm-parallel'];

describe.each(MODELS)('the embedded engine with the model %s', (name) => {
  it('computes the same bits with any number of threads', async () => {
    const results = [];
    for (const threads of [1, 2, 3]) {
      const engine = await openEngine(name, { threads });
      results.push(await engine.run(everything(engine)));
    }
    expect(results[1]).toEqual(results[0]);
    expect(results[2]).toEqual(results[0]);
  });

  it('computes the same bits for a variant alone, in a batch, and when its prompt is cached', async () => {
    const engine = await openEngine(name);
    const request = everything(engine);
    const together = await engine.run(request);
    expect(await engine.run(request)).toEqual(together);
    for (const [place, variant] of (request.variants ?? []).entries()) {
      if (place % 4 !== 1) continue;
      const cold = await openEngine(name);
      const [alone] = await cold.run({ ...request, variants: [variant] });
      expect(alone, `variant ${place}`).toEqual(together[place]);
    }
  });

  it('computes the same bits for prompts with a shared prefix', async () => {
    const engine = await openEngine(name);
    const [beginning = [], ...ends] = randomPrompts(engine, [17, 1, 5, 12, 9, 2]);
    const alike = ends.map((end) => [...beginning, ...end]);
    // One is the beginning of another, and one leaves it early.
    const prompts = [...alike, beginning, [...beginning.slice(0, 9), ...(ends[1] ?? [])]];
    const request: ForwardRequest = { ...everything(engine), prompts };
    const taps = [{ point: { layer: 1, place: 'resid_post' as const }, positions: { from: 0 } }];
    for (const asked of [{ prompts, taps }, { prompts, taps, logits: { positions: [0, 5, -1] } }, request]) {
      const together = await engine.run(asked);
      const variants = [2, 6].map((place) => asVariant(asked, place));
      const others = await (await openEngine(name)).run({ ...asked, variants });
      expect(others).toEqual([together[2], together[6]]);
    }
  });

  it('continues from the layer where an earlier run stopped', async () => {
    const engine = await openEngine(name);
    const request = everything(engine);
    const expected = await (await openEngine(name)).run(request);
    const [prompt = []] = request.prompts;
    // Only the first layer, then only a part of what is asked for.
    await engine.run({ prompts: [prompt], taps: [{ point: { layer: 0, place: 'resid_post' }, positions: [0] }] });
    await engine.run({ ...request, variants: (request.variants ?? []).slice(0, 2), logits: { positions: [0] } });
    expect(await engine.run(request)).toEqual(expected);
  });
});

it('the embedded engine runs each prompt once, unmodified, where no variants are given', async () => {
  const engine = await openEngine('smollm');
  const prompts = randomPrompts(engine, [4, 1, 7, 4]);
  const request: ForwardRequest = { prompts, logits: { positions: { from: 0 } }, surprise: true };
  const variants = prompts.map((_, prompt) => ({ prompt, interventions: [] }));
  const plain = await engine.run(request);
  expect(plain).toHaveLength(4);
  expect(plain).toEqual(await engine.run({ ...request, variants }));
  expect(plain.map(({ logits }) => (logits?.length ?? 0) / engine.describe().vocabulary)).toEqual([4, 1, 7, 4]);
});

it('the embedded engine gives the same logits for some tokens as for all', async () => {
  const engine = await openEngine('gpt2');
  const prompts = randomPrompts(engine, [6]);
  const tokens = [5, 0, 320, 5, 17, 8, 9, 10, 11, 12];
  const [all] = await engine.run({ prompts, logits: { positions: [2, -1] } });
  const [some] = await engine.run({ prompts, logits: { positions: [2, -1], tokens } });
  const { vocabulary } = engine.describe();
  const expected = [0, 1].flatMap((row) => tokens.map((token) => all?.logits?.[row * vocabulary + token]));
  expect(Array.from(some?.logits ?? [])).toEqual(expected);
});

it('the embedded engine measures log-probabilities of tokens, and the divergence of a variant from its prompt', async () => {
  const engine = await openEngine('qwen2');
  const prompts = randomPrompts(engine, [9]);
  const [tokens = []] = prompts;
  const changed = variant(engine, 'add', [5]);
  const request: ForwardRequest = { prompts, variants: [{ prompt: 0, interventions: [] }, changed] };
  const logits = await engine.run({ ...request, logits: { positions: { from: 0 } } });
  const surprises = await engine.run({ ...request, surprise: true });
  const { vocabulary } = engine.describe();
  const rows = logits.map((result) =>
    tokens.map((_, i) => logSoftmax(result.logits?.slice(i * vocabulary, (i + 1) * vocabulary) ?? [])),
  );
  for (const [place, { surprise }] of surprises.entries()) {
    const expected = tokens.slice(1).map((token, i) => rows[place]?.[i]?.[token] ?? 0);
    expectClose(surprise?.logProbabilities, expected, 1e-5);
    const divergences = tokens.map((_, i) => {
      const base = rows[0]?.[i] ?? [];
      return base.reduce((sum, log, token) => sum + Math.exp(log) * (log - (rows[place]?.[i]?.[token] ?? 0)), 0);
    });
    expectClose(surprise?.divergences, divergences, 1e-5);
  }
  expect(Array.from(surprises[0]?.surprise?.divergences ?? [])).toEqual(tokens.map(() => 0));
  expect(surprises[1]?.surprise?.divergences[5]).toBeGreaterThan(1e-3);
});

function asVariant({ variants }: ForwardRequest, place: number): Variant {
  return variants?.[place] ?? { prompt: place, interventions: [] };
}

/** Prompts of several lengths, every kind of intervention at every kind of place, alone and together, and everything that can be read. */
function everything(engine: Engine): ForwardRequest {
  const last = engine.describe().layers - 1;
  const prompts = randomPrompts(engine, [7, 13, 7]);
  const single = (['add', 'set', 'project-out', 'interchange'] as const).flatMap((kind, i) => [
    variant(engine, kind, [-1], { layer: 0, place: 'resid_post' }),
    variant(engine, kind, [2, 4], { layer: last, place: 'attn_out' }, i % 3),
    variant(engine, kind, { from: 1 }, { layer: last, place: 'mlp_out' }, 1),
    variant(engine, kind, [0], { layer: 0, place: 'resid_pre' }, 1),
    variant(engine, kind, [-2], { layer: last, place: 'resid_post' }, 2),
  ]);
  const both: Variant = { prompt: 1, interventions: single.slice(0, 5).flatMap(({ interventions }) => interventions) };
  return {
    prompts,
    variants: [{ prompt: 0, interventions: [] }, ...single, both, { prompt: 2, interventions: [] }],
    taps: [
      { point: { layer: 0, place: 'resid_pre' }, positions: [0, -1] },
      { point: { layer: 0, place: 'attn_out' }, positions: { from: 3 } },
      { point: { layer: 0, place: 'resid_post' }, positions: { from: 0 } },
      { point: { layer: last, place: 'mlp_out' }, positions: [3] },
      { point: { layer: last, place: 'resid_post' }, positions: [-1] },
    ],
    logits: { positions: [1, -1], tokens: [0, 7, 300] },
    surprise: true,
  };
}

function variant(
  engine: Engine,
  kind: Intervention['kind'],
  positions: Intervention['positions'],
  point: Intervention['point'] = { layer: 0, place: 'resid_post' },
  prompt = 0,
): Variant {
  const where = { point, positions };
  const [vector, direction, source] = [1, 2, 3].map((seed) => randomVector(engine, seed, 2));
  if (!vector || !direction || !source) throw new Error('There are no vectors.');
  if (kind === 'add' || kind === 'set') return { prompt, interventions: [{ ...where, kind, vector }] };
  if (kind === 'project-out') return { prompt, interventions: [{ ...where, kind, direction }] };
  return { prompt, interventions: [{ ...where, kind, direction, source, part: 'rest' }] };
}

function logSoftmax(logits: ArrayLike<number>): number[] {
  const values = Array.from(logits);
  const highest = Math.max(...values);
  const log = highest + Math.log(values.reduce((sum, logit) => sum + Math.exp(logit - highest), 0));
  return values.map((logit) => logit - log);
}

function expectClose(actual: Float32Array | undefined, expected: readonly number[], within: number): void {
  expect(actual?.length).toBe(expected.length);
  for (const [i, value] of expected.entries())
    expect(Math.abs((actual?.[i] ?? Number.NaN) - value)).toBeLessThan(within);
}
