/** Loads Gemma Scope's formats: params.npz of the first release, params.safetensors of the second. Their hook points are mostly in the names of folders. */

import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import * as z from 'zod';
import { openNpz } from '../formats/npz.ts';
import { openSafetensors } from '../formats/safetensors.ts';
import type { TensorFile } from '../formats/tensor-file.ts';
import { contentOf, readSettings, refuseUnknownTensors, type SaeContent, withFile } from './loader.ts';
import { readMatrix, readVector, readWeights, scaleAll } from './weights.ts';

const SKIP = 'affine_skip_connection';

export async function loadGemmaScope(path: string, signal?: AbortSignal): Promise<SaeContent> {
  const file = path.endsWith('.npz') ? openNpz(path) : openSafetensors(path);
  return withFile(file, async () => {
    // The first release writes W_enc, or w_enc in some files; the second w_enc.
    const named = (name: string) => (file.tensors.has(name) ? name : name.replace(/^w_/, 'W_'));
    const format = path.endsWith('.npz') ? 'Gemma Scope' : 'Gemma Scope 2';
    const [encoder, decoder] = [named('w_enc'), named('w_dec')];
    refuseUnknownTensors(file, { format, read: [encoder, 'b_enc', decoder, 'b_dec', 'threshold', SKIP] });
    const biases = { encoderBias: 'b_enc', decoderBias: 'b_dec' };
    const weights = await readWeights(
      file,
      { encoder, encoderByWidth: true, decoder, decoderByWidth: false, ...biases },
      signal,
    );
    const origin = originOf(path);
    if (origin.isOfEmbedding) {
      // It was trained on embeddings as they stand in the model's file, which the model multiplies by this.
      scaleAll(weights.encoder, 1 / Math.sqrt(weights.width));
      scaleAll(weights.decoder, Math.sqrt(weights.width));
    }
    const skip = await readSkip(file, signal);
    return {
      format,
      ...contentOf(weights, origin.writes),
      ...(origin.reads ? { hookName: origin.reads } : {}),
      ...(origin.model ? { model: origin.model } : {}),
      ...(origin.expectedL0 ? { expectedL0: origin.expectedL0 } : {}),
      ...(skip ? { skip } : {}),
      activation: { kind: 'jumprelu', threshold: readVector(file, 'threshold', weights.features) },
      subtractsDecoderBias: false,
      normalization: 'none',
    };
  });
}

/** Multiplied from the right with a row of activations; SAELens 6 takes it the other way round, which reconstructs far worse. */
async function readSkip(file: TensorFile, signal?: AbortSignal): Promise<Float32Array | undefined> {
  return file.tensors.has(SKIP) ? readMatrix(file, SKIP, true, signal) : undefined;
}

interface Origin {
  reads?: string;
  /** Of a transcoder. */
  writes?: string[];
  model?: string;
  expectedL0?: number;
  isOfEmbedding: boolean;
}

/** As in …/gemma-scope-2b-pt-res/layer_20/width_16k/average_l0_71/params.npz, or …/gemma-scope-2-4b-it/resid_post/layer_22_width_16k_l0_medium/params.safetensors. */
function originOf(path: string): Origin {
  const full = resolve(path);
  // What is above the release's own folder is the user's, and may be called anything.
  const text = full.slice(Math.max(0, full.lastIndexOf('gemma-scope')));
  const [, release, size, kind] = /gemma-scope(-2)?-(\d+[bm])-(pt|it)/.exec(text) ?? [];
  const settings = readNeighbour(full);
  const model = settings.model_name ?? (size && kind ? modelOf(release !== undefined, size, kind) : undefined);
  const layer = /layer_(\d+)/.exec(text)?.[1] ?? /layers\.(\d+)/.exec(settings.hf_hook_point_in ?? '')?.[1];
  const isOfEmbedding = /[/\\]embedding[/\\]/.test(text);
  const l0 = /average_l0_(\d+)/.exec(text)?.[1] ?? settings.l0;
  const expected = l0 === undefined ? {} : { expectedL0: Number(l0) };
  return { ...(model ? { model } : {}), ...expected, isOfEmbedding, ...hooksOf(text, layer, isOfEmbedding) };
}

function hooksOf(path: string, layer: string | undefined, isOfEmbedding: boolean): Pick<Origin, 'reads' | 'writes'> {
  if (isOfEmbedding) return { reads: 'hook_embed' };
  if (layer === undefined) return {};
  const block = `blocks.${layer}`;
  if (/transcoder/.test(path)) return { reads: `${block}.ln2.hook_normalized`, writes: [`${block}.hook_mlp_out`] };
  if (/-(pt|it)-mlp|mlp_out/.test(path)) return { reads: `${block}.hook_mlp_out` };
  if (/-(pt|it)-att/.test(path)) return { reads: `${block}.attn.hook_z` };
  if (/attn_out/.test(path)) return { reads: `${block}.hook_attn_out` };
  if (/-(pt|it)-res|resid_post/.test(path)) return { reads: `${block}.hook_resid_post` };
  return {};
}

function modelOf(isSecond: boolean, size: string, kind: string): string {
  if (isSecond) return `google/gemma-3-${size}-${kind}`;
  return `google/gemma-2-${size}${kind === 'it' ? '-it' : ''}`;
}

const Neighbour = z.object({
  model_name: z.string().optional(),
  hf_hook_point_in: z.string().optional(),
  l0: z.number().positive().optional(),
});

function readNeighbour(path: string): z.infer<typeof Neighbour> {
  const neighbour = join(dirname(path), 'config.json');
  return existsSync(neighbour) ? readSettings(neighbour, Neighbour) : {};
}
