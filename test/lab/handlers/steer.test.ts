import { describe, expect, test } from 'vitest';
import { steeringEffect } from '../../../src/lab/handlers/steering-effect.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { createToyEngine, NUMBER, toyPairs } from '../toy-engine.ts';
import { toyLab } from '../toy-lab.ts';

const asked = { prompt: 'the red cat near the old', layer: 0, direction_id: 'number', alpha: 2, max_new_tokens: 3 };

async function steeredLab(engine = createToyEngine()) {
  const lab = toyLab(temporaryFolder(), engine);
  await lab.call('load_probe', { probe_id: 'number', direction: NUMBER, layer: 0 });
  return lab;
}

describe('steering', () => {
  test('along what the model reads changes what it says, more than random directions do', async () => {
    const { call } = await steeredLab();
    const answer = await call('steer', asked);
    expect(answer).toMatchObject({
      target_token: ' is',
      target_token_id: 28,
      normalization: { n_controls: expect.any(Number), epiphenomenal_flag: false },
      flipped: true,
      next_token_flipped: true,
      flip_rate: 1,
      n_prompts: 1,
      per_prompt: [],
    });
    const { normalization, random_directions: random } = answer as Record<string, Record<string, number>>;
    expect(normalization?.delta_rel).toBeLessThan(-1);
    expect(normalization?.delta_rel).toBeCloseTo(
      (normalization?.delta_raw_logit_target ?? 0) - (normalization?.delta_raw_logit_controls_mean ?? 0),
    );
    expect(random?.p).toBeLessThan(0.05);
    expect(String(answer.base_generation)).toMatch(/^ is/);
    expect(String(answer.steered_generation)).toMatch(/^ are/);
  });

  test('along a direction that nothing reads is not taken for an effect', async () => {
    const { call } = await steeredLab();
    await call('load_probe', { probe_id: 'number-late', direction: NUMBER, layer: 1 });
    const { normalization, random_directions: random } = await call('steer', {
      ...asked,
      layer: 1,
      direction_id: 'number-late',
    });
    expect(normalization).toMatchObject({ epiphenomenal_flag: true });
    expect((random as { p: number }).p).toBeGreaterThan(0.05);
  });

  test('of several prompts reports each, and all together', async () => {
    const { call } = await steeredLab();
    const { prompts } = toyPairs(6);
    const { prompt: _, ...rest } = asked;
    const answer = await call('steer', { ...rest, prompts });
    expect(answer.per_prompt).toHaveLength(12);
    expect(answer.flip_rate).toBeCloseTo(0.5);
    expect(answer.flip_rate_interval).toHaveLength(2);
  });

  test('reports the dose in every known unit', async () => {
    const { call, capturePairs } = await steeredLab();
    const capture_id = await capturePairs(20);
    await call('train_probe', { probe_id: 'trained', capture_id, layer: 0, method: 'difference-of-means' });
    const bySwing = await call('steer', { ...asked, direction_id: 'trained', alpha: 1, alpha_unit: 'swing' });
    const { alpha } = bySwing as { alpha: { absolute: number; swing: number; norm: number } };
    expect(alpha.swing).toBeCloseTo(1);
    const byNorm = await call('steer', { ...asked, direction_id: 'trained', alpha: alpha.norm, alpha_unit: 'norm' });
    expect(byNorm.alpha).toEqual({
      absolute: expect.closeTo(alpha.absolute),
      swing: expect.closeTo(1),
      norm: expect.closeTo(alpha.norm),
    });
    expect((await call('steer', asked)).alpha).toMatchObject({ absolute: 2, swing: null });
    await expect(call('steer', { ...asked, alpha_unit: 'swing' })).rejects.toThrow(
      /swing is known of probes that were trained in this lab/,
    );
  });

  test('guards neutral text, and a larger dose does more harm', async () => {
    const { call } = await steeredLab();
    const harm = async (alpha: number) =>
      (await call('steer', { ...asked, alpha })).neutral_text as { kl: number; n: number };
    const [small, large] = [await harm(0.1), await harm(20)];
    expect(small).toMatchObject({ is_intact: true, n: 16 });
    expect(large.kl).toBeGreaterThan(small.kl);
  });

  test('uses control tokens that are given, if they are one token each', async () => {
    const { call } = await steeredLab();
    const control_tokens = ['the', 'near', 'red', 'old', 'and', 'of', 'to', 'in', 'a', 'that', 'elephant'];
    const answer = await call('steer', { ...asked, control_tokens });
    expect(answer.normalization).toMatchObject({ n_controls: 10 });
    expect(answer.notes).toEqual([expect.stringContaining('1 of the control tokens')]);
  });

  test.each([
    ['an unknown direction', { direction_id: 'none' }, 'unknown_probe', /no probe none/],
    ['a dose of nothing', { alpha: 0 }, 'invalid_input', /nothing is steered/],
    ['a layer out of range', { layer: 7 }, 'invalid_input', /no layer 7/],
    ['no prompt', { prompt: undefined }, 'invalid_input', /no prompt/],
  ])('with %s is refused', async (_, change, code, message) => {
    const { call } = await steeredLab();
    await expect(call('steer', { ...asked, ...change })).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  test('reports a failed intervention as an error, never as no effect', async () => {
    const engine = createToyEngine();
    const { call } = await steeredLab(engine);
    const run = engine.run;
    engine.run = async (request, signal) => {
      const results = await run(request, signal);
      for (const { logits } of request.variants ? results : []) logits?.fill(Number.NaN);
      return results;
    };
    await expect(call('steer', asked)).rejects.toThrow(/not finite/);
  });
});

describe('the effect of steering on one prompt', () => {
  const base = Float32Array.from([5, 1, 2, 3, 4]);

  test('is none if all logits are only rescaled', () => {
    const steered = base.map((value) => value * 0.5 + 1);
    const effect = steeringEffect(base, steered, [1, 2, 3, 4]);
    expect(effect).toMatchObject({
      target: 0,
      rawTarget: -1.5,
      temperature: expect.closeTo(0.5),
      corrected: expect.closeTo(0),
      controls: 4,
    });
    expect(effect.relative).not.toBeCloseTo(0);
  });

  test('is all of the change of the target alone', () => {
    const steered = Float32Array.from([2, 1, 2, 3, 4]);
    expect(steeringEffect(base, steered, [0, 1, 2, 3, 4])).toMatchObject({
      relative: -3,
      corrected: expect.closeTo(-3),
      temperature: expect.closeTo(1),
      controls: 4,
      isFlipped: true,
    });
  });
});

test('steering refuses an engine that gives no logits, or too few, and names them', async () => {
  const engine = createToyEngine();
  const whole = engine.run;
  const { call } = await steeredLab(engine);
  engine.run = async (request, signal) => (await whole(request, signal)).map(({ logits: _, ...rest }) => rest);
  await expect(call('steer', asked)).rejects.toMatchObject({
    code: 'internal',
    message: expect.stringContaining('The lab has no logits of variant 0,'),
  });
  engine.run = async (request, signal) =>
    (await whole(request, signal)).map(({ logits, ...rest }) => ({
      ...rest,
      ...(logits && { logits: logits.slice(1) }),
    }));
  await expect(call('steer', asked)).rejects.toThrow('asked for 40 logits of variant 0 and gave 39');
});
