/** Loads the format of OpenAI's sparse_autoencoder: a state dictionary in N.pt, N being the layer, with the activation function beside the tensors. */

import { basename, resolve } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import type { SaeActivation } from '../core/sae.ts';
import type { TensorFile } from '../formats/tensor-file.ts';
import { openTorchFile, type TorchFile } from '../formats/torch-file.ts';
import { contentOf, refuseUnknownTensors, type SaeContent, unsupported, withFile } from './loader.ts';
import { readWeights } from './weights.ts';

const WEIGHTS = {
  encoder: 'encoder.weight',
  encoderByWidth: false,
  encoderBias: 'latent_bias',
  decoder: 'decoder.weight',
  decoderByWidth: true,
  decoderBias: 'pre_bias',
};
/** Settings of TopK; the library's own state_dict() has them under both names. */
const TOP_K = {
  k: ['activation_state_dict.k', 'activation.k'],
  after: ['activation_state_dict.postact_fn', 'activation.postact_fn'],
};
/** Of the training: when each latent was last active, and how strongly. */
const STATISTICS = ['stats_last_nonzero', 'latents_activation_frequency', 'latents_mean_square'];

/** Whether a torch file is of this format: no other has these biases. */
export function isOpenAi({ tensors }: TensorFile): boolean {
  return tensors.has('pre_bias') && tensors.has('latent_bias');
}

export async function loadOpenAi(path: string, signal?: AbortSignal): Promise<SaeContent> {
  return withFile(openTorchFile(path), async (file) => {
    const { encoder, encoderBias, decoder, decoderBias } = WEIGHTS;
    const read = [encoder, encoderBias, decoder, decoderBias, 'activation', ...TOP_K.k, ...TOP_K.after];
    refuseUnknownTensors(file, { format: "OpenAI's sparse_autoencoder", read, unused: STATISTICS });
    const weights = await readWeights(file, WEIGHTS, signal);
    const activation = activationOf(file, weights.features);
    const hook = hookOf(path);
    return {
      format: `OpenAI ${activation.kind === 'topk' ? 'TopK' : 'ReLU'}`,
      ...contentOf(weights, undefined),
      ...(hook ? { hookName: hook, model: 'gpt2' } : {}),
      activation,
      subtractsDecoderBias: true,
      // The library has no setting for it: it normalises exactly where the activation function is TopK.
      normalization: activation.kind === 'topk' ? 'layer-norm' : 'none',
    };
  });
}

function activationOf(file: TorchFile, features: number): SaeActivation {
  const { path } = file;
  const name = file.values.get('activation') ?? 'ReLU';
  if (name === 'ReLU') return { kind: 'relu' };
  if (name !== 'TopK') throw unsupported(path, `the activation function ${name}`, 'ReLU and TopK');
  const after = settingOf(file, TOP_K.after);
  if (after !== 'ReLU') throw unsupported(path, `the function ${after} after its TopK`, 'ReLU there');
  const k = settingOf(file, TOP_K.k);
  if (typeof k === 'number' && Number.isInteger(k) && k > 0 && k <= features) return { kind: 'topk', k };
  throw new CuvetteError(
    'bad_model',
    `${path} is a top-k SAE of ${features} features, and its k is ${k ?? 'missing'}.`,
  );
}

function settingOf({ path, values }: TorchFile, names: string[]): string | number | boolean | undefined {
  const [first, ...others] = names.map((name) => values.get(name)).filter((value) => value !== undefined);
  if (others.every((other) => other === first)) return first;
  throw new CuvetteError('bad_model', `${path} has ${names.join(' and ')}, which differ: ${first} and ${others}.`);
}

const HOOKS: Record<string, string> = {
  mlp_post_act: 'mlp.hook_post',
  resid_delta_attn: 'hook_attn_out',
  resid_post_attn: 'hook_resid_mid',
  resid_delta_mlp: 'hook_mlp_out',
  resid_post_mlp: 'hook_resid_post',
};

/** As in …/gpt2-small/resid_post_mlp_v5_32k/autoencoders/8.pt. */
function hookOf(path: string): string | undefined {
  const [, location = ''] =
    /(mlp_post_act|resid_(?:delta|post)_(?:attn|mlp))[^/\\]*[/\\]autoencoders[/\\]/.exec(resolve(path)) ?? [];
  const [, layer] = /^(\d+)\.pt$/.exec(basename(path)) ?? [];
  const hook = HOOKS[location];
  return layer === undefined || hook === undefined ? undefined : `blocks.${layer}.${hook}`;
}
