/** Downloads files named `hf://org/repo#path`: probes, and SAEs with the files that belong to them. */

import { dirname, join } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import type { LabContext } from '../core/lab.ts';
import { type FetchOptions, fetchFile } from './hub.ts';
import type { HubProgress } from './progress.ts';

export interface HubFiles {
  /** The local path; undefined for a source that is not on the hub. */
  file(source: string, context: LabContext): Promise<string | undefined>;
  /** The local path of its file or folder; undefined for a source that is not on the hub. */
  sae(source: string, context: LabContext): Promise<string | undefined>;
}

/** The files of the known SAE formats; the first format that is complete counts. */
const SAE_FOLDERS = [
  ['cfg.json', 'sae_weights.safetensors'],
  ['cfg.json', 'sae.safetensors'],
  ['params.npz'],
  ['params.safetensors'],
  ['hyperparams.json', 'checkpoints/final.safetensors'],
  ['config.json', 'ae.pt'],
  ['config.json', 'sae_weights.safetensors'],
];
/** Settings that may stand beside the file of an SAE. */
const BESIDE = ['config.json', 'cfg.json'];

export function createHubFiles(cache: string): HubFiles {
  return {
    async file(source, context) {
      const place = parse(source);
      return place && fetchFile(place.repository, place.path, optionsFor(cache, context));
    },
    async sae(source, context) {
      const place = parse(source);
      if (!place) return undefined;
      const fetchOne = (path: string) => fetchFile(place.repository, path, optionsFor(cache, context));
      return /\.\w+$/.test(place.path)
        ? fetchSaeFile(place.path, fetchOne)
        : fetchSaeFolder(source, place.path, fetchOne);
    },
  };
}

type FetchOne = (path: string) => Promise<string>;

async function fetchSaeFile(path: string, fetchOne: FetchOne): Promise<string> {
  for (const name of BESIDE) await orNothing(fetchOne(join(dirname(path), name)));
  return fetchOne(path);
}

async function fetchSaeFolder(source: string, folder: string, fetchOne: FetchOne): Promise<string> {
  for (const files of SAE_FOLDERS) {
    const paths: (string | undefined)[] = [];
    for (const file of files) paths.push(await orNothing(fetchOne(join(folder, file))));
    const [path] = paths;
    if (path !== undefined && !paths.includes(undefined)) return dirname(path);
  }
  throw new CuvetteError(
    'unknown_sae',
    `${source} has no SAE of a known format. Give the path of its file after the #.`,
  );
}

/** Undefined for a file that the repository does not have. */
async function orNothing(fetching: Promise<string>): Promise<string | undefined> {
  try {
    return await fetching;
  } catch (error) {
    if (error instanceof CuvetteError && error.code === 'unknown_file') return undefined;
    throw error;
  }
}

function parse(source: string): { repository: string; path: string } | undefined {
  if (!source.startsWith('hf://')) return undefined;
  const [, repository, path] = /^hf:\/\/([^#]+)#(.+)$/.exec(source) ?? [];
  if (repository !== undefined && path !== undefined) return { repository, path };
  throw new CuvetteError('invalid_input', `${source} does not say which file. Write hf://org/repo#path.`);
}

function optionsFor(cache: string, { signal, progress }: LabContext): FetchOptions {
  return { cache, signal, onNotice: progress, onProgress: (state) => progress(downloadSentence(state)) };
}

export function downloadSentence({ file, percent, total, rate }: HubProgress): string {
  const megabytes = (bytes: number) => (bytes / 1e6).toFixed(1);
  return `Downloading ${file}: ${percent.toFixed(0)} % of ${megabytes(total)} MB, ${megabytes(rate)} MB/s`;
}
