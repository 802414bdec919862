/** Loads SAELens' format, of version 6 and before: cfg.json beside sae_weights.safetensors. */

import { join } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import type { SaeActivation, SaeNormalization } from '../core/sae.ts';
import { openSafetensors } from '../formats/safetensors.ts';
import type { TensorFile } from '../formats/tensor-file.ts';
import { contentOf, readSettings, refuseUnknownTensors, type SaeContent, unsupported, withFile } from './loader.ts';
import {
  foldDecoderLengths,
  foldInputScale,
  readMatrix,
  readNumber,
  readVector,
  readWeights,
  type SaeWeights,
  scaleRows,
  type WeightNames,
} from './weights.ts';

const names = {
  model_name: z.string().nullish(),
  hook_name: z.string().nullish(),
  hook_name_out: z.string().nullish(),
};

/** Older files have other names for some of it, and names of hooks beside the rest instead of in `metadata`. */
const Settings = z.object({
  ...names,
  hook_point: z.string().nullish(),
  metadata: z.object(names).nullish(),
  architecture: z.string().default('standard'),
  activation_fn: z.string().nullish(),
  activation_fn_str: z.string().nullish(),
  activation_fn_kwargs: z.object({ k: z.number().int().positive().optional() }).nullish(),
  k: z.number().positive().nullish(),
  rescale_acts_by_decoder_norm: z.boolean().nullish(),
  apply_b_dec_to_input: z.boolean().default(true),
  finetuning_scaling_factor: z.boolean().nullish(),
  normalize_activations: z.union([z.string(), z.boolean()]).nullish(),
});

type Settings = z.infer<typeof Settings>;

export async function loadSaeLens(folder: string, signal?: AbortSignal): Promise<SaeContent> {
  const path = join(folder, 'cfg.json');
  const settings = readSettings(path, Settings);
  const shape = shapeOf(path, settings);
  return withFile(openSafetensors(join(folder, 'sae_weights.safetensors')), async (file) => {
    const names = weightNames(shape);
    const { encoder, encoderBias, decoder, decoderBias } = names;
    const read = [encoder, encoderBias, decoder, decoderBias, ...tensorsBeside(file, shape), ...FINE_TUNING];
    refuseUnknownTensors(file, { format: `SAELens ${shape.name}`, read });
    const weights = await readWeights(file, names, signal);
    foldFineTuning(file, settings, weights);
    if (settings.rescale_acts_by_decoder_norm) foldDecoderLengths(weights);
    const normalization = normalize(folder, settings, weights);
    const { metadata } = settings;
    const model = metadata?.model_name ?? settings.model_name;
    const hook = metadata?.hook_name ?? settings.hook_name ?? settings.hook_point;
    const outputHook = metadata?.hook_name_out ?? settings.hook_name_out;
    return {
      format: `SAELens ${shape.name}`,
      ...contentOf(weights, shape.isTranscoder ? (outputHook ? [outputHook] : []) : undefined),
      ...(hook ? { hookName: hook } : {}),
      ...(model ? { model } : {}),
      ...(shape.kind === 'batchtopk' && settings.k ? { expectedL0: settings.k } : {}),
      ...(shape.hasSkip ? { skip: await readMatrix(file, 'W_skip', false, signal) } : {}),
      activation: activationOf(path, file, settings, shape.kind, weights),
      subtractsDecoderBias: settings.apply_b_dec_to_input && !shape.isTranscoder,
      normalization,
    };
  });
}

interface Shape {
  /** As the file calls it. */
  name: string;
  kind: 'relu' | 'topk' | 'jumprelu' | 'batchtopk' | 'gated';
  isTranscoder: boolean;
  hasSkip: boolean;
}

const KINDS: Record<string, Shape['kind']> = {
  standard: 'relu',
  topk: 'topk',
  jumprelu: 'jumprelu',
  // Only checkpoints of a training have these; what is saved for use afterwards is a jumprelu.
  batchtopk: 'batchtopk',
  matryoshka_batchtopk: 'batchtopk',
  gated: 'gated',
  transcoder: 'relu',
  skip_transcoder: 'relu',
  jumprelu_transcoder: 'jumprelu',
  jumprelu_skip_transcoder: 'jumprelu',
};

function shapeOf(path: string, settings: Settings): Shape {
  const name = settings.architecture;
  const kind = Object.hasOwn(KINDS, name) ? KINDS[name] : undefined;
  const function_ = settings.activation_fn ?? settings.activation_fn_str ?? 'relu';
  if (kind === undefined) throw unsupported(path, `the architecture ${name}`, Object.keys(KINDS).join(', '));
  if (kind !== 'topk' && function_ !== 'relu' && function_ !== 'topk') {
    throw unsupported(path, `the activation function ${function_}`, 'relu and topk');
  }
  return {
    name,
    // Before version 6, a topk SAE was a standard one with another activation function.
    kind: kind === 'relu' && function_ === 'topk' ? 'topk' : kind,
    isTranscoder: name.endsWith('transcoder'),
    hasSkip: name.includes('skip'),
  };
}

/** Beside the weights. */
function tensorsBeside(file: TensorFile, { kind, hasSkip }: Shape): string[] {
  const ofKind = { relu: [], topk: [], jumprelu: [thresholdName(file)], batchtopk: ['topk_threshold'], gated: GATED };
  return hasSkip ? ['W_skip', ...ofKind[kind]] : ofKind[kind];
}

const GATED = ['b_gate', 'r_mag', 'b_mag'];

function weightNames(shape: Shape): WeightNames {
  return {
    encoder: 'W_enc',
    encoderByWidth: true,
    decoder: 'W_dec',
    decoderByWidth: false,
    decoderBias: 'b_dec',
    ...(shape.kind === 'gated' ? {} : { encoderBias: 'b_enc' }),
  };
}

function activationOf(
  path: string,
  file: TensorFile,
  settings: Settings,
  kind: Shape['kind'],
  { features }: SaeWeights,
): SaeActivation {
  switch (kind) {
    case 'relu':
      return { kind };
    case 'jumprelu':
      return { kind, threshold: thresholdOf(file, features) };
    case 'batchtopk':
      return { kind: 'jumprelu', threshold: new Float32Array(features).fill(readNumber(file, 'topk_threshold')) };
    case 'topk': {
      const k = settings.k ?? settings.activation_fn_kwargs?.k;
      if (k === undefined || !Number.isInteger(k) || k > features) {
        throw new CuvetteError(
          'bad_model',
          `${path} says topk, and its k is ${k ?? 'missing'}; it has ${features} features.`,
        );
      }
      return { kind, k };
    }
    case 'gated':
      return {
        kind,
        gateBias: readVector(file, 'b_gate', features),
        scale: readVector(file, 'r_mag', features).map(Math.exp),
        bias: readVector(file, 'b_mag', features),
      };
  }
}

function thresholdName(file: TensorFile): 'threshold' | 'log_threshold' {
  return !file.tensors.has('threshold') && file.tensors.has('log_threshold') ? 'log_threshold' : 'threshold';
}

function thresholdOf(file: TensorFile, features: number): Float32Array {
  const name = thresholdName(file);
  const numbers = readVector(file, name, features);
  return name === 'log_threshold' ? numbers.map(Math.exp) : numbers;
}

const FINE_TUNING = ['scaling_factor', 'finetuning_scaling_factor'];

/** Features of a fine-tuned SAE are multiplied before they are decoded. For a time all files had such factors, all of them 1. */
function foldFineTuning(file: TensorFile, settings: Settings, weights: SaeWeights): void {
  const name = FINE_TUNING.find((one) => file.tensors.has(one));
  if (name === undefined) return;
  const factors = readVector(file, name, weights.features);
  if (factors.every((factor) => Math.abs(factor - 1) < 1e-5)) return;
  if (!settings.finetuning_scaling_factor) {
    const advice = 'Set finetuning_scaling_factor in cfg.json to true if they are meant to be used.';
    throw new CuvetteError('bad_model', `${file.path} has factors in ${name}, and cfg.json does not say so. ${advice}`);
  }
  scaleRows(weights.decoder, factors);
}

function normalize(folder: string, settings: Settings, weights: SaeWeights): SaeNormalization {
  switch (settings.normalize_activations ?? 'none') {
    case 'none':
    case false:
      return 'none';
    case 'constant_norm_rescale':
      return 'constant-norm';
    case 'layer_norm':
      return 'layer-norm';
    case 'expected_average_only_in':
    case true:
      foldInputScale(weights, averageScaleOf(folder));
      return 'none';
    default:
      throw unsupported(
        join(folder, 'cfg.json'),
        `the normalisation ${settings.normalize_activations}`,
        'none, constant_norm_rescale, layer_norm and expected_average_only_in',
      );
  }
}

const Scaler = z.object({ scaling_factor: z.number().positive().nullish() });

/** The factor is the model's and the dataset's, and SAELens keeps it in a file of its own until it is folded into the weights. */
function averageScaleOf(folder: string): number {
  const path = join(folder, 'activation_scaler.json');
  const scale = readSettings(path, Scaler).scaling_factor;
  if (scale) return scale;
  throw new CuvetteError(
    'bad_model',
    `${folder} has an SAE that wants activations scaled by a factor (expected_average_only_in), and does not say which. ` +
      `Write {"scaling_factor": …} to ${path}: the square root of the width, divided by the mean norm of activations there.`,
  );
}
