/**
 * Precompiles the header <bits/stdc++.h> of a g++ in the background, because most of the time of a build is spent on it. Without it, or if it
 * is broken, builds just take longer.
 */

import { randomBytes } from 'node:crypto';
import { mkdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { withLock } from '../../file-lock.ts';
import { runCommand } from '../../run-command.ts';
import { removeStaleFiles } from '../../stale-files.ts';
import { buildKey } from './builds.ts';

/** Ends what hangs. Nobody waits for it, and on a busy machine everything else goes first. */
const TIMEOUT_MS = 60 * 60_000;
const HEADER = join('bits', 'stdc++.h.gch');
const READY = 'ready';

const running = new Map<string, Promise<void>>();
interface Making {
  signal?: AbortSignal | undefined;
  /** Steps back behind all other work of the machine. */
  isBackground?: boolean;
}

// What the compiler could not make is not tried again.
const failed = new Set<string>();

/** The folder to include it from, if it is there; else it is on its way. */
export async function findPrecompiled(
  compiler: string,
  version: string,
  flags: string[],
  cache: string,
): Promise<string | undefined> {
  const folder = await folderOf(compiler, version, flags, cache);
  if (folder === undefined) return undefined;
  if (await isReady(folder)) return folder;
  start(folder, compiler, flags).catch(() => {});
  return undefined;
}

/** Makes it, if it is not there. */
export async function precompile(
  compiler: string,
  version: string,
  flags: string[],
  cache: string,
  options: Making = {},
): Promise<void> {
  const folder = await folderOf(compiler, version, flags, cache);
  if (folder !== undefined && !(await isReady(folder))) await start(folder, compiler, flags, options);
}

function start(folder: string, compiler: string, flags: string[], options: Making = {}): Promise<void> {
  if (failed.has(folder)) return Promise.resolve();
  const making =
    running.get(folder) ??
    withLock(`${folder}.lock`, options.signal, () => make(folder, compiler, flags, options)).finally(() =>
      running.delete(folder),
    );
  running.set(folder, making);
  return making;
}

async function make(
  folder: string,
  compiler: string,
  flags: string[],
  { signal, isBackground = true }: Making,
): Promise<void> {
  if (await isReady(folder)) return;
  const fresh = `${folder}.new-${randomBytes(6).toString('hex')}`;
  await removeStaleFiles(dirname(folder), (name) => name.includes('.new-'));
  try {
    await mkdir(join(fresh, 'bits'), { recursive: true, mode: 0o755 });
    const source = join(fresh, 'everything.h');
    await writeFile(source, '#include <bits/stdc++.h>\n');
    const scratch = join(fresh, 'scratch');
    const options = { timeout: TIMEOUT_MS, scratch, isBackground, ...(signal && { signal }) };
    const { ok } = await runCommand(
      [compiler, ...flags, '-x', 'c++-header', source, '-o', join(fresh, HEADER)],
      options,
    );
    // Used once, so that one which this machine cannot load is never offered.
    const trial = ['-Winvalid-pch', '-Werror', '-I', fresh, '-x', 'c++', '-fsyntax-only', source];
    if (!ok || !(await runCommand([compiler, ...flags, ...trial], options)).ok) {
      if (!signal?.aborted) failed.add(folder);
      return;
    }
    await writeFile(join(fresh, READY), String((await stat(join(fresh, HEADER))).size));
    await rm(folder, { recursive: true, force: true });
    await rename(fresh, folder);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

/** One that was cut off would end every build with an error. */
async function isReady(folder: string): Promise<boolean> {
  try {
    const { size } = await stat(join(folder, HEADER));
    return String(size) === (await readFile(join(folder, READY), 'utf8'));
  } catch {
    return false;
  }
}

/** By what the header depends on: a compiler or a C library that was replaced has another. Only g++ has that header. */
async function folderOf(
  compiler: string,
  version: string,
  flags: string[],
  cache: string,
): Promise<string | undefined> {
  if (!version.startsWith('g++')) return undefined;
  const files = [await realpath(compiler), '/usr/include/features.h'];
  const times = await Promise.all(
    files.map((file) =>
      stat(file).then(
        ({ mtimeMs }) => String(mtimeMs),
        () => '',
      ),
    ),
  );
  return join(cache, 'cpp', buildKey([compiler, version, ...flags, ...times]).slice(0, 16));
}
