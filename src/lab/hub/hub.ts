/**
 * Fetches files from the Hugging Face hub into the cache, by commit: models, and single files of SAEs and probes. A cached file is not fetched again,
 * and is used when the hub cannot be reached.
 */

import { mkdirSync, readFileSync, statfsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import { withLock } from '../../file-lock.ts';
import { writeDurably } from '../core/durable-files.ts';
import { type Copies, hasFiles, type OwnCopies, ownCopies, pythonCopies, recall } from './copies.ts';
import { downloadFile } from './download.ts';
import { askListing, type HubFile, type HubListing } from './listing.ts';
import { chooseModelFiles } from './model-files.ts';
import { isCommit, parseFileName, parseRepository, parseRevision, type Repository } from './names.ts';
import { followProgress, type HubProgress, knownSize } from './progress.ts';
import { type Hub, type HubOptions, openHub } from './request.ts';

export interface FetchOptions extends HubOptions {
  /** Cuvette's cache folder. */
  cache: string;
  /** A branch, a tag or a commit; `main` by default. */
  revision?: string;
  signal: AbortSignal;
  onProgress?(progress: HubProgress): void;
  /** Takes a sentence for the user: a cached copy is used because the hub is unreachable, or another process is downloading. */
  onNotice?(sentence: string): void;
}

/** Which files of a repository are wanted; `read` gives the text of one. */
type Choose = (names: readonly string[], read: (name: string) => Promise<string>) => Promise<string[]>;

interface Fetching {
  hub: Hub;
  repository: Repository;
  revision: string;
  choose: Choose;
  /** What is fetched goes to the first. */
  copies: [OwnCopies, Copies];
  options: FetchOptions;
  /** What to do instead, if the hub cannot be reached. */
  advice: string;
}

/** Fetches the files of a model that the lab needs, and returns their folder. */
export async function fetchModel(id: string, options: FetchOptions): Promise<string> {
  const repository = parseRepository(id);
  const choose: Choose = (names, read) => chooseModelFiles(id, names, read);
  const folder = `./${basename(id)}`;
  const advice =
    `On a machine with a network, run: hf download ${id} --local-dir ${folder} ` +
    `and bring that folder here; then give its path, as in ${folder}, instead of the id. Or use the model that ships with Cuvette: demo.`;
  return fetchFiles(repository, choose, options, advice);
}

/** Fetches one file of a repository, and returns its path. */
export async function fetchFile(id: string, file: string, options: FetchOptions): Promise<string> {
  const repository = parseRepository(id);
  parseFileName(file);
  const choose: Choose = async (names) => {
    if (names.includes(file)) return [file];
    throw new CuvetteError('unknown_file', `${id} has no file ${file}.${similar(file, names)}`);
  };
  const advice =
    `On a machine with a network, run: hf download ${id} ${file} --local-dir ./${basename(id)} ` +
    'and bring that folder here; then give the path of the file.';
  return join(await fetchFiles(repository, choose, options, advice), file);
}

async function fetchFiles(repository: Repository, choose: Choose, options: FetchOptions, advice: string) {
  const env = options.env ?? process.env;
  const revision = parseRevision(options.revision ?? 'main');
  const copies: Fetching['copies'] = [ownCopies(options.cache, repository), pythonCopies(env, repository)];
  const fetching = { hub: openHub(options), repository, revision, choose, copies, options, advice };
  const isOffline = /^(1|on|yes|true)$/i.test(env.HF_HUB_OFFLINE ?? '');
  const known = isCommit(revision) ? recall(copies[0], revision) : undefined;
  if (isOffline) return useCopy(fetching, 'HF_HUB_OFFLINE is set');
  const listing = known ?? (await askListing(fetching.hub, repository, revision, options.signal));
  if ('unreachable' in listing) {
    return useCopy(fetching, `${new URL(fetching.hub.endpoint).host} cannot be reached: ${listing.unreachable}`);
  }
  if (!known) {
    await writeDurably(copies[0].listing(listing.commit), JSON.stringify(listing));
    await writeDurably(copies[0].reference(revision), listing.commit);
  }
  return fetchListed(fetching, listing);
}

/** Downloads missing files, under a lock against other processes. */
async function fetchListed(fetching: Fetching, listing: HubListing): Promise<string> {
  const { copies, options, repository, choose } = fetching;
  const folder = copies[0].folder(listing.commit);
  const lock = `${folder}.lock`;
  const onWait = () => options.onNotice?.(`Another process is downloading ${repository.id}; waiting for it.`);
  return withLock(
    lock,
    options.signal,
    async () => {
      const names = listing.files.map((file) => file.name);
      const chosen = await choose(names, async (name) => {
        await fetchInto(fetching, listing, folder, pick(listing, [name]), undefined);
        return readFileSync(join(folder, name), 'utf8');
      });
      const files = pick(listing, chosen);
      const copy = copies.map((place) => place.folder(listing.commit)).find((place) => hasFiles(place, files));
      if (copy !== undefined) return copy;
      await fetchInto(fetching, listing, folder, files, options.onProgress);
      return folder;
    },
    onWait,
  );
}

async function fetchInto(
  { hub, repository, options }: Fetching,
  { commit }: HubListing,
  folder: string,
  files: readonly HubFile[],
  onProgress: FetchOptions['onProgress'],
): Promise<void> {
  const { signal } = options;
  mkdirSync(folder, { recursive: true });
  const missing = files.filter((file) => !hasFiles(folder, [file]));
  checkRoom(folder, repository, missing);
  const progress = followProgress(files, missing, onProgress);
  for (const file of missing) {
    const onBytes = (count: number) => progress(file, count);
    await downloadFile({ hub, repository, commit, file, path: join(folder, file.name), signal, onBytes });
  }
}

/** An earlier copy, if one is complete. */
async function useCopy({ copies, revision, choose, repository, options, advice }: Fetching, why: string) {
  for (const place of copies) {
    const listing = recall(place, revision);
    if (!listing) continue;
    const folder = place.folder(listing.commit);
    const names = listing.files.map((file) => file.name);
    const chosen = await choose(names, async (name) => readFileSync(join(folder, name), 'utf8')).catch((error) => {
      // A listing of the hub itself tells what is not in the repository; a folder only tells what is not in the folder.
      if (error instanceof CuvetteError && place.listing(listing.commit) !== undefined) throw error;
    });
    if (!chosen || !hasFiles(folder, pick(listing, chosen))) continue;
    options.onNotice?.(`${why}. The copy of ${repository.id} in ${folder} is used.`);
    return folder;
  }
  throw new CuvetteError(
    'download_failed',
    `${why}, and there is no complete copy of ${repository.id} (${revision}) on this machine. ${advice}`,
  );
}

function pick(listing: HubListing, names: readonly string[]): HubFile[] {
  return listing.files.filter((file) => names.includes(file.name));
}

function checkRoom(folder: string, repository: Repository, files: readonly HubFile[]): void {
  const { bavail, bsize } = statfsSync(folder);
  const needed = knownSize(files);
  if (needed <= bavail * bsize) return;
  const megabytes = (count: number) => `${Math.ceil(count / 1e6).toLocaleString('en')} MB`;
  throw new CuvetteError(
    'storage_full',
    `${repository.id} needs ${megabytes(needed)}, and ${folder} has room for ${megabytes(bavail * bsize)}. Make room, or set CUVETTE_HOME to a folder on a larger disk.`,
  );
}

function similar(file: string, names: readonly string[]): string {
  const last = basename(file);
  const found = names.filter((name) => basename(name) === last).slice(0, 3);
  return found.length > 0 ? ` It has ${found.join(', ')}.` : ` It has ${names.length} other files.`;
}
