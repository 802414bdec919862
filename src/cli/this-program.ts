/** Tells how a shell calls this program, and waits for the signal that ends it. */

import { realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Returns `cuvette` where that is this program on PATH, else the command with its path. */
export function shellCommand(): string {
  const self = real(process.argv[1] ?? '');
  const folders = (process.env.PATH ?? '').split(delimiter);
  const isOnPath = folders.some((folder) => real(join(folder, 'cuvette')) === self);
  return isOnPath || self === undefined ? 'cuvette' : `node ${quoted(self)}`;
}

/** Resolves to the name of the first signal that asks this process to end. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => resolve(signal));
  });
}

function quoted(path: string): string {
  return /^[\w./@%+,:-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

function real(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}
