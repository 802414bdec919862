/** Tests every SAE format against the features and reconstructions of its own library: see scripts/lab/make-saes.py. */

import { copyFileSync, cpSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { missing } from '../../../src/lab/core/missing.ts';
import type { Sae } from '../../../src/lab/core/sae.ts';
import { encodeSafetensors, openSafetensors } from '../../../src/lab/formats/safetensors.ts';
import { elementsOf } from '../../../src/lab/formats/tensor-file.ts';
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
  expect(CASES.length).toBeGreaterThanOrEqual(49);
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
    ['openai-topk', 'OpenAI TopK', 'blocks.6.hook_resid_post', { layer: 6, place: 'resid_post' }, 'gpt2'],
    ['openai-relu', 'OpenAI ReLU', 'blocks.11.hook_mlp_out', { layer: 11, place: 'mlp_out' }, 'gpt2'],
    ['goodfire', 'Goodfire', undefined, undefined, undefined],
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
      /has what that does not: decoder\.bias, decoder\.weight, encoder\.bias, encoder\.weight\..*Known there: W_enc, b_enc/,
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
  ['dictionary-learning-autoencoder', 'AutoEncoder 0.1.0'],
  ['dictionary-learning-gated', 'GatedAutoEncoder 0.1.0'],
  ['dictionary-learning-matryoshka', 'MatryoshkaBatchTopKSAE'],
])('the SAE %s is recognised by its tensors alone', async (name, kind) => {
  const folder = temporaryFolder();
  copyFileSync(join(FIXTURES, name, 'ae.pt'), join(folder, 'renamed.pt'));
  expect((await openSae(join(folder, 'renamed.pt'), { id: 'x' })).format).toBe(`dictionary_learning ${kind}`);
});

describe('where releases of dictionary_learning compute other features, an SAE says which it was read as:', () => {
  test.each([
    ['dictionary-learning-autoencoder', 'AutoEncoder 0.1.0', undefined],
    ['dictionary-learning-2024-autoencoder', 'AutoEncoder of 2024', undefined],
    ['dictionary-learning-gated', 'GatedAutoEncoder 0.1.0', undefined],
    ['dictionary-learning-2024-gated', 'GatedAutoEncoder of 2024', undefined],
    ['dictionary-learning-2024-jumprelu', 'JumpReluAutoEncoder of 2024', undefined],
    // It has no config.json.
    [
      'dictionary-learning-jumprelu',
      'JumpReluAutoEncoder 0.1.0',
      [
        expect.stringMatching(
          /does not say which release .* 0\.1\.0, which does not multiply .* One of 2024 multiplies/,
        ),
      ],
    ],
  ])('%s as %s', async (name, kind, notes) => {
    const { sae } = await openCase(name);
    expect({ format: sae.format, notes: sae.notes }).toEqual({ format: `dictionary_learning ${kind}`, notes });
  });
});

describe('a .pt file of an SAE is refused', () => {
  test.each([
    ['openai-tied', /taken for OpenAI's sparse_autoencoder, and has what that does not: decoder\.linear\.weight\./],
    ['openai-other-setting', /has what that does not: activation_state_dict\.temperature\./],
    ['openai-two-k', /activation_state_dict\.k and activation\.k, which differ: 4 and 5/],
    ['openai-identity', /the activation function Identity.*ReLU and TopK/],
    ['openai-topk-identity', /the function Identity after its TopK/],
    ['openai-topk-without-k', /its k is missing/],
    ['autoencoder-with-threshold', /taken for dictionary_learning AutoEncoder, .*does not: log_threshold\./],
    ['topk-with-bandwidth', /taken for dictionary_learning AutoEncoderTopK, .*does not: bandwidth\./],
    ['gated-with-encoder-bias', /taken for dictionary_learning GatedAutoEncoder, .*does not: encoder\.bias\./],
    ['matrices-alone', /of no class of dictionary_learning.*it has W_enc, b_enc, W_dec, b_dec\./],
    ['linear-alone', /of no class of dictionary_learning.*it has encoder\.weight, encoder\.bias, decoder\.weight\./],
  ])('when it is %s', async (name, message) => {
    const opened = openSae(join(FIXTURES, '../saes-refused', `${name}.pt`), { id: 'x' });
    await expect(opened).rejects.toMatchObject({ code: 'bad_model', message: expect.stringMatching(message) });
  });
});

describe.each(CASES.filter((name) => safetensorsOf(name).length > 0))('of the SAE %s', (name) => {
  test('a tensor more is refused by its name', async () => {
    for (const file of safetensorsOf(name)) {
      const { path } = copyWith(name, file, (tensors) => {
        tensors.W_gate_extra = { dtype: 'F32', shape: [2], data: Float32Array.of(1, 2) };
      });
      await expect(openSae(path, { id: 'x' })).rejects.toThrow(/has what that does not: W_gate_extra\./);
    }
  });

  test('every tensor has a part in what is computed', async () => {
    const { sae, reference } = await openCase(name);
    const before = computed(sae, reference);
    for (const file of safetensorsOf(name)) {
      for (const tensor of Object.keys(tensorsOf(join(FIXTURES, name, file)))) {
        if (NO_PART[name]?.includes(tensor)) continue;
        const { path } = copyWith(name, file, (tensors) => {
          const { shape, data } = tensors[tensor] ?? missing('tensor', tensor);
          tensors[tensor] = { dtype: 'F32', shape, data: data.map((number) => 2 - number * 1.5) };
        });
        expect(computed(await openSae(path, { id: 'x' }), reference), `${file}: ${tensor}`).not.toEqual(before);
      }
    }
  });
});

/** Factors that are refused unless they are all 1, or said to be used. */
const NO_PART: Record<string, string[]> = { 'saelens-old': ['scaling_factor'] };

type Tensors = Record<string, { dtype: 'F32'; shape: number[]; data: Float32Array }>;

function safetensorsOf(name: string): string[] {
  const names = readdirSync(join(FIXTURES, name), { recursive: true, encoding: 'utf8' });
  return names.filter((file) => file.endsWith('.safetensors'));
}

function tensorsOf(path: string): Tensors {
  const file = openSafetensors(path);
  try {
    const read = (tensor: string, shape: readonly number[]) => {
      const data = new Float32Array(elementsOf(shape));
      file.into(tensor, data);
      return { dtype: 'F32' as const, shape: [...shape], data };
    };
    return Object.fromEntries(Array.from(file.tensors, ([tensor, { shape }]) => [tensor, read(tensor, shape)]));
  } finally {
    file.close();
  }
}

/** A copy of the case with one file's tensors changed. The folder keeps its name, which some formats are told by. */
function copyWith(name: string, file: string, change: (tensors: Tensors) => void): { path: string } {
  const folder = join(temporaryFolder(), name);
  cpSync(join(FIXTURES, name), folder, { recursive: true });
  const tensors = tensorsOf(join(folder, file));
  change(tensors);
  writeFileSync(join(folder, file), encodeSafetensors(tensors));
  return { path: join(folder, referenceOf(name).open) };
}

function computed(sae: Sae, reference: Reference): { features: Float32Array; decoded: Float32Array } {
  const rows = flat(reference.rows);
  const features = encodeSaePlainly(sae, rows);
  return { features, decoded: decodeSae(sae, features, rows) };
}

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
