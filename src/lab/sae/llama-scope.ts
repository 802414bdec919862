/**
 * Loads Llama Scope's formats, those of OpenMOSS' Language-Model-SAEs: hyperparams.json beside checkpoints/final.safetensors, and the newer
 * config.json beside sae_weights.safetensors. Features are computed as that library does, and not as SAELens does, which leaves lengths of decoder rows out.
 */

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import type { SaeActivation } from '../core/sae.ts';
import { openSafetensors } from '../formats/safetensors.ts';
import type { TensorFile } from '../formats/tensor-file.ts';
import { contentOf, readSettings, refuseUnknownTensors, type SaeContent, unsupported, withFile } from './loader.ts';
import {
  foldDecoderLengths,
  readNumber,
  readVector,
  readWeights,
  rowLengths,
  type SaeWeights,
  scaleAll,
  type WeightNames,
} from './weights.ts';

const Settings = z.object({
  sae_type: z.string().default('sae'),
  d_model: z.number().int().positive(),
  act_fn: z.string(),
  top_k: z.number().int().positive().optional(),
  jump_relu_threshold: z.number().optional(),
  norm_activation: z.enum(['dataset-wise', 'token-wise', 'batch-wise', 'inference']).default('dataset-wise'),
  dataset_average_activation_norm: z.object({ in: z.number().positive(), out: z.number().positive() }).nullish(),
  sparsity_include_decoder_norm: z.boolean().default(true),
  apply_decoder_bias_to_pre_encoder: z.boolean().default(false),
  use_glu_encoder: z.boolean().default(false),
  use_decoder_bias: z.boolean().optional(),
  hook_point_in: z.string(),
  hook_point_out: z.string(),
  model_name: z.string().optional(),
});

type Settings = z.infer<typeof Settings>;

export async function loadLlamaScope(folder: string, signal?: AbortSignal): Promise<SaeContent> {
  const isFirst = existsSync(join(folder, 'hyperparams.json'));
  const path = join(folder, isFirst ? 'hyperparams.json' : 'config.json');
  const settings = readSettings(path, Settings);
  refuseOthers(path, settings);
  const weightsPath = join(folder, isFirst ? 'checkpoints/final.safetensors' : 'sae_weights.safetensors');
  return withFile(openSafetensors(weightsPath), async (file) => {
    const names = weightNames(file, settings);
    const norms = [settings.hook_point_in, settings.hook_point_out].map(normName);
    const threshold = !isFirst && settings.act_fn === 'jumprelu' ? thresholdName(file) : undefined;
    const read = [names.encoder, names.encoderBias, names.decoder, names.decoderBias, threshold, ...norms];
    refuseUnknownTensors(file, { format: `Llama Scope ${settings.act_fn}`, read });
    const weights = await readWeights(file, names, signal);
    const scales = scalesOf(path, file, settings);
    const activation = isFirst
      ? foldFirst(path, settings, weights, scales)
      : foldSecond(path, file, settings, weights, scales);
    const writes = settings.hook_point_out === settings.hook_point_in ? undefined : [settings.hook_point_out];
    return {
      format: `Llama Scope ${settings.act_fn}`,
      ...contentOf(weights, writes),
      hookName: settings.hook_point_in,
      ...(settings.model_name ? { model: settings.model_name } : {}),
      activation,
      subtractsDecoderBias: settings.apply_decoder_bias_to_pre_encoder,
      normalization: settings.norm_activation === 'token-wise' ? 'constant-norm' : 'none',
    };
  });
}

/** How many times longer activations are made before they are encoded, and what is decoded is. */
interface Scales {
  input: number;
  output: number;
}

/**
 * Of the first release, the threshold is of what is left once scales are folded into the weights and decoder rows are made 1 long: of features
 * in the units of activations as they are.
 */
function foldFirst(path: string, settings: Settings, weights: SaeWeights, scales: Scales): SaeActivation {
  scaleAll(weights.encoderBias, 1 / scales.input);
  scaleAll(weights.decoder, scales.input / scales.output);
  scaleAll(weights.decoderBias, 1 / scales.output);
  if (settings.sparsity_include_decoder_norm) foldDecoderLengths(weights);
  if (settings.act_fn === 'relu') return { kind: 'relu' };
  if (settings.act_fn === 'topk' && !settings.jump_relu_threshold)
    return { kind: 'topk', k: topOf(path, settings, weights) };
  if (settings.jump_relu_threshold === undefined)
    throw new CuvetteError('bad_model', `${path} says ${settings.act_fn}, and jump_relu_threshold is missing.`);
  return { kind: 'jumprelu', threshold: new Float32Array(weights.features).fill(settings.jump_relu_threshold) };
}

/** Later, features are those of scaled activations, and each has a threshold of its own. Only to pass it is a feature multiplied by the length of its row. */
function foldSecond(
  path: string,
  file: TensorFile,
  settings: Settings,
  weights: SaeWeights,
  scales: Scales,
): SaeActivation {
  const lengths = rowLengths(weights.decoder, weights.features);
  scaleAll(weights.encoder, scales.input);
  scaleAll(weights.decoder, 1 / scales.output);
  scaleAll(weights.decoderBias, 1 / scales.output);
  if (settings.act_fn === 'relu') return { kind: 'relu' };
  if (settings.act_fn === 'topk') {
    // The largest are chosen after that multiplication, which is therefore left in.
    if (settings.sparsity_include_decoder_norm) foldDecoderLengths(weights);
    return { kind: 'topk', k: topOf(path, settings, weights) };
  }
  const threshold = readVector(file, thresholdName(file), weights.features).map(Math.exp);
  if (settings.sparsity_include_decoder_norm) {
    const lengthOf = (feature: number) => lengths[feature] ?? missing('decoder length of feature', feature);
    threshold.forEach((value, feature) => {
      threshold[feature] = value / (lengthOf(feature) || 1);
    });
  }
  return { kind: 'jumprelu', threshold };
}

function thresholdName(file: TensorFile): string {
  const name = 'log_jumprelu_threshold';
  return file.tensors.has(name) ? name : `activation_function.${name}`;
}

function topOf(path: string, settings: Settings, { features }: SaeWeights): number {
  if (settings.top_k !== undefined && settings.top_k <= features) return settings.top_k;
  throw new CuvetteError('bad_model', `${path} says topk, and top_k is ${settings.top_k ?? 'missing'}.`);
}

function scalesOf(path: string, file: TensorFile, settings: Settings): Scales {
  if (settings.norm_activation !== 'dataset-wise') return { input: 1, output: 1 };
  const norms = settings.dataset_average_activation_norm ?? normsOf(file, settings);
  if (!norms) {
    throw new CuvetteError(
      'bad_model',
      `${path} says norm_activation dataset-wise, and dataset_average_activation_norm is missing.`,
    );
  }
  return { input: Math.sqrt(settings.d_model) / norms.in, output: Math.sqrt(settings.d_model) / norms.out };
}

/** Newer files keep them as tensors, one for each hook point. */
function normsOf(file: TensorFile, settings: Settings): { in: number; out: number } | undefined {
  const [input, output] = [normName(settings.hook_point_in), normName(settings.hook_point_out)];
  if (!file.tensors.has(input) || !file.tensors.has(output)) return undefined;
  return { in: readNumber(file, input), out: readNumber(file, output) };
}

function normName(hook: string): string {
  return `dataset_average_activation_norm.${hook}`;
}

/** The newest files are named after the letters of papers, and have the encoder the other way round. */
function weightNames(file: TensorFile, settings: Settings): WeightNames {
  const optional = (name: string) => (settings.use_decoder_bias || file.tensors.has(name) ? { decoderBias: name } : {});
  if (file.tensors.has('W_E')) {
    return {
      encoder: 'W_E',
      encoderByWidth: true,
      encoderBias: 'b_E',
      decoder: 'W_D',
      decoderByWidth: false,
      ...optional('b_D'),
    };
  }
  return {
    encoder: 'encoder.weight',
    encoderByWidth: false,
    encoderBias: 'encoder.bias',
    decoder: 'decoder.weight',
    decoderByWidth: true,
    ...optional('decoder.bias'),
  };
}

function refuseOthers(path: string, settings: Settings): void {
  if (settings.sae_type !== 'sae') throw unsupported(path, `the kind ${settings.sae_type}`, 'sae');
  if (settings.use_glu_encoder) throw unsupported(path, 'a GLU encoder', 'linear encoders');
  if (settings.norm_activation === 'batch-wise')
    throw unsupported(path, 'norms of batches', 'dataset-wise and token-wise');
  if (!['relu', 'jumprelu', 'topk'].includes(settings.act_fn)) {
    throw unsupported(path, `the activation function ${settings.act_fn}`, 'relu, jumprelu and topk');
  }
}
