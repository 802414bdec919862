/** Loads the formats of circuit-tracer: a transcoder of one layer in layer_N.safetensors, and a cross-layer transcoder in W_enc_N and W_dec_N. */

import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import { missing } from '../core/missing.ts';
import type { SaeActivation } from '../core/sae.ts';
import { openSafetensors } from '../formats/safetensors.ts';
import type { TensorFile } from '../formats/tensor-file.ts';
import { contentOf, refuseUnknownTensors, type SaeContent, unsupported, withFile } from './loader.ts';
import { readMatrix, readNumber, readVector, readWeights } from './weights.ts';

const THRESHOLD = 'activation_function.threshold';

export async function loadTranscoder(path: string, signal?: AbortSignal): Promise<SaeContent> {
  const layer = layerOf(path);
  const settings = readSettingsBeside(path);
  return withFile(openSafetensors(path), async (file) => {
    const names = { encoder: 'W_enc', encoderBias: 'b_enc', decoder: 'W_dec', decoderBias: 'b_dec' };
    const format = 'circuit-tracer transcoder';
    const k = settings.get('activation') === 'topk' || !settings.has('activation') ? 'k' : undefined;
    refuseUnknownTensors(file, { format, read: [...Object.values(names), 'W_skip', THRESHOLD, k] });
    const weights = await readWeights(file, { ...names, encoderByWidth: false, decoderByWidth: false }, signal);
    return {
      format,
      ...contentOf(weights, [`blocks.${layer}.${settings.get('feature_output_hook') ?? 'hook_mlp_out'}`]),
      ...describe(settings, `blocks.${layer}.${settings.get('feature_input_hook') ?? 'mlp.hook_in'}`),
      ...(file.tensors.has('W_skip') ? { skip: await readMatrix(file, 'W_skip', false, signal) } : {}),
      activation: activationOf(file, settings, THRESHOLD, weights.features),
    };
  });
}

/** One layer of a cross-layer transcoder. It reads at its layer, and writes to it and to all later ones. */
export async function loadCrossLayerTranscoder(path: string, signal?: AbortSignal): Promise<SaeContent> {
  const layer = layerOf(path);
  const settings = readSettingsBeside(path);
  const folder = dirname(path);
  return withFile(openSafetensors(join(folder, `W_enc_${layer}.safetensors`)), (encoder) =>
    withFile(openSafetensors(join(folder, `W_dec_${layer}.safetensors`)), async (decoder) => {
      const both = joined(encoder, decoder);
      const format = 'circuit-tracer cross-layer transcoder';
      const read = ['W_enc', 'b_enc', 'b_dec', 'threshold', 'W_dec'].map((name) => `${name}_${layer}`);
      refuseUnknownTensors(both, { format, read });
      const weights = await readWeights(
        both,
        {
          encoder: `W_enc_${layer}`,
          encoderByWidth: false,
          encoderBias: `b_enc_${layer}`,
          decoder: `W_dec_${layer}`,
          decoderByWidth: false,
        },
        signal,
      );
      const hook = settings.get('feature_output_hook') ?? 'hook_mlp_out';
      const layers = weights.outputWidth / weights.width;
      if (!Number.isInteger(layers)) throw badDecoder(path, weights.outputWidth, weights.width);
      // Biases of later layers are those of other files: each layer's bias is added once, whoever writes to it.
      weights.decoderBias.set(readVector(encoder, `b_dec_${layer}`, weights.width));
      return {
        format,
        ...contentOf(
          weights,
          Array.from({ length: layers }, (_, i) => `blocks.${layer + i}.${hook}`),
        ),
        ...describe(settings, `blocks.${layer}.${settings.get('feature_input_hook') ?? 'hook_resid_mid'}`),
        activation: activationOf(encoder, settings, `threshold_${layer}`, weights.features),
      };
    }),
  );
}

function describe(settings: Map<string, string>, hookName: string) {
  const model = settings.get('model_name');
  return {
    hookName,
    ...(model ? { model } : {}),
    subtractsDecoderBias: false,
    normalization: 'none' as const,
  };
}

function activationOf(
  file: TensorFile,
  settings: Map<string, string>,
  threshold: string,
  features: number,
): SaeActivation {
  if (file.tensors.has(threshold)) {
    const thresholds = readVector(file, threshold, features);
    // It has no ReLU beside them.
    if (thresholds.some((one) => one < 0)) throw unsupported(file.path, 'thresholds below 0', 'those from 0 on');
    return { kind: 'jumprelu', threshold: thresholds };
  }
  const name = settings.get('activation') ?? (file.tensors.has('k') ? 'topk' : 'relu');
  if (name === 'relu') return { kind: 'relu' };
  if (name !== 'topk') throw unsupported(file.path, `the activation function ${name}`, 'relu, topk and jump_relu');
  const k = file.tensors.has('k') ? readNumber(file, 'k') : Number(settings.get('k'));
  if (Number.isInteger(k) && k > 0 && k <= features) return { kind: 'topk', k };
  throw new CuvetteError(
    'bad_model',
    `${file.path} is a top-k transcoder without a k. Give it in config.yaml beside it, as k: 128.`,
  );
}

function layerOf(path: string): number {
  const [, layer = missing('layer in the name of', path)] = /_(\d+)\.safetensors$/.exec(basename(path)) ?? [];
  return Number(layer);
}

/** Of config.yaml, only lines of the form `name: value`, which is all that is asked for. */
function readSettingsBeside(path: string): Map<string, string> {
  const settings = join(dirname(path), 'config.yaml');
  if (!existsSync(settings)) return new Map();
  const lines = readFileSync(settings, 'utf8').matchAll(/^(\w+):[ \t]*["']?([^\s"'#]+)/gm);
  return new Map(Array.from(lines, ([, name = '', value = '']) => [name, value]));
}

function joined(first: TensorFile, second: TensorFile): TensorFile {
  return {
    path: first.path,
    tensors: new Map([...first.tensors, ...second.tensors]),
    into: (name, target, options) => (first.tensors.has(name) ? first : second).into(name, target, options),
    close() {},
  };
}

function badDecoder(path: string, outputWidth: number, width: number): CuvetteError {
  return new CuvetteError(
    'bad_model',
    `${path} reads ${width} numbers and writes ${outputWidth}, which is no whole number of layers.`,
  );
}
