/** How this very program is called from a shell. */

import { realpathSync } from 'node:fs';
import { delimiter, join } from 'node:path';

export function shellCommand(): string {
  const self = real(process.argv[1] ?? '');
  const folders = (process.env.PATH ?? '').split(delimiter);
  const isOnPath = folders.some((folder) => real(join(folder, 'cuvette')) === self);
  return isOnPath || self === undefined ? 'cuvette' : `node ${quoted(self)}`;
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
