/**
 * Loads dictionary_learning's format, ae.pt beside config.json, and Goodfire's, which is one .pt file.
 *
 * Releases of the library differ in whether features are multiplied by the norms of decoder rows. Reconstructions are the same; the sizes of features
 * are not. What wrote config.json tells the release, and the file's own counts.
 */

import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import type { SaeActivation } from '../core/sae.ts';
import type { TensorFile } from '../formats/tensor-file.ts';
import { openTorchFile } from '../formats/torch-file.ts';
import {
  contentOf,
  listNames,
  readSettings,
  refuseUnknownTensors,
  type SaeContent,
  unsupported,
  withFile,
} from './loader.ts';
import {
  foldDecoderLengths,
  readNumber,
  readVector,
  readWeights,
  rowLengths,
  type SaeWeights,
  scaleRows,
  shortenDecoderRows,
  type WeightNames,
} from './weights.ts';

const Settings = z.object({
  trainer: z
    .object({
      dict_class: z.string().optional(),
      trainer_class: z.string().optional(),
      sparsity_warmup_steps: z.number().nullish(),
      k: z.number().int().positive().optional(),
      target_l0: z.number().positive().nullish(),
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
    const { names, also, unused } = KINDS[kind];
    const format = kind === 'Goodfire' ? kind : `dictionary_learning ${kind}`;
    const read = [names.encoder, names.encoderBias, names.decoder, names.decoderBias, ...also];
    refuseUnknownTensors(file, { format, read, unused });
    const weights = await readWeights(file, names, signal);
    const release = releaseOf(kind, trainer, weights);
    const activation = activationOf(file, kind, trainer, weights, release.multiplies);
    const hook = hookOf(trainer);
    const expectedL0 = file.tensors.has('k') ? readNumber(file, 'k') : trainer.target_l0;
    return {
      format: release.name === undefined ? format : `${format} ${release.name}`,
      ...contentOf(weights, undefined),
      ...(hook ? { hookName: hook } : {}),
      ...(trainer.lm_name ? { model: trainer.lm_name } : {}),
      ...(expectedL0 ? { expectedL0 } : {}),
      ...(release.notes.length > 0 ? { notes: release.notes } : {}),
      activation,
      subtractsDecoderBias: !['JumpReluAutoEncoder', 'AutoEncoderNew', 'Goodfire'].includes(kind),
      normalization: 'none',
    };
  });
}

interface Format {
  names: WeightNames;
  /** Beside the weights. */
  also: string[];
  /** That encode() does not use. */
  unused: string[];
}

/** Its classes, and what their state dictionaries have. */
const KINDS = {
  AutoEncoder: linear({ encoderBias: 'encoder.bias', decoderBias: 'bias' }),
  AutoEncoderNew: linear({ encoderBias: 'encoder.bias', decoderBias: 'decoder.bias' }),
  AutoEncoderTopK: linear({ encoderBias: 'encoder.bias', decoderBias: 'b_dec' }, ['k'], ['threshold']),
  BatchTopKSAE: linear({ encoderBias: 'encoder.bias', decoderBias: 'b_dec' }, ['threshold', 'k']),
  // Its groups matter in the training alone, unless some are switched off, which no file says.
  MatryoshkaBatchTopKSAE: matrices(['threshold', 'k'], ['group_sizes']),
  GatedAutoEncoder: linear({ decoderBias: 'decoder_bias' }, ['r_mag', 'gate_bias', 'mag_bias']),
  JumpReluAutoEncoder: matrices(['threshold'], []),
  Goodfire: {
    names: {
      encoder: 'encoder_linear.weight',
      encoderByWidth: false,
      encoderBias: 'encoder_linear.bias',
      decoder: 'decoder_linear.weight',
      decoderByWidth: true,
      decoderBias: 'decoder_linear.bias',
    },
    also: [],
    unused: [],
  },
} satisfies Record<string, Format>;

type Kind = keyof typeof KINDS;

function linear(
  biases: { encoderBias?: string; decoderBias: string },
  also: string[] = [],
  unused: string[] = [],
): Format {
  const weights = { encoder: 'encoder.weight', encoderByWidth: false, decoder: 'decoder.weight', decoderByWidth: true };
  return { names: { ...weights, ...biases }, also, unused };
}

function matrices(also: string[], unused: string[]): Format {
  const weights = { encoder: 'W_enc', encoderByWidth: true, decoder: 'W_dec', decoderByWidth: false };
  return { names: { ...weights, encoderBias: 'b_enc', decoderBias: 'b_dec' }, also, unused };
}

/** Files say their class in config.json; most can be told by their tensors alone. */
function kindOf(file: TensorFile, trainer: Trainer): Kind {
  const named = kinds().find((kind) => kind === trainer.dict_class);
  if (named !== undefined) return named;
  if (trainer.dict_class !== undefined)
    throw unsupported(file.path, `the class ${trainer.dict_class}`, kinds().join(', '));
  const has = (name: string) => file.tensors.has(name);
  if (has('encoder_linear.weight')) return 'Goodfire';
  if (has('r_mag')) return 'GatedAutoEncoder';
  if (has('group_sizes')) return 'MatryoshkaBatchTopKSAE';
  if (has('W_enc') && has('threshold')) return 'JumpReluAutoEncoder';
  if (has('k') && (!has('threshold') || readNumber(file, 'threshold') < 0)) return 'AutoEncoderTopK';
  if (has('k')) throw ambiguous(file);
  if (has('encoder.weight') && has('bias')) return 'AutoEncoder';
  if (has('encoder.weight') && has('decoder.bias')) return 'AutoEncoderNew';
  throw unrecognised(file);
}

function kinds(): Kind[] {
  return Object.keys(KINDS).filter((name): name is Kind => Object.hasOwn(KINDS, name));
}

interface Release {
  /** For people; absent where all releases agree. */
  name?: string;
  /** Whether features are multiplied by the norms of their decoder rows. */
  multiplies: boolean;
  notes: string[];
}

/** What the releases do: on opening a file in 0.1.0, and in encode() before. */
const MULTIPLIES: Partial<Record<Kind, { '0.1.0': boolean; 'of 2024': boolean }>> = {
  AutoEncoder: { '0.1.0': true, 'of 2024': false },
  GatedAutoEncoder: { '0.1.0': false, 'of 2024': true },
  JumpReluAutoEncoder: { '0.1.0': false, 'of 2024': true },
};

/** Decoder rows of norm 1, to within this, make no difference. */
const UNIT = 1e-3;

function releaseOf(kind: Kind, trainer: Trainer, weights: SaeWeights): Release {
  const rules = MULTIPLIES[kind];
  const lengths = rowLengths(weights.decoder, weights.features);
  if (rules === undefined || lengths.every((length) => Math.abs(length - 1) < UNIT))
    return { multiplies: false, notes: [] };
  const { trainer_class, sparsity_warmup_steps } = trainer;
  if (trainer_class !== undefined) {
    // Trainers of 0.1.0 all write this setting, if only as null; those before knew no warm-up of the sparsity.
    const name = sparsity_warmup_steps === undefined ? 'of 2024' : '0.1.0';
    return { name, multiplies: rules[name], notes: [] };
  }
  const range = `${Math.min(...lengths).toFixed(2)} to ${Math.max(...lengths).toFixed(2)}`;
  const [does, did] = [rules['0.1.0'], rules['of 2024']].map((one) => (one ? 'multiplies' : 'does not multiply'));
  return {
    name: '0.1.0',
    multiplies: rules['0.1.0'],
    notes: [
      `The file does not say which release of dictionary_learning wrote it, and was read as of 0.1.0, which ${does} features by the norms of their decoder rows (${range} here). ` +
        `One of 2024 ${did}. Only the sizes of features differ; config.json beside it, as the library writes it, decides.`,
    ],
  };
}

function activationOf(
  file: TensorFile,
  kind: Kind,
  trainer: Trainer,
  weights: SaeWeights,
  multiplies: boolean,
): SaeActivation {
  const { features } = weights;
  switch (kind) {
    case 'AutoEncoder':
      if (multiplies) foldDecoderLengths(weights);
      return { kind: 'relu' };
    case 'AutoEncoderNew':
    case 'Goodfire':
      return { kind: 'relu' };
    case 'AutoEncoderTopK':
      return { kind: 'topk', k: topOf(file, trainer, features) };
    case 'BatchTopKSAE':
    case 'MatryoshkaBatchTopKSAE':
      return { kind: 'jumprelu', threshold: readVector(file, 'threshold', features) };
    case 'JumpReluAutoEncoder': {
      const threshold = readVector(file, 'threshold', features);
      if (multiplies) scaleRows(threshold, foldDecoderLengths(weights));
      return { kind: 'jumprelu', threshold };
    }
    case 'GatedAutoEncoder':
      return gated(file, weights, multiplies);
  }
}

/** Only magnitudes are multiplied by the lengths of decoder rows, not the gate. */
function gated(file: TensorFile, weights: SaeWeights, multiplies: boolean): SaeActivation {
  const { features } = weights;
  const scale = readVector(file, 'r_mag', features).map(Math.exp);
  const bias = readVector(file, 'mag_bias', features);
  if (multiplies) {
    const lengths = shortenDecoderRows(weights);
    scaleRows(scale, lengths);
    scaleRows(bias, lengths);
  }
  return { kind: 'gated', gateBias: readVector(file, 'gate_bias', features), scale, bias };
}

/** Of the file and of config.json, which must not differ: the library refuses that too. */
function topOf(file: TensorFile, trainer: Trainer, features: number): number {
  const k = file.tensors.has('k') ? readNumber(file, 'k') : trainer.k;
  if (k !== undefined && trainer.k !== undefined && k !== trainer.k) {
    throw new CuvetteError(
      'bad_model',
      `${file.path} says that its k is ${k}, and config.json beside it ${trainer.k}.`,
    );
  }
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

function unrecognised(file: TensorFile): CuvetteError {
  return new CuvetteError(
    'bad_model',
    `${file.path} is of no class of dictionary_learning, nor OpenAI's or Goodfire's SAE: it has ${listNames([...file.tensors.keys()])}. ` +
      "Convert it to SAELens' format, where cfg.json says how features are computed.",
  );
}
