/** Loads the format of EleutherAI's sparsify: cfg.json beside sae.safetensors, in a folder named after the module it was trained on. */

import { basename, dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import { CuvetteError } from '../../errors.ts';
import type { SaeActivation } from '../core/sae.ts';
import { readJsonObject } from '../formats/json-object.ts';
import { openSafetensors } from '../formats/safetensors.ts';
import { contentOf, readSettings, refuseUnknownTensors, type SaeContent, unsupported, withFile } from './loader.ts';
import { readMatrix, readWeights } from './weights.ts';

const Settings = z.object({
  activation: z.enum(['topk', 'groupmax']).default('topk'),
  k: z.number().int().positive().default(32),
  transcode: z.boolean().default(false),
  skip_connection: z.boolean().default(false),
  signed: z.boolean().default(false),
  embed_skip: z.boolean().default(false),
  gram_lookup: z.boolean().default(false),
});

export async function loadSparsify(folder: string, signal?: AbortSignal): Promise<SaeContent> {
  const path = join(folder, 'cfg.json');
  const settings = readSettings(path, Settings);
  for (const option of ['signed', 'embed_skip', 'gram_lookup'] as const) {
    if (settings[option]) throw unsupported(path, `the option ${option}`, 'sparse coders without it');
  }
  return withFile(openSafetensors(join(folder, 'sae.safetensors')), async (file) => {
    const names = { encoder: 'encoder.weight', encoderBias: 'encoder.bias', decoder: 'W_dec', decoderBias: 'b_dec' };
    const skip = settings.skip_connection ? 'W_skip' : undefined;
    refuseUnknownTensors(file, { format: `sparsify ${settings.activation}`, read: [...Object.values(names), skip] });
    const weights = await readWeights(file, { ...names, encoderByWidth: false, decoderByWidth: false }, signal);
    const { reads, writes } = hooksOf(basename(resolve(folder)), settings.transcode);
    const model = readJsonObject(join(dirname(resolve(folder)), 'config.json'))?.model;
    return {
      format: `sparsify ${settings.activation}`,
      ...contentOf(weights, writes),
      ...(reads ? { hookName: reads } : {}),
      ...(typeof model === 'string' ? { model } : {}),
      ...(skip ? { skip: await readMatrix(file, skip, false, signal) } : {}),
      activation: activationOf(path, settings, weights.features),
      subtractsDecoderBias: !settings.transcode,
      normalization: 'none',
    };
  });
}

function activationOf(path: string, { activation, k }: z.infer<typeof Settings>, features: number): SaeActivation {
  if (k > features || (activation === 'groupmax' && features % k !== 0)) {
    throw new CuvetteError(
      'bad_model',
      `${path} says ${activation} with k ${k}, which does not fit ${features} features.`,
    );
  }
  return activation === 'groupmax' ? { kind: 'groupmax', groups: k } : { kind: 'topk', k };
}

/** A sparse coder is trained on what a module gives back; a transcoder on what the module takes as well. */
function hooksOf(module: string, transcode: boolean): { reads?: string; writes?: string[] } {
  const [, layer, part] = /(?:layers|h|blocks)[._](\d+)(?:[._](.+))?$/.exec(module) ?? [];
  if (layer === undefined) return transcode ? { reads: `${module} (input)`, writes: [module] } : { reads: module };
  const output = outputOf(`blocks.${layer}`, part) ?? module;
  if (!transcode) return { reads: output };
  return { reads: part === 'mlp' ? `blocks.${layer}.mlp.hook_in` : `${module} (input)`, writes: [output] };
}

function outputOf(block: string, part: string | undefined): string | undefined {
  if (part === undefined) return `${block}.hook_resid_post`;
  if (part === 'mlp') return `${block}.hook_mlp_out`;
  if (/^(self_)?att(n|ention)$/.test(part)) return `${block}.hook_attn_out`;
  return undefined;
}
