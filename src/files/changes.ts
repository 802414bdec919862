/** What a call has done to its workspace: which regular files are new, changed or gone. Reads no content, follows no link. */

import { type BigIntStats, type Dirent, lstatSync, readdirSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { join } from 'node:path';

/** By name relative to the workspace: what changes whenever the file does. */
export type Snapshot = Map<string, string>;

export interface Changes {
  /** New or changed, in the order of their names. */
  written: string[];
  gone: string[];
}

/** What tools leave for themselves. */
const NOT_OUTPUT = new Set(['__pycache__', '.ipynb_checkpoints', 'node_modules', '.git']);
const OWN = /^\.cuvette-/;
const SMALL = 300;
const MOST = 20_000;

export async function takeSnapshot(workspace: string): Promise<Snapshot> {
  return takeSmallSnapshot(workspace) ?? takeLargeSnapshot(workspace);
}

/** Most workspaces are small: reading them at once takes less time than asking for it and being called back. */
function takeSmallSnapshot(workspace: string): Snapshot | undefined {
  const found: Snapshot = new Map();
  const waiting = [''];
  let seen = 0;
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    const entries = listSync(join(workspace, folder));
    seen += entries.length + 1;
    if (seen > SMALL) return undefined;
    for (const { name, isFolder } of relevant(entries, folder)) {
      if (isFolder) waiting.push(name);
      else note(found, name, lstatSync(join(workspace, name), { bigint: true, throwIfNoEntry: false }));
    }
  }
  return found;
}

async function takeLargeSnapshot(workspace: string): Promise<Snapshot> {
  const found: Snapshot = new Map();
  const waiting = [''];
  for (let folder = waiting.pop(); folder !== undefined && found.size < MOST; folder = waiting.pop()) {
    const entries = await readdir(join(workspace, folder), { withFileTypes: true }).catch(() => []);
    await Promise.all(
      relevant(entries, folder).map(async ({ name, isFolder }) => {
        if (isFolder) waiting.push(name);
        else note(found, name, await lstat(join(workspace, name), { bigint: true }).catch(() => undefined));
      }),
    );
  }
  return found;
}

function relevant(entries: Dirent[], folder: string): { name: string; isFolder: boolean }[] {
  return entries
    .filter((entry) => entry.isFile() || entry.isDirectory())
    .filter(({ name }) => !NOT_OUTPUT.has(name) && !OWN.test(name))
    .map((entry) => ({ name: folder ? `${folder}/${entry.name}` : entry.name, isFolder: entry.isDirectory() }));
}

function note(found: Snapshot, name: string, stats: BigIntStats | undefined): void {
  if (stats?.isFile()) found.set(name, `${stats.size} ${stats.mtimeNs} ${stats.ctimeNs} ${stats.ino}`);
}

export function compare(before: Snapshot, after: Snapshot): Changes {
  const written = [...after].filter(([name, mark]) => before.get(name) !== mark).map(([name]) => name);
  return { written: written.sort(), gone: [...before.keys()].filter((name) => !after.has(name)) };
}

function listSync(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // Code may have closed it, even to us.
  }
}
