/** Compares snapshots of a workspace: which regular files are new, changed or gone. It reads no content and follows no link. */

import { type BigIntStats, type Dirent, lstatSync, opendirSync } from 'node:fs';
import { lstat, readdir } from 'node:fs/promises';
import { type FolderHandleSync, openFolder, openFolderSync } from './folder-handle.ts';
import { inBatches } from './in-batches.ts';

/** By name relative to the workspace: what changes whenever the file does. */
export type Snapshot = Map<string, string>;

export interface WorkspaceChanges {
  /** New or changed, in the order of their names. */
  written: string[];
  gone: string[];
}

/** What tools leave for themselves. */
const NOT_OUTPUT = new Set(['__pycache__', '.ipynb_checkpoints', 'node_modules', '.git']);
const OWN = /^\.cuvette-/;
const SMALL = 300;
const MOST = 20_000;
/** Each level costs a descriptor while what is below it is read. */
const DEEPEST = 100;

export async function takeSnapshot(workspace: string): Promise<Snapshot> {
  return takeSmallSnapshot(workspace) ?? takeLargeSnapshot(workspace);
}

/** Most workspaces are small: reading them at once takes less time than asking for it and being called back. */
function takeSmallSnapshot(workspace: string): Snapshot | undefined {
  const found: Snapshot = new Map();
  let room = SMALL;
  const read = (held: FolderHandleSync, folder: Folder): void => {
    const entries = firstEntries(held.path, room);
    room -= entries.length + 1;
    for (const { last, name, isFolder } of relevant(entries, folder)) {
      if (room < 0) return;
      if (isFolder) enter(held.entry(last), { name, depth: folder.depth + 1 });
      else note(found, name, lstatSync(held.entry(last), { bigint: true, throwIfNoEntry: false }));
    }
  };
  const enter = (path: string, folder: Folder): void => {
    try {
      const held = openFolderSync(path);
      try {
        read(held, folder);
      } finally {
        held.close();
      }
    } catch {} // Code may have closed it, even to us, or put something else in its place.
  };
  enter(workspace, WHOLE);
  return room < 0 ? undefined : found;
}

/** All entries of a folder, or one more than there is room for. */
function firstEntries(path: string, room: number): Dirent[] {
  const folder = opendirSync(path, { bufferSize: SMALL });
  try {
    const entries: Dirent[] = [];
    for (let entry = folder.readSync(); entry && entries.length <= room; entry = folder.readSync()) entries.push(entry);
    return entries;
  } finally {
    folder.closeSync();
  }
}

async function takeLargeSnapshot(workspace: string): Promise<Snapshot> {
  const found: Snapshot = new Map();
  const enter = async (path: string, folder: Folder): Promise<void> => {
    const held = await openFolder(path, []).catch(() => undefined);
    if (!held) return;
    const listed = await readdir(held.path, { withFileTypes: true }).catch(() => []);
    const entries = relevant(listed, folder);
    const files = entries.filter(({ isFolder }) => !isFolder);
    await inBatches(files, async ({ last, name }) => {
      note(found, name, await lstat(held.entry(last), { bigint: true }).catch(() => undefined));
    });
    for (const { last, name, isFolder } of entries) {
      if (isFolder && found.size < MOST) await enter(held.entry(last), { name, depth: folder.depth + 1 });
    }
    await held.close();
  };
  await enter(workspace, WHOLE);
  return found;
}

interface Folder {
  /** Relative to the workspace. */
  name: string;
  depth: number;
}

const WHOLE: Folder = { name: '', depth: 0 };

function relevant(entries: Dirent[], { name, depth }: Folder): { last: string; name: string; isFolder: boolean }[] {
  return entries
    .filter((entry) => entry.isFile() || (entry.isDirectory() && depth < DEEPEST))
    .filter((entry) => !NOT_OUTPUT.has(entry.name) && !OWN.test(entry.name))
    .map((entry) => ({
      last: entry.name,
      name: name ? `${name}/${entry.name}` : entry.name,
      isFolder: entry.isDirectory(),
    }));
}

function note(found: Snapshot, name: string, stats: BigIntStats | undefined): void {
  if (stats?.isFile()) found.set(name, `${stats.size} ${stats.mtimeNs} ${stats.ctimeNs} ${stats.ino}`);
}

export function compareSnapshots(before: Snapshot, after: Snapshot): WorkspaceChanges {
  const written = [...after].filter(([name, mark]) => before.get(name) !== mark).map(([name]) => name);
  return { written: written.sort(), gone: [...before.keys()].filter((name) => !after.has(name)) };
}
