/** Removes temporary files that a crash has left behind, by their name and age. */

import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** Milliseconds after which nobody is at work on it any more. */
const STALE_AFTER_MS = 24 * 3_600_000;

/** Removes it from a folder, by its name and age. What cannot be removed stays. */
export async function removeStaleFiles(folder: string, isBegun: (name: string) => boolean): Promise<void> {
  const names = await readdir(folder).catch(() => []);
  for (const path of names.filter(isBegun).map((name) => join(folder, name))) {
    const found = await stat(path).catch(() => undefined); // Another process may have finished it just now.
    if (found && Date.now() - found.mtimeMs > STALE_AFTER_MS)
      await rm(path, { recursive: true, force: true }).catch(() => {});
  }
}
