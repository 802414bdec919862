/** Removes what a server that was killed has left in a file store: half-received files, and bytes that belong to no row. */

import { readdir, rm, rmdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { findProcess, isRunning } from '../process-tree.ts';

/** Between its arrival and its row, a file of another server stands without one. It takes that server moments. */
const ORPHANED_AFTER_MS = 3_600_000;

export interface StoreFolders {
  incoming: string;
  objects: string;
  /** Whether a row speaks of these bytes; undefined once nobody can tell any more. */
  isKnown(session: string, id: string): boolean | undefined;
}

/** What files are called that this process is receiving. */
export function incomingFolderName(): string {
  return `${process.pid}-${encodeURIComponent(findProcess(process.pid)?.started ?? '')}`;
}

export async function removeOrphanedFiles({ incoming, objects, isKnown }: StoreFolders): Promise<void> {
  for (const name of await namesIn(incoming)) {
    const [pid = '', ...started] = name.split('-');
    const process = { pid: Number(pid), started: decodeURIComponent(started.join('-')) };
    if (!isRunning(process)) await rm(join(incoming, name), { recursive: true, force: true });
  }
  for (const session of await namesIn(objects)) {
    for (const id of await namesIn(join(objects, session))) {
      const path = join(objects, session, id);
      if (isKnown(session, id) === false && (await isOld(path))) await rm(path, { force: true });
    }
    // Only an empty one goes.
    if (await isOld(join(objects, session))) await rmdir(join(objects, session)).catch(() => {});
  }
}

async function namesIn(folder: string): Promise<string[]> {
  return readdir(folder).catch(() => []);
}

async function isOld(path: string): Promise<boolean> {
  const found = await stat(path).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > ORPHANED_AFTER_MS;
}
