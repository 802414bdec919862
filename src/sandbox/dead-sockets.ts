/** Removes the folders of sockets whose processes were killed before they could do it. */

import { readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** One that was made just now may not listen yet. */
const YOUNG_MS = 60_000;

/** Removes the folders below one in which nobody listens; `seen` is that folder as those who listen call it. */
export function removeDeadSockets(folder: string, seen: string): void {
  const listening = listeners();
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (listening.has(join(seen, name, 'sock')) || isYoung(path)) continue;
    rmSync(path, { recursive: true, force: true });
  }
}

function isYoung(path: string): boolean {
  try {
    return Date.now() - statSync(path).mtimeMs < YOUNG_MS;
  } catch {
    return true; // Somebody has just removed it.
  }
}

/** By the paths that they were given, in whatever root. */
function listeners(): Set<string> {
  const lines = readFileSync('/proc/net/unix', 'utf8').split('\n');
  return new Set(lines.map((line) => line.slice(line.indexOf('/'))));
}
