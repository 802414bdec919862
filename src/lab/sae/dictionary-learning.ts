/** Loads dictionary_learning's format, ae.pt beside config.json, and other SAEs in a .pt file with an encoder and a decoder. */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import type { SaeActivation } from '../core/sae.ts';
import type { TensorFile } from '../formats/tensor-file.ts';
import { openTorchFile } from '../formats/torch-file.ts';
import { contentOf, readSettings, type SaeContent, unsupported, withFile } from './loader.ts';
import {
  foldDecoderLengths,
  readNumber,
  readVector,
  readWeights,
  type SaeWeights,
  scaleRows,
  shortenDecoderRows,
  type WeightNames,
} from './weights.ts';

const Settings = z.object({
  trainer: z
    .object({
      dict_class: z.string().optional(),
      k: z.number().int().positive().optional(),
      layer: z.number().int().nonnegative().optional(),
      lm_name: z.string().optional(),
      submodule_name: z.string().nullish(),
    })
    .default({}),
});

type Trainer = z.infer<typeof Settings>['trainer'];

export async function loadDictionaryLearning(path: string, signal?: AbortSignal): Promise<SaeContent> {
  const settingsPath = join(dirname(path), 'config.json');
  const { trainer } = existsSync(settingsPath) ? readSettings(settingsPath, Settings) : { trainer: {} };
  return withFile(openTorchFile(path), async (file) => {
    const kind = kindOf(file, trainer);
    const weights = await readWeights(file, weightNames(file), signal);
    const activation = activationOf(file, kind, trainer, weights);
    const hook = hookOf(trainer);
    return {
      format: `dictionary_learning ${kind}`,
      ...contentOf(weights, undefined),
      ...(hook ? { hookName: hook } : {}),
      ...(trainer.lm_name ? { model: trainer.lm_name } : {}),
      activation,
      subtractsDecoderBias: kind !== 'JumpReluAutoEncoder' && kind !== 'AutoEncoderNew',
      normalization: 'none',
    };
  });
}

type Kind = (typeof KINDS)[number];

/** Its classes. */
const KINDS = [
  'AutoEncoder',
  'AutoEncoderNew',
  'AutoEncoderTopK',
  'BatchTopKSAE',
  'MatryoshkaBatchTopKSAE',
  'GatedAutoEncoder',
  'JumpReluAutoEncoder',
] as const;

/** Files say their class in config.json; most can be told by their tensors alone. */
function kindOf(file: TensorFile, trainer: Trainer): Kind {
  const named = KINDS.find((kind) => kind === trainer.dict_class);
  if (named !== undefined) return named;
  if (trainer.dict_class !== undefined)
    throw unsupported(file.path, `the class ${trainer.dict_class}`, KINDS.join(', '));
  const has = (name: string) => file.tensors.has(name);
  if (has('r_mag')) return 'GatedAutoEncoder';
  if (has('group_sizes')) return 'MatryoshkaBatchTopKSAE';
  if (has('W_enc') && has('threshold')) return 'JumpReluAutoEncoder';
  if (has('k') && (!has('threshold') || readNumber(file, 'threshold') < 0)) return 'AutoEncoderTopK';
  if (has('k')) throw ambiguous(file);
  return has('bias') ? 'AutoEncoder' : 'AutoEncoderNew';
}

function weightNames(file: TensorFile): WeightNames {
  const first = (...names: string[]) => names.find((name) => file.tensors.has(name));
  const decoderBias = first('b_dec', 'bias', 'decoder_bias', 'decoder.bias', 'decoder_linear.bias');
  const encoderBias = first('b_enc', 'encoder.bias', 'encoder_linear.bias');
  const biases = { ...(encoderBias ? { encoderBias } : {}), ...(decoderBias ? { decoderBias } : {}) };
  if (file.tensors.has('W_enc')) {
    return { encoder: 'W_enc', encoderByWidth: true, decoder: 'W_dec', decoderByWidth: false, ...biases };
  }
  return {
    encoder: first('encoder.weight', 'encoder_linear.weight') ?? 'encoder.weight',
    encoderByWidth: false,
    decoder: first('decoder.weight', 'decoder_linear.weight') ?? 'decoder.weight',
    decoderByWidth: true,
    ...biases,
  };
}

function activationOf(file: TensorFile, kind: Kind, trainer: Trainer, weights: SaeWeights): SaeActivation {
  const { features } = weights;
  switch (kind) {
    case 'AutoEncoder':
    case 'AutoEncoderNew':
      return { kind: 'relu' };
    case 'AutoEncoderTopK':
      return { kind: 'topk', k: topOf(file, trainer, features) };
    case 'BatchTopKSAE':
    case 'MatryoshkaBatchTopKSAE':
      return { kind: 'jumprelu', threshold: readVector(file, 'threshold', features) };
    case 'JumpReluAutoEncoder': {
      const threshold = readVector(file, 'threshold', features);
      scaleRows(threshold, foldDecoderLengths(weights));
      return { kind: 'jumprelu', threshold };
    }
    case 'GatedAutoEncoder':
      return gated(file, weights);
  }
}

/** Only magnitudes are multiplied by the lengths of decoder rows, not the gate. */
function gated(file: TensorFile, weights: SaeWeights): SaeActivation {
  const { features } = weights;
  const lengths = shortenDecoderRows(weights);
  const scale = readVector(file, 'r_mag', features).map(Math.exp);
  const bias = readVector(file, 'mag_bias', features);
  scaleRows(scale, lengths);
  scaleRows(bias, lengths);
  return { kind: 'gated', gateBias: readVector(file, 'gate_bias', features), scale, bias };
}

function topOf(file: TensorFile, trainer: Trainer, features: number): number {
  const k = file.tensors.has('k') ? readNumber(file, 'k') : trainer.k;
  if (k !== undefined && Number.isInteger(k) && k > 0 && k <= features) return k;
  throw new CuvetteError(
    'bad_model',
    `${file.path} is a top-k SAE, and its k is ${k ?? 'missing'}. Give it in config.json.`,
  );
}

function hookOf({ layer, submodule_name }: Trainer): string | undefined {
  if (layer === undefined) return undefined;
  if (/mlp/.test(submodule_name ?? '')) return `blocks.${layer}.hook_mlp_out`;
  if (/att/.test(submodule_name ?? '')) return `blocks.${layer}.hook_attn_out`;
  return `blocks.${layer}.hook_resid_post`;
}

function ambiguous(file: TensorFile): CuvetteError {
  return new CuvetteError(
    'bad_model',
    `${file.path} may be of the class AutoEncoderTopK or BatchTopKSAE, and they compute other features from the same tensors. ` +
      'Put its config.json beside it, or {"trainer": {"dict_class": "BatchTopKSAE"}}.',
  );
}
