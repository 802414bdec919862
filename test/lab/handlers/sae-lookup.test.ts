import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { encodeSafetensors } from '../../../src/lab/formats/safetensors.ts';
import { temporaryFolder } from '../../temporary-folder.ts';
import { toyLab } from '../toy-lab.ts';

/** An SAE in the form of SAELens that reconstructs everything: a feature for each number and each sign of it. */
function writeSae(width: number, { gain = 1, hook = 'blocks.0.hook_resid_post' } = {}): string {
  const folder = join(temporaryFolder(), 'sae');
  mkdirSync(folder);
  const encoder = new Float32Array(width * 2 * width);
  const decoder = new Float32Array(2 * width * width);
  for (let i = 0; i < width; i++) {
    encoder[i * 2 * width + i] = 1;
    encoder[i * 2 * width + width + i] = -1;
    decoder[i * width + i] = gain;
    decoder[(width + i) * width + i] = -gain;
  }
  const tensors = encodeSafetensors({
    W_enc: { dtype: 'F32', shape: [width, 2 * width], data: encoder },
    b_enc: { dtype: 'F32', shape: [2 * width], data: new Float32Array(2 * width) },
    W_dec: { dtype: 'F32', shape: [2 * width, width], data: decoder },
    b_dec: { dtype: 'F32', shape: [width], data: new Float32Array(width) },
  });
  writeFileSync(join(folder, 'sae_weights.safetensors'), tensors);
  const metadata = { model_name: 'toy', hook_name: hook };
  const settings = {
    architecture: 'standard',
    d_in: width,
    d_sae: 2 * width,
    apply_b_dec_to_input: false,
    normalize_activations: 'none',
    metadata,
  };
  writeFileSync(join(folder, 'cfg.json'), JSON.stringify({ ...settings, dtype: 'float32' }));
  writeFileSync(join(folder, 'descriptions.json'), JSON.stringify({ 0: 'the first number' }));
  return folder;
}

describe('looking up SAE features', () => {
  test('lists the strongest with their descriptions, and that the SAE fits', async () => {
    const { call } = toyLab();
    const { capture_id } = await call('capture_acts', { prompt: 'the red cats', layers: [0] });
    const answer = await call('sae_lookup', { sae_id: writeSae(16), capture_id, layer: 0 });
    expect(answer).toMatchObject({ d_sae: 32, n_rows: 1, l0: 16, notes: [] });
    expect(answer.fit_check).toMatchObject({ l0: 16, fvu: expect.closeTo(0, 6) });
    const features = answer.top_features as { feature_id: number; activation: number; description?: string }[];
    expect(features).toHaveLength(16);
    expect(features.map(({ activation }) => activation)).toEqual(
      features.map(({ activation }) => activation).sort((a, b) => b - a),
    );
    const first = features.find(({ feature_id }) => feature_id === 0);
    if (first) expect(first.description).toBe('the first number');
  });

  test('of many rows takes their mean, and lists some rows one by one', async () => {
    const { call, capturePairs } = toyLab();
    const capture_id = await capturePairs(20);
    const answer = await call('sae_lookup', { sae_id: writeSae(16), capture_id, layer: 0, top_k: 5, max_rows: 3 });
    expect(answer).toMatchObject({ n_rows: 40, fvu: expect.closeTo(0, 6) });
    expect(answer.top_features).toHaveLength(5);
    const rows = answer.rows as { row: number; l0: number; top_features: unknown[] }[];
    expect(rows.map(({ row }) => row)).toEqual([0, 1, 2]);
    expect(rows[0]?.top_features).toHaveLength(5);
  });

  test('gives a feature that can be steered along', async () => {
    const { call } = toyLab();
    const steer = { prompt: 'the red cats', layer: 0, alpha: 1, max_new_tokens: 1 };
    const sae = writeSae(16);
    expect(await call('steer', { ...steer, direction_id: `${sae}#3` })).toMatchObject({ alpha: { absolute: 1 } });
    await expect(call('steer', { ...steer, direction_id: `${sae}#32` })).rejects.toThrow(/features 0 to 31, and no 32/);
  });
});

describe('an SAE that does not fit', () => {
  test('because of its width is refused with both widths', async () => {
    const { call, capturePairs } = toyLab();
    const lookup = { sae_id: writeSae(8), capture_id: await capturePairs(2), layer: 0 };
    await expect(call('sae_lookup', lookup)).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringMatching(/width 8.*width 16/),
    });
  });

  test('because it explains nothing is refused unless forced', async () => {
    const { call, capturePairs } = toyLab();
    const lookup = { sae_id: writeSae(16, { gain: -1 }), capture_id: await capturePairs(10), layer: 0 };
    await expect(call('sae_lookup', lookup)).rejects.toMatchObject({
      code: 'bad_model',
      message: expect.stringMatching(/unexplained/),
    });
    const forced = await call('sae_lookup', { ...lookup, force: true });
    expect(forced.fvu).toBeGreaterThan(0.5);
    expect(forced.notes).toEqual([expect.stringContaining('without regard')]);
  });

  test('because it was trained at another hook point gets a note', async () => {
    const { call, capturePairs } = toyLab();
    const lookup = {
      sae_id: writeSae(16, { hook: 'blocks.1.hook_resid_post' }),
      capture_id: await capturePairs(2),
      layer: 0,
    };
    expect((await call('sae_lookup', lookup)).notes).toEqual([expect.stringContaining('blocks.1.hook_resid_post')]);
  });

  test('because it does not exist is reported as unknown', async () => {
    const { call, capturePairs } = toyLab();
    const capture_id = await capturePairs(2);
    const lookup = (sae_id: string) => call('sae_lookup', { sae_id, capture_id, layer: 0 });
    await expect(lookup('./none')).rejects.toMatchObject({ code: 'unknown_sae' });
    await expect(lookup('hf://org/repo')).rejects.toMatchObject({ code: 'invalid_input' });
  });
});

test('sae_lookup on a capture with several positions must name one', async () => {
  const { call, capturePairs } = toyLab();
  const capture_id = await capturePairs(4, { positions: [-1, -2] });
  const lookup = { sae_id: writeSae(16), capture_id, layer: 0 };
  await expect(call('sae_lookup', lookup)).rejects.toThrow(/has the positions -1, -2. Give position/);
  await expect(call('sae_lookup', { ...lookup, position: -2 })).resolves.toMatchObject({ n_rows: 8 });
  await expect(call('sae_lookup', { ...lookup, position: 0 })).rejects.toThrow(/no position 0. It has: -1, -2/);
});
