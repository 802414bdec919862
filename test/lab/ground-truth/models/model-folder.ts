/** Writes the files of a model into a folder. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function writeModelFolder(folder: string, files: Readonly<Record<string, Uint8Array | string>>): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content);
}
