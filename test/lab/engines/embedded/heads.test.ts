import { describe, expect, it } from 'vitest';
import type { Engine, HookPoint, Intervention } from '../../../../src/lab/core/engine.ts';
import { missing } from '../../../../src/lab/core/missing.ts';
import { openModelFolder } from '../../../../src/lab/models/open-model.ts';
import { createRandom } from '../../../../src/lab/statistics/random.ts';
import { plainForward } from '../../models/plain-forward.ts';
import { largestDifference, openReference } from '../../parity-reference.ts';
import { openEngine, randomPrompts } from './open-engine.ts';

const CLOSE = 5e-5;
const LAYER = 1;

// Llama and Qwen 3 have fewer heads of values than of queries, Mistral a window.
describe.each(['gpt2', 'gpt-neox', 'llama', 'mistral', 'qwen3'])('heads and patterns in the model %s', (name) => {
  it('are those that plain loops compute, at all layers, heads and positions', async () => {
    const engine = await openEngine(name);
    const model = await openModelFolder(openReference(name).folder);
    const [tokens = []] = randomPrompts(engine, [14]);
    const plain = plainForward(model, tokens);
    model.close();
    const { layers, heads, headWidth = 0 } = engine.describe();
    for (let layer = 0; layer < layers; layer++) {
      const whole = plain.z[layer]?.flat() ?? [];
      expect(largestDifference(await read(engine, tokens, { layer, place: 'z' }), whole)).toBeLessThan(CLOSE);
      for (let head = 0; head < heads; head++) {
        const pattern = await read(engine, tokens, { layer, place: 'pattern', head });
        const expected = plain.patterns[layer]?.flatMap((rows) => rows[head] ?? []) ?? [];
        expect(largestDifference(pattern, expected)).toBeLessThan(CLOSE);
        const z = await read(engine, tokens, { layer, place: 'z', head });
        const own = plain.z[layer]?.flatMap((row) => row.slice(head * headWidth, (head + 1) * headWidth)) ?? [];
        expect(largestDifference(z, own)).toBeLessThan(CLOSE);
      }
    }
  });

  it('are the same whether a prompt is computed alone, in a batch, or from its cached beginning', async () => {
    const engine = await openEngine(name);
    const prompts = randomPrompts(engine, [14, 3, 9]);
    const taps = (['z', 'pattern'] as const).map((place) => ({
      point: { layer: LAYER, place, head: 2 },
      positions: { from: 0 },
    }));
    const together = await engine.run({ prompts, taps });
    const add: Intervention = {
      ...{ kind: 'add', point: { layer: 0, place: 'resid_pre' }, positions: [-1] },
      vector: new Float32Array(engine.describe().width),
    };
    const changed = await engine.run({
      prompts,
      variants: prompts.map((_, prompt) => ({ prompt, interventions: [add] })),
      taps,
    });
    for (const [i, tokens] of prompts.entries()) {
      const [alone] = await engine.run({ prompts: [tokens], taps });
      expect(together[i]?.activations).toEqual(alone?.activations);
      alone?.activations.forEach((numbers, tap) => {
        expect(largestDifference(changed[i]?.activations[tap] ?? [], numbers)).toBeLessThan(1e-6);
      });
    }
  });

  it('are changed alone, and attention adds what the output matrix makes of them', async () => {
    const engine = await openEngine(name);
    const [tokens = []] = randomPrompts(engine, [8]);
    const { headWidth = 0, heads } = engine.describe();
    const point: HookPoint = { layer: LAYER, place: 'z', head: 2 };
    const vector = vectorOf(headWidth);
    const set: Intervention = { kind: 'set', point, positions: [-3], vector };
    const before = await read(engine, tokens, { layer: LAYER, place: 'z' });
    const after = await read(engine, tokens, { layer: LAYER, place: 'z' }, [set]);
    const width = heads * headWidth;
    const expected = Float32Array.from(before);
    expected.set(vector, 5 * width + 2 * headWidth);
    expect(largestDifference(after, expected)).toBeLessThan(1e-6);
    // All heads as they were left, set at once, are the same model.
    const whole: Intervention = {
      ...set,
      point: { layer: LAYER, place: 'z' },
      vector: expected.slice(5 * width, 6 * width),
    };
    expect(largestDifference(await logits(engine, tokens, [whole]), await logits(engine, tokens, [set]))).toBeLessThan(
      1e-6,
    );
    expect(largestDifference(await logits(engine, tokens, [set]), await logits(engine, tokens, []))).toBeGreaterThan(
      1e-4,
    );
  });

  it('give with a pattern of one token the values of that token, which the head mixes by its own pattern', async () => {
    const engine = await openEngine(name);
    const [tokens = []] = randomPrompts(engine, [8]);
    const head = 3;
    const point: HookPoint = { layer: LAYER, place: 'pattern', head };
    const { headWidth = 0 } = engine.describe();
    const values = await Promise.all(
      tokens.map((_, key) => {
        const vector = Float32Array.from(tokens, (_, i) => (i === key ? 1 : 0));
        const set: Intervention = { kind: 'set', point, positions: [-1], vector };
        return read(engine, tokens, { layer: LAYER, place: 'z', head }, [set], [-1]);
      }),
    );
    const own = await read(engine, tokens, point);
    const z = await read(engine, tokens, { layer: LAYER, place: 'z', head });
    tokens.forEach((_, position) => {
      const mixed = Float32Array.from({ length: headWidth }, (_, i) =>
        values.reduce((sum, value, key) => sum + (own[position * tokens.length + key] ?? 0) * (value[i] ?? 0), 0),
      );
      expect(largestDifference(mixed, z.slice(position * headWidth, (position + 1) * headWidth))).toBeLessThan(CLOSE);
    });
  });

  it('have the logits of the model where a pattern is set to itself, and others where it is exchanged', async () => {
    const engine = await openEngine(name);
    const [tokens = [], other = []] = randomPrompts(engine, [8, 8]);
    const point: HookPoint = { layer: LAYER, place: 'pattern', head: 0 };
    const [own, theirs] = [await read(engine, tokens, point, [], [-2]), await read(engine, other, point, [], [-2])];
    const set = (vector: Float32Array): Intervention => ({ kind: 'set', point, positions: [-2], vector });
    const plain = await logits(engine, tokens, []);
    expect(largestDifference(await logits(engine, tokens, [set(own)]), plain)).toBeLessThan(1e-5);
    const exchanged = await logits(engine, tokens, [set(theirs)]);
    expect(largestDifference(exchanged, plain)).toBeGreaterThan(1e-5);
    const moved: Intervention = {
      kind: 'add',
      point,
      positions: [-2],
      vector: theirs.map((value, i) => value - (own[i] ?? missing('weight', i))),
    };
    expect(largestDifference(await logits(engine, tokens, [moved]), exchanged)).toBeLessThan(1e-5);
  });

  it('stay switched off while text is generated', async () => {
    const engine = await openEngine(name);
    const [tokens = []] = randomPrompts(engine, [6]);
    const { headWidth = 0 } = engine.describe();
    const off: Intervention = {
      ...{ kind: 'set', point: { layer: LAYER, place: 'z', head: 1 }, positions: { from: 2 } },
      vector: new Float32Array(headWidth),
    };
    const [generated = []] = await engine.generate({
      prompts: [tokens],
      variants: [{ prompt: 0, interventions: [off] }],
      maxNewTokens: 4,
    });
    const soFar = [...tokens];
    for (const token of generated) {
      const last = (await logits(engine, soFar, [off])).slice(-engine.describe().vocabulary);
      expect(last.indexOf(Math.max(...last))).toBe(token);
      soFar.push(token);
    }
  });
});

describe('a pattern', () => {
  it.each([
    ['sums to 1.500', [0.5, 0.5, 0.5, 0, 0]],
    ['has the weight -1.00', [2, -1, 0, 0, 0]],
    ['weighs tokens behind position 3', [0, 0, 0, 0, 1]],
  ])('whose row %s is refused', async (told, weights) => {
    const engine = await openEngine('llama');
    const set = patternSet(Float32Array.from(weights));
    await expect(logits(engine, [1, 2, 3, 4, 5], [set])).rejects.toThrow(told);
  });

  it('is refused if what is added leaves no distribution', async () => {
    const engine = await openEngine('llama');
    const add: Intervention = { ...patternSet(Float32Array.of(1, 0, 0, 0, 0)), kind: 'add' };
    await expect(logits(engine, [1, 2, 3, 4, 5], [add])).rejects.toThrow('would be no distribution');
  });

  it('has no directions, wants a head that there is, and does not grow with a text that is generated', async () => {
    const engine = await openEngine('llama');
    const tokens = [1, 2, 3, 4, 5];
    const direction = Float32Array.of(1, 0, 0, 0, 0);
    const { vector: _, ...where } = patternSet(direction);
    await expect(logits(engine, tokens, [{ ...where, kind: 'project-out', direction }])).rejects.toThrow(
      'no directions',
    );
    const of = (head: number | undefined) => ({ layer: 0, place: 'pattern' as const, head });
    await expect(read(engine, tokens, of(undefined))).rejects.toThrow('blocks.0.attn.hook_pattern[0]');
    await expect(read(engine, tokens, of(99))).rejects.toThrow('There is no head 99');
    const growing = { ...patternSet(Float32Array.of(1, 0, 0, 0, 0)), positions: { from: 0 } };
    const request = { prompts: [tokens], variants: [{ prompt: 0, interventions: [growing] }], maxNewTokens: 2 };
    await expect(engine.generate(request)).rejects.toThrow('grow with the text');
  });
});

function patternSet(vector: Float32Array): Extract<Intervention, { kind: 'set' }> {
  return { kind: 'set', point: { layer: 1, place: 'pattern', head: 0 }, positions: [-2], vector };
}

function vectorOf(width: number): Float32Array {
  return createRandom(1, 'vector').direction(width);
}

async function read(
  engine: Engine,
  tokens: readonly number[],
  point: HookPoint,
  interventions: Intervention[] = [],
  positions: readonly number[] | { from: number } = { from: 0 },
): Promise<Float32Array> {
  const variants = [{ prompt: 0, interventions }];
  const [result] = await engine.run({ prompts: [tokens], variants, taps: [{ point, positions }] });
  return result?.activations[0] ?? missing('activation');
}

async function logits(engine: Engine, tokens: readonly number[], interventions: Intervention[]): Promise<Float32Array> {
  const variants = [{ prompt: 0, interventions }];
  const [result] = await engine.run({ prompts: [tokens], variants, logits: { positions: { from: 0 } } });
  return result?.logits ?? missing('logits');
}
