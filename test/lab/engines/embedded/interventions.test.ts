import { describe, expect, it } from 'vitest';
import type { Engine, ForwardRequest, HookPoint, Intervention } from '../../../../src/lab/core/engine.ts';
import { openEngine, randomPrompts, randomVector } from './open-engine.ts';

const PLACES = ['resid_pre', 'attn_out', 'mlp_out', 'resid_post'] as const;

describe.each(['gpt2', 'gpt-neox', 'qwen3'])('interventions in the model %s', (name) => {
  it('change an activation as they are defined, at their positions only', async () => {
    const engine = await openEngine(name);
    const [vector, direction, source] = [
      randomVector(engine, 1, 3),
      randomVector(engine, 2, 3),
      randomVector(engine, 3, 3),
    ];
    for (const place of PLACES) {
      const point: HookPoint = { layer: 1, place };
      const where = { point, positions: [-2] };
      const before = await tapped(engine, point, []);
      const at = (activations: Float32Array[], position: number) => activations.at(position) ?? new Float32Array();
      const original = at(before, -2);
      const cases: [Intervention, (x: Float32Array) => Float32Array][] = [
        [{ ...where, kind: 'add', vector }, (x) => x.map((value, i) => value + (vector[i] ?? 0))],
        [{ ...where, kind: 'set', vector }, () => vector],
        [{ ...where, kind: 'project-out', direction }, (x) => plus(x, -component(x, direction), direction)],
        [
          { ...where, kind: 'interchange', direction, source, part: 'along' },
          (x) => plus(x, component(source, direction) - component(x, direction), direction),
        ],
        [
          { ...where, kind: 'interchange', direction, source, part: 'rest' },
          (x) => plus(source, component(x, direction) - component(source, direction), direction),
        ],
      ];
      for (const [intervention, expected] of cases) {
        const after = await tapped(engine, point, [intervention]);
        expectClose(at(after, -2), expected(original));
        expect(after.slice(0, -2)).toEqual(before.slice(0, -2));
        // What comes later in the text feels it at this layer only through later attention.
        if (place !== 'attn_out' && place !== 'mlp_out') expect(after.at(-1)).toEqual(before.at(-1));
      }
    }
  });

  it('are made in their order, and what is read is read after them', async () => {
    const engine = await openEngine(name);
    const point: HookPoint = { layer: 0, place: 'resid_post' };
    const [vector, direction] = [randomVector(engine, 1, 3), randomVector(engine, 2)];
    const set: Intervention = { kind: 'set', point, positions: [1], vector };
    const remove: Intervention = { kind: 'project-out', point, positions: [1], direction };
    const [first, second] = [await tapped(engine, point, [set, remove]), await tapped(engine, point, [remove, set])];
    expectClose(first[1] ?? new Float32Array(), plus(vector, -component(vector, direction), direction));
    expectClose(second[1] ?? new Float32Array(), vector);
  });

  it('have the same effect as setting the activation to what they make of it', async () => {
    const engine = await openEngine(name);
    const point: HookPoint = { layer: 0, place: 'mlp_out' };
    const vector = randomVector(engine, 1, 3);
    const add: Intervention = { kind: 'add', point, positions: [2], vector };
    const [request, tap] = [
      { prompts: prompts(engine), logits: { positions: [2, -1] } },
      { point, positions: [2] },
    ];
    const [added] = await engine.run({ ...request, variants: [{ prompt: 0, interventions: [add] }], taps: [tap] });
    const set: Intervention = { kind: 'set', point, positions: [2], vector: added?.activations[0] ?? vector };
    const [setTo] = await engine.run({ ...request, variants: [{ prompt: 0, interventions: [set] }] });
    expect(setTo?.logits).toEqual(added?.logits);
    const [plain] = await engine.run(request);
    expect(plain?.logits).not.toEqual(added?.logits);
  });

  it('leave a block as the sum of its parts', async () => {
    const engine = await openEngine(name);
    const vector = randomVector(engine, 1, 5);
    for (const place of ['attn_out', 'mlp_out'] as const) {
      const set: Intervention = { kind: 'set', point: { layer: 1, place }, positions: [3], vector };
      const taps = PLACES.map((one) => ({ point: { layer: 1, place: one }, positions: [3] }));
      const [result] = await engine.run({
        prompts: prompts(engine),
        variants: [{ prompt: 0, interventions: [set] }],
        taps,
      });
      const [before, attention, mlp, after] = result?.activations ?? [];
      expect(place === 'attn_out' ? attention : mlp).toEqual(vector);
      const sum = before?.map((value, i) => value + (attention?.[i] ?? 0) + (mlp?.[i] ?? 0));
      expectClose(after ?? new Float32Array(), sum ?? new Float32Array());
    }
  });
});

function prompts(engine: Engine): ForwardRequest['prompts'] {
  return randomPrompts(engine, [6]);
}

/** The activations at a point, one for each position. */
async function tapped(engine: Engine, point: HookPoint, interventions: Intervention[]): Promise<Float32Array[]> {
  const variants = [{ prompt: 0, interventions }];
  const [result] = await engine.run({ prompts: prompts(engine), variants, taps: [{ point, positions: { from: 0 } }] });
  const { width } = engine.describe();
  return [0, 1, 2, 3, 4, 5].map(
    (row) => result?.activations[0]?.slice(row * width, (row + 1) * width) ?? new Float32Array(),
  );
}

function component(x: Float32Array, direction: Float32Array): number {
  const product = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * (b[i] ?? 0), 0);
  return product(x, direction) / product(direction, direction);
}

function plus(x: Float32Array, factor: number, direction: Float32Array): Float32Array {
  return x.map((value, i) => value + factor * (direction[i] ?? 0));
}

function expectClose(actual: Float32Array, expected: Float32Array): void {
  expect(actual.length).toBe(expected.length);
  for (const [i, value] of expected.entries()) expect(Math.abs((actual[i] ?? Number.NaN) - value)).toBeLessThan(2e-6);
}
