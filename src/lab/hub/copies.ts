/** Finds copies of repositories on this machine: Cuvette's own cache, and that of Python's huggingface_hub. */

import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { type HubFile, type HubListing, readListing } from './listing.ts';
import { isCommit, type Repository } from './names.ts';

/** A place where commits of one repository are kept, each in its folder. */
export interface Copies {
  /** What a branch or a tag was when somebody last asked. */
  reference(revision: string): string;
  folder(commit: string): string;
  /** What has to be in a commit's folder, if that is known. */
  listing(commit: string): string | undefined;
}

export interface OwnCopies extends Copies {
  listing(commit: string): string;
}

export function ownCopies(cache: string, repository: Repository): OwnCopies {
  const root = join(cache, 'models', repository.folder);
  return {
    reference: (revision) => join(root, 'refs', encodeURIComponent(revision)),
    folder: (commit) => join(root, commit),
    listing: (commit) => join(root, `${commit}.json`),
  };
}

/** Files appear in its snapshots only when they are complete. */
export function pythonCopies(env: NodeJS.ProcessEnv, repository: Repository): Copies {
  const home = env.HF_HOME || join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'huggingface');
  const root = join(env.HF_HUB_CACHE || join(home, 'hub'), `models--${repository.folder}`);
  return {
    reference: (revision) => join(root, 'refs', revision),
    folder: (commit) => join(root, 'snapshots', commit),
    listing: () => undefined,
  };
}

/** What is known of a revision without asking the hub. */
export function recall(copies: Copies, revision: string): HubListing | undefined {
  const commit = isCommit(revision) ? revision : readReference(copies.reference(revision));
  if (commit === undefined) return undefined;
  const listing = copies.listing(commit);
  if (listing !== undefined) return readListing(listing);
  const folder = copies.folder(commit);
  if (!existsSync(folder)) return undefined;
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return { commit, files: names.map((name) => ({ name })) };
}

export function hasFiles(folder: string, files: readonly HubFile[]): boolean {
  return files.every((file) => {
    const found = statSync(join(folder, file.name), { throwIfNoEntry: false });
    return found?.isFile() === true && (file.size === undefined || found.size === file.size);
  });
}

function readReference(path: string): string | undefined {
  try {
    const commit = readFileSync(path, 'utf8').trim();
    return isCommit(commit) ? commit : undefined;
  } catch {
    return undefined;
  }
}
