/** Recognises the format of an SAE by the files that are there, and loads it. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import type { HookPoint } from '../core/engine.ts';
import { parseHookPoint } from '../core/hook-points.ts';
import type { Sae } from '../core/sae.ts';
import { openTorchFile } from '../formats/torch-file.ts';
import { loadCrossLayerTranscoder, loadTranscoder } from './circuit-tracer.ts';
import { readDescriptions } from './descriptions.ts';
import { loadDictionaryLearning } from './dictionary-learning.ts';
import { loadGemmaScope } from './gemma-scope.ts';
import { loadLlamaScope } from './llama-scope.ts';
import { listNames, type SaeLoader, withFile } from './loader.ts';
import { isOpenAi, loadOpenAi } from './openai.ts';
import { loadSaeLens } from './saelens.ts';
import { loadSparsify } from './sparsify.ts';

/** Opens a file or a folder. The weights are in memory once, in whatever orientation they are stored. */
export async function openSae(path: string, options: { id: string; signal?: AbortSignal }): Promise<Sae> {
  const { load, place } = recognize(path);
  const content = await load(place, options.signal);
  const hookPoint = content.hookName === undefined ? undefined : hookPointOf(content.hookName);
  const descriptions = readDescriptions(statSync(place).isDirectory() ? place : dirname(place), content.features);
  return {
    id: options.id,
    source: path,
    ...content,
    ...(hookPoint ? { hookPoint } : {}),
    ...(descriptions ? { descriptions } : {}),
  };
}

interface Recognized {
  load: SaeLoader;
  /** What the loader wants to be given. */
  place: string;
}

/** All of these files have to be there. The first is what the loader is given, if it wants a file. */
const FOLDERS: { files: string[]; load: SaeLoader; wants: 'folder' | 'file' }[] = [
  { files: ['sae_weights.safetensors', 'cfg.json'], load: loadSaeLens, wants: 'folder' },
  { files: ['sae.safetensors', 'cfg.json'], load: loadSparsify, wants: 'folder' },
  { files: ['params.npz'], load: loadGemmaScope, wants: 'file' },
  { files: ['params.safetensors'], load: loadGemmaScope, wants: 'file' },
  { files: ['hyperparams.json', 'checkpoints/final.safetensors'], load: loadLlamaScope, wants: 'folder' },
  { files: ['sae_weights.safetensors', 'config.json'], load: loadLlamaScope, wants: 'folder' },
  { files: ['ae.pt'], load: loadTorchSae, wants: 'file' },
];

const FILES: { name: RegExp; load: SaeLoader }[] = [
  { name: /\.npz$/, load: loadGemmaScope },
  { name: /\.(pt|pth)$/, load: loadTorchSae },
  { name: /^layer_\d+\.safetensors$/, load: loadTranscoder },
  { name: /^W_(enc|dec)_\d+\.safetensors$/, load: loadCrossLayerTranscoder },
];

const SUPPORTED =
  'Cuvette reads SAELens (cfg.json and sae_weights.safetensors), sparsify (cfg.json and sae.safetensors), Gemma Scope (params.npz or params.safetensors), ' +
  'Llama Scope (hyperparams.json and checkpoints/final.safetensors, or config.json and sae_weights.safetensors), dictionary_learning (ae.pt), OpenAI (N.pt), Goodfire (one .pt), ' +
  'and transcoders of circuit-tracer (layer_N.safetensors, or W_enc_N.safetensors and W_dec_N.safetensors).';

/** Several libraries save .pt files; the tensors tell which. */
async function loadTorchSae(path: string, signal?: AbortSignal) {
  const isOfOpenAi = await withFile(openTorchFile(path), async (file) => isOpenAi(file));
  return isOfOpenAi ? loadOpenAi(path, signal) : loadDictionaryLearning(path, signal);
}

function recognize(path: string): Recognized {
  if (!existsSync(path)) {
    throw new CuvetteError('unknown_sae', `There is no file or folder ${path}. Give the path of a sparse autoencoder.`);
  }
  if (statSync(path).isDirectory()) return recognizeFolder(path);
  const file = FILES.find(({ name }) => name.test(basename(path)));
  if (file) return { load: file.load, place: path };
  // A file that is one of several was given in place of its folder.
  const folders = [dirname(path), dirname(dirname(path))];
  const found = folders.map(lookIn).find((one) => one !== undefined);
  if (found) return found;
  throw new CuvetteError('bad_model', `${path} is not recognised as a sparse autoencoder. ${SUPPORTED}`);
}

function recognizeFolder(folder: string): Recognized {
  const found = lookIn(folder);
  if (found) return found;
  const names = readdirSync(folder).sort();
  const single = names.flatMap((name) =>
    FILES.filter((file) => file.name.test(name)).map(({ load }) => ({ load, name })),
  );
  const [only] = single;
  if (only && single.length === 1) return { load: only.load, place: join(folder, only.name) };
  throw new CuvetteError(
    'bad_model',
    `${folder} is not recognised as a sparse autoencoder. ${whatIsThere(folder, names)} ${SUPPORTED}`,
  );
}

function lookIn(folder: string): Recognized | undefined {
  const format = FOLDERS.find(({ files }) => files.every((file) => existsSync(join(folder, file))));
  if (format === undefined) return undefined;
  const [first = ''] = format.files;
  return { load: format.load, place: format.wants === 'folder' ? folder : join(folder, first) };
}

function whatIsThere(folder: string, names: string[]): string {
  const inside = names.filter((name) => statSync(join(folder, name)).isDirectory() && lookIn(join(folder, name)));
  if (inside.length > 0) return `It has folders of several, so that one of them has to be given: ${listNames(inside)}.`;
  const several = names.filter((name) => FILES.some((file) => file.name.test(name)));
  if (several.length > 1) return `It has files of several, so that one of them has to be given: ${listNames(several)}.`;
  return names.length === 0 ? 'It is empty.' : `It has ${listNames(names)}.`;
}

/** Undefined for hook points that the lab does not have, such as the inputs of an MLP. */
function hookPointOf(name: string): HookPoint | undefined {
  try {
    return parseHookPoint(name);
  } catch (error) {
    if (error instanceof CuvetteError) return undefined;
    throw error;
  }
}
