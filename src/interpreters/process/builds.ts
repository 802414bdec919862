/**
 * Caches built programs by what they were made from, for all sessions and servers, with LRU eviction: `builds/KEY/program`. A program goes
 * in and out as a copy, so that whoever runs one can never change the cached one.
 */

import { createHash, randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { copyFile, mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { pathOfHandle } from '../../files/folder-handle.ts';
import { openRegularFile } from '../../files/open-untrusted.ts';
import type { ProgramPlan, ProgramStep, Source } from './language.ts';

const LIMIT = 2 * 1024 ** 3;
const BLOCK = 4096;
/** Other servers keep builds in the same folder: how much is in it is counted anew after so many of one's own. */
const RECOUNT_AFTER = 200;
const ABANDONED_AFTER_MS = 60 * 60 * 1000;
/** Characters. What a larger source was made into is not kept: it takes longer to look up than it is worth. */
export const LARGEST_SOURCE = 1024 ** 2;
/** What every build is named, in the run's folder and where it is kept. */
export const PROGRAM = 'program';

/**
 * Runs the program that is kept for these parts; else builds it, runs it, and keeps it.
 * Without parts, nobody knows all that it is made from, and it is not kept.
 */
export async function planBuild(
  source: Source,
  parts: string[] | undefined,
  build: Omit<ProgramStep, 'kind'>,
  isUnchanged: () => Promise<boolean> = async () => true,
): Promise<ProgramPlan> {
  const program = join(source.program.folder, PROGRAM);
  const run: ProgramStep = { kind: 'run', argv: [join(source.program.seen, PROGRAM), ...source.args] };
  const plan: ProgramPlan = { steps: [{ kind: 'build', ...build }, run], own: [] };
  if (!parts || source.code.length > LARGEST_SOURCE) return plan;
  const key = buildKey([...parts, source.code]);
  const builds = buildsIn(source.cache);
  if (await builds.find(key, program)) return { steps: [run], own: [] };
  return {
    ...plan,
    async built() {
      if (await isUnchanged()) await builds.keep(key, program);
    },
  };
}

export interface Builds {
  /** Puts the kept program there and says so; false if there is none. */
  find(key: string, target: string): Promise<boolean>;
  keep(key: string, program: string): Promise<void>;
}

/** The same parts make the same program. */
export function buildKey(parts: string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([process.platform, process.arch, ...parts]))
    .digest('hex');
}

const open = new Map<string, Builds>();

function buildsIn(cache: string): Builds {
  const builds = open.get(cache) ?? openBuilds(join(cache, 'builds'));
  open.set(cache, builds);
  return builds;
}

export function openBuilds(folder: string, limit = LIMIT): Builds {
  let size: number | undefined;
  let sinceCount = 0;

  return {
    async find(key, target) {
      const entry = join(folder, key);
      try {
        await copyFile(join(entry, PROGRAM), target, constants.COPYFILE_FICLONE);
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return false;
        throw error;
      }
      const now = new Date();
      await utimes(entry, now, now).catch(() => {}); // It may have been removed since.
      return true;
    },

    async keep(key, program) {
      const made = await openRegularFile(program);
      if (!made) return;
      const fresh = join(folder, `.new-${randomBytes(8).toString('hex')}`);
      try {
        await mkdir(fresh, { recursive: true, mode: 0o700 });
        const from = process.platform === 'linux' ? pathOfHandle(made) : program;
        await copyFile(from, join(fresh, PROGRAM), constants.COPYFILE_FICLONE);
        const added = rounded((await stat(join(fresh, PROGRAM))).size);
        await rename(fresh, join(folder, key));
        await bound(added);
      } catch {
        // Another run has kept the same, or there is no room: the program runs all the same.
        await rm(fresh, { recursive: true, force: true });
      } finally {
        await made.close();
      }
    },
  };

  async function bound(added: number): Promise<void> {
    sinceCount += 1;
    size = size === undefined || sinceCount > RECOUNT_AFTER ? undefined : size + added;
    if (size !== undefined && size <= limit) return;
    sinceCount = 0;
    const entries = await readEntries(folder);
    size = entries.reduce((sum, entry) => sum + entry.size, 0);
    if (size <= limit) return;
    // More than needed goes, so that not every build from now on has to count.
    for (const entry of entries.sort((a, b) => a.used - b.used)) {
      if (size <= limit * 0.9) break;
      await rm(join(folder, entry.name), { recursive: true, force: true });
      size -= entry.size;
    }
  }
}

async function readEntries(folder: string): Promise<{ name: string; size: number; used: number }[]> {
  const entries: { name: string; size: number; used: number }[] = [];
  for (const name of await readdir(folder)) {
    const path = join(folder, name);
    try {
      const used = (await stat(path)).mtimeMs;
      if (!name.startsWith('.new-')) {
        entries.push({ name, used, size: rounded((await stat(join(path, PROGRAM))).size) });
      } else if (Date.now() - used > ABANDONED_AFTER_MS) {
        await rm(path, { recursive: true, force: true });
      }
    } catch {} // It was removed meanwhile.
  }
  return entries;
}

function rounded(size: number): number {
  return Math.ceil(size / BLOCK) * BLOCK;
}
