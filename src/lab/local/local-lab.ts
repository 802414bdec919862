/** Opens a model of this machine in an engine, and answers primitives with their handlers. */

import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import { packageFile } from '../../package-root.ts';
import type { CodeRunner } from '../core/code-runner.ts';
import type { Engine } from '../core/engine.ts';
import type { Lab, LabContext } from '../core/lab.ts';
import type { Sae } from '../core/sae.ts';
import { neutralPrompts } from '../demo/datasets.ts';
import { createEmbeddedEngine } from '../engines/embedded/embedded-engine.ts';
import type { LabResources } from '../handlers/resources.ts';
import { HANDLERS } from '../handlers/table.ts';
import { fetchModel } from '../hub/hub.ts';
import { createHubFiles, downloadSentence } from '../hub/hub-files.ts';
import { openModelFolder } from '../models/open-model.ts';
import { openSae } from '../sae/open-sae.ts';
import { type LabStore, openLabStore } from '../store/store.ts';
import type { TorchChoice, TorchPlaces } from './torch-lab.ts';

export interface LocalLabOptions {
  /** `demo`, a folder, or a Hugging Face id. */
  model: string;
  /** Cuvette's data folder, and its cache. */
  data: string;
  cache: string;
  /** The torch engine, with Cuvette's folder for sockets and the environment variables of its Python. */
  torch?: TorchChoice & Pick<TorchPlaces, 'runtime' | 'env'>;
  /** What relative paths are meant from. */
  project: string;
  /** Whether callers may be others than the user of this machine: then no file is opened by a name that they give. */
  isShared?: boolean;
}

const DEMO = 'demo';
const NEUTRAL = { seed: 0, count: 24 };
/** How many SAEs stay in memory, as they are large. */
const MOST_SAES = 2;

export async function openLocalLab(options: LocalLabOptions, context: LabContext): Promise<Lab> {
  const { model } = options;
  const folder = await findModel(options, context);
  context.progress(`Opening ${model}`);
  const neutral = model === DEMO ? neutralPrompts(NEUTRAL.seed, NEUTRAL.count) : undefined;
  if (options.torch) return openTorchLab(options.torch, folder, options, neutral, context);
  const files = await openModelFolder(folder, context.signal);
  const engine = await createEmbeddedEngine({ model: files, id: model, signal: context.signal }).finally(() =>
    files.close(),
  );
  return createLab(engine, options, neutral);
}

async function openTorchLab(
  torch: NonNullable<LocalLabOptions['torch']>,
  folder: string,
  options: LocalLabOptions,
  neutral: readonly string[] | undefined,
  context: LabContext,
): Promise<Lab> {
  const { openTorchEngine } = await import('./torch-lab.ts');
  const places = { cache: options.cache, project: options.project, runtime: torch.runtime, env: torch.env };
  const engine = await openTorchEngine(torch, { id: options.model, folder }, places, context);
  await engine.showCaptures(join(storeOf(options, engine).folder, 'captures'));
  return createLab(engine, options, neutral, engine.code);
}

function storeOf({ data }: Pick<LocalLabOptions, 'data'>, engine: Engine): LabStore {
  return openLabStore(join(data, 'lab'), engine.describe());
}

/** The engine is closed with the lab. */
export function createLab(
  engine: Engine,
  places: Omit<LocalLabOptions, 'model'>,
  neutral: readonly string[] | undefined,
  code?: CodeRunner,
): Lab {
  const model = engine.describe();
  const hub = createHubFiles(places.cache);
  const findFile: LabResources['findFile'] = async (source, context) => {
    if (places.isShared) throw notForCallers(source, 'Give the probe as numbers: direction, bias and layer.');
    return (await hub.file(source, context)) ?? pathFrom(places.project, source);
  };
  const resources: LabResources = {
    engine,
    model,
    store: storeOf(places, engine),
    neutralPrompts: neutral,
    ...(code && { code }),
    findFile,
    openSae: cacheSaes(async (id, context) => {
      if (id === DEMO) return packageFile('models', 'demo', 'sae');
      if (places.isShared) throw notForCallers(id, 'The SAE demo is there for the model demo.');
      return (await hub.sae(id, context)) ?? pathFrom(places.project, id);
    }),
  };
  return {
    async call(name, args, context) {
      const handler = HANDLERS.find((one) => one.name === name);
      if (!handler) throw new Error(`There is no primitive ${name}.`);
      return handler.run(resources, args, context);
    },
    close: () => engine.close(),
  };
}

async function findModel(
  { model, cache, project }: LocalLabOptions,
  { signal, progress }: LabContext,
): Promise<string> {
  if (model === DEMO) return packageFile('models', 'demo');
  const folder = pathFrom(project, model);
  if (/^[./~]/.test(model) || existsSync(join(folder, 'config.json'))) return folder;
  if (!/^[\w.-]+(\/[\w.-]+)?$/.test(model))
    throw new CuvetteError(
      'unknown_model',
      `There is no model ${model}. Give demo, a folder that has config.json, or a Hugging Face id such as HuggingFaceTB/SmolLM2-135M.`,
    );
  return fetchModel(model, {
    cache,
    signal,
    onProgress: (state) => progress(downloadSentence(state)),
    onNotice: progress,
  });
}

/** Caches the most recently used SAEs by id. */
function cacheSaes(find: (id: string, context: LabContext) => Promise<string>): LabResources['openSae'] {
  const cache = new Map<string, Sae>();
  return async (id, context) => {
    const known = cache.get(id);
    cache.delete(id);
    const sae = known ?? (await openSae(await find(id, context), { id, signal: context.signal }));
    cache.set(id, sae);
    for (const oldest of cache.keys()) if (cache.size > MOST_SAES) cache.delete(oldest);
    return sae;
  };
}

/** Callers of a shared service must not read files of this machine, nor what its user's token opens on the hub. */
function notForCallers(source: string, instead: string): CuvetteError {
  return new CuvetteError(
    'forbidden',
    `This service opens no files for its callers, so not ${source} either. ${instead}`,
  );
}

function pathFrom(project: string, path: string): string {
  return resolve(project, path.replace(/^~(?=\/|$)/, homedir()));
}
