/** Tests every SAE format against the features and reconstructions of its own library: see scripts/lab/make-saes.py. */

import { copyFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Sae } from '../../../src/lab/core/sae.ts';
import { decodeSae, encodeSaePlainly } from '../../../src/lab/sae/encode.ts';
import { openSae } from '../../../src/lab/sae/open-sae.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const FIXTURES = join(import.meta.dirname, '../fixtures/saes');
const CASES = readdirSync(FIXTURES);

describe.each(CASES)('the SAE format %s', (name) => {
  test('gives the features of its own library', async () => {
    const { sae, reference } = await openCase(name);
    expect(sae).toMatchObject({ width: 8, features: 24 });
    expectClose(encodeSaePlainly(sae, flat(reference.rows)), flat(reference.features));
  });

  test('reconstructs what its own library reconstructs', async () => {
    const { sae, reference } = await openCase(name);
    const decoded = decodeSae(sae, flat(reference.features), flat(reference.rows));
    expectClose(decoded, flat(reference.decoded));
  });
});

test('the SAE cases cover all formats', () => {
  expect(CASES.length).toBeGreaterThanOrEqual(42);
});

describe('the metadata of an SAE file is read:', () => {
  test.each([
    ['saelens-standard', 'SAELens standard', 'blocks.3.hook_resid_pre', { layer: 3, place: 'resid_pre' }, 'gpt2-small'],
    ['saelens-old', 'SAELens standard', 'blocks.2.hook_resid_post', { layer: 2, place: 'resid_post' }, 'pythia-70m'],
    ['saelens-hook-z', 'SAELens standard', 'blocks.2.attn.hook_z', { layer: 2, place: 'z' }, 'pythia-70m'],
    [
      'gemma-scope-2b-pt-res',
      'Gemma Scope',
      'blocks.3.hook_resid_post',
      { layer: 3, place: 'resid_post' },
      'google/gemma-2-2b',
    ],
    [
      'gemma-scope-9b-it-mlp',
      'Gemma Scope',
      'blocks.3.hook_mlp_out',
      { layer: 3, place: 'mlp_out' },
      'google/gemma-2-9b-it',
    ],
    ['gemma-scope-embedding', 'Gemma Scope', 'hook_embed', undefined, 'google/gemma-2-2b'],
    ['llama-scope', 'Llama Scope jumprelu', 'blocks.5.hook_resid_post', { layer: 5, place: 'resid_post' }, undefined],
    [
      'dictionary-learning-topk',
      'dictionary_learning AutoEncoderTopK',
      'blocks.4.hook_resid_post',
      { layer: 4, place: 'resid_post' },
      'EleutherAI/pythia-70m-deduped',
    ],
    [
      'dictionary-learning-batchtopk',
      'dictionary_learning BatchTopKSAE',
      'blocks.4.hook_mlp_out',
      { layer: 4, place: 'mlp_out' },
      'EleutherAI/pythia-70m-deduped',
    ],
    [
      'sparsify-topk',
      'sparsify topk',
      'blocks.3.hook_resid_post',
      { layer: 3, place: 'resid_post' },
      'EleutherAI/pythia-160m',
    ],
    [
      'sparsify-groupmax',
      'sparsify groupmax',
      'blocks.3.hook_mlp_out',
      { layer: 3, place: 'mlp_out' },
      'EleutherAI/pythia-160m',
    ],
  ])('%s', async (name, format, hookName, hookPoint, model) => {
    const { sae } = await openCase(name);
    expect({
      format: sae.format,
      hookName: sae.hookName,
      hookPoint: sae.hookPoint,
      model: sae.model,
      output: sae.output,
    }).toEqual({
      format,
      hookName,
      hookPoint,
      model,
      output: undefined,
    });
  });

  test.each([
    ['saelens-transcoder', 'blocks.3.ln2.hook_normalized', { width: 6, hookNames: ['blocks.3.hook_mlp_out'] }],
    [
      'gemma-scope-2b-pt-transcoders',
      'blocks.3.ln2.hook_normalized',
      { width: 8, hookNames: ['blocks.3.hook_mlp_out'] },
    ],
    ['gemma-scope-2-4b-it', 'blocks.5.ln2.hook_normalized', { width: 8, hookNames: ['blocks.5.hook_mlp_out'] }],
    ['llama-scope-transcoder', 'blocks.5.ln2.hook_normalized', { width: 8, hookNames: ['blocks.5.hook_mlp_out'] }],
    ['sparsify-skip-transcoder', 'blocks.2.mlp.hook_in', { width: 8, hookNames: ['blocks.2.hook_mlp_out'] }],
    ['circuit-tracer-jumprelu', 'blocks.2.mlp.hook_in', { width: 8, hookNames: ['blocks.2.hook_mlp_out'] }],
    [
      'circuit-tracer-cross-layer',
      'blocks.1.hook_resid_mid',
      { width: 24, hookNames: ['blocks.1.hook_mlp_out', 'blocks.2.hook_mlp_out', 'blocks.3.hook_mlp_out'] },
    ],
  ])('of the transcoder %s, what it reads and what it writes', async (name, hookName, output) => {
    const { sae } = await openCase(name);
    expect({ hookName: sae.hookName, output: sae.output, bias: sae.subtractsDecoderBias }).toEqual({
      hookName,
      output,
      bias: false,
    });
  });

  test('descriptions stand beside the weights', async () => {
    const { sae } = await openCase('saelens-half');
    expect(sae.descriptions).toEqual(
      new Map([
        [3, 'the third'],
        [23, 'the last'],
      ]),
    );
  });
});

describe('an SAE is found by its folder or a file:', () => {
  test.each([
    ['saelens-topk', 'sae_weights.safetensors'],
    ['saelens-topk', 'cfg.json'],
    ['llama-scope', 'checkpoints/final.safetensors'],
    ['dictionary-learning-topk', 'ae.pt'],
    ['gemma-scope-2b-pt-res', 'layer_3/width_16k/average_l0_5'],
    ['circuit-tracer-cross-layer', 'W_dec_1.safetensors'],
    ['circuit-tracer-topk', '.'],
  ])('%s by %s', async (name, path) => {
    const sae = await openSae(join(FIXTURES, name, path), { id: 'x' });
    expect(sae.features).toBe(24);
  });
});

describe('opening an SAE is refused, with the reason:', () => {
  test('a path that is not there', async () => {
    await expect(openSae('/nowhere/sae', { id: 'x' })).rejects.toMatchObject({ code: 'unknown_sae' });
  });

  test('a folder with other files names them and the formats', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'weights.bin'), '');
    const opened = openSae(folder, { id: 'x' });
    await expect(opened).rejects.toMatchObject({ code: 'bad_model' });
    await expect(opened).rejects.toThrow(/It has weights\.bin\. Cuvette reads SAELens/);
  });

  test('a folder of several SAEs asks for one of them', async () => {
    const folder = temporaryFolder();
    cpSync(join(FIXTURES, 'saelens-topk'), join(folder, 'layer_1'), { recursive: true });
    cpSync(join(FIXTURES, 'saelens-topk'), join(folder, 'layer_2'), { recursive: true });
    await expect(openSae(folder, { id: 'x' })).rejects.toThrow(/one of them has to be given: layer_1, layer_2/);
  });

  test.each([
    ['saelens-standard', 'cfg.json', { architecture: 'temporal' }, /architecture temporal.*standard, topk, jumprelu/],
    ['saelens-standard', 'cfg.json', { activation_fn: 'tanh-relu' }, /activation function tanh-relu/],
    [
      'saelens-standard',
      'cfg.json',
      { normalize_activations: 'constant_scalar_rescale' },
      /normalisation constant_scalar_rescale/,
    ],
    ['saelens-standard', 'cfg.json', { normalize_activations: 'expected_average_only_in' }, /activation_scaler\.json/],
    ['saelens-topk', 'cfg.json', { k: 25 }, /its k is 25; it has 24 features/],
    ['saelens-topk', 'cfg.json', { k: 4.5 }, /its k is 4\.5/],
    ['saelens-topk', 'cfg.json', { k: undefined }, /its k is missing/],
    ['saelens-topk', 'cfg.json', { k: 'four' }, /cfg\.json cannot be used/],
    ['saelens-old-fine-tuned', 'cfg.json', { finetuning_scaling_factor: false }, /factors in scaling_factor/],
    ['llama-scope', 'hyperparams.json', { act_fn: 'batchtopk' }, /activation function batchtopk/],
    [
      'llama-scope',
      'hyperparams.json',
      { dataset_average_activation_norm: undefined },
      /dataset_average_activation_norm is missing/,
    ],
    ['llama-scope', 'hyperparams.json', { use_glu_encoder: true }, /GLU encoder/],
    ['llama-scope', 'hyperparams.json', { jump_relu_threshold: undefined }, /jump_relu_threshold is missing/],
    ['sparsify-topk', 'layers.3/cfg.json', { signed: true }, /option signed/],
    ['sparsify-groupmax', 'layers.3.mlp/cfg.json', { k: 5 }, /groupmax with k 5, which does not fit 24 features/],
    ['dictionary-learning-topk', 'config.json', { trainer: { dict_class: 'CrossCoder' } }, /class CrossCoder/],
    ['dictionary-learning-topk', 'config.json', { trainer: {} }, /AutoEncoderTopK or BatchTopKSAE/],
  ])('%s with %s changed to %j', async (name, file, change, message) => {
    const folder = temporaryFolder();
    cpSync(join(FIXTURES, name), folder, { recursive: true });
    const settings = JSON.parse(readFileSync(join(folder, file), 'utf8'));
    writeFileSync(join(folder, file), JSON.stringify({ ...settings, ...change }));
    const { open } = referenceOf(name);
    await expect(openSae(join(folder, open), { id: 'x' })).rejects.toMatchObject({ code: 'bad_model' });
    await expect(openSae(join(folder, open), { id: 'x' })).rejects.toThrow(message);
  });

  test('weights of another format', async () => {
    const folder = temporaryFolder();
    copyFileSync(join(FIXTURES, 'saelens-standard/cfg.json'), join(folder, 'cfg.json'));
    copyFileSync(join(FIXTURES, 'llama-scope/checkpoints/final.safetensors'), join(folder, 'sae_weights.safetensors'));
    await expect(openSae(folder, { id: 'x' })).rejects.toThrow(
      /it has no W_enc, only decoder\.bias, decoder\.weight, encoder\.bias/,
    );
  });

  test('descriptions of another form', async () => {
    const folder = temporaryFolder();
    cpSync(join(FIXTURES, 'saelens-half'), folder, { recursive: true });
    writeFileSync(join(folder, 'descriptions.json'), '{"three": "the third"}');
    await expect(openSae(folder, { id: 'x' })).rejects.toThrow(
      /descriptions\.json cannot be read: it is of another form/,
    );
  });
});

test("Neuronpedia's explanations are read as descriptions", async () => {
  const folder = temporaryFolder();
  cpSync(join(FIXTURES, 'saelens-half'), folder, { recursive: true });
  rmSync(join(folder, 'descriptions.json'));
  const explanations = [
    { modelId: 'm', layer: '3-res', index: '7', description: 'sevens' },
    { modelId: 'm', layer: '3-res', index: '999', description: 'of no feature' },
  ];
  writeFileSync(join(folder, 'explanations.json'), JSON.stringify({ explanations }));
  expect((await openSae(folder, { id: 'x' })).descriptions).toEqual(new Map([[7, 'sevens']]));
});

test('opening an SAE ends when its signal is aborted', async () => {
  const signal = AbortSignal.abort(new Error('enough'));
  await expect(openSae(join(FIXTURES, 'saelens-topk'), { id: 'x', signal })).rejects.toThrow('enough');
});

test.each([
  ['dictionary-learning-autoencoder', 'AutoEncoder'],
  ['dictionary-learning-gated', 'GatedAutoEncoder'],
  ['dictionary-learning-matryoshka', 'MatryoshkaBatchTopKSAE'],
])('the SAE %s is recognised by its tensors alone', async (name, kind) => {
  const folder = temporaryFolder();
  copyFileSync(join(FIXTURES, name, 'ae.pt'), join(folder, 'renamed.pt'));
  expect((await openSae(join(folder, 'renamed.pt'), { id: 'x' })).format).toBe(`dictionary_learning ${kind}`);
});

interface Reference {
  open: string;
  rows: number[][];
  features: number[][];
  decoded: number[][];
}

function referenceOf(name: string): Reference {
  return JSON.parse(readFileSync(join(FIXTURES, name, 'reference.json'), 'utf8'));
}

async function openCase(name: string): Promise<{ sae: Sae; reference: Reference }> {
  const reference = referenceOf(name);
  return { sae: await openSae(join(FIXTURES, name, reference.open), { id: name }), reference };
}

function flat(rows: number[][]): Float32Array {
  return Float32Array.from(rows.flat());
}

function expectClose(actual: Float32Array, expected: Float32Array): void {
  expect(actual.length).toBe(expected.length);
  expect(expected.some((number) => number > 0)).toBe(true);
  const largest = actual.reduce(
    (worst, number, i) => Math.max(worst, Math.abs(number - (expected[i] ?? Number.NaN))),
    0,
  );
  expect(largest).toBeLessThan(1e-5);
}
