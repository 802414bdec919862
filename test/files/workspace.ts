/** A workspace, and beside it a folder that nothing may reach. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { temporaryFolder } from '../temporary-folder.ts';

export function createWorkspace() {
  const folder = temporaryFolder();
  const root = join(folder, 'workspace');
  const outside = join(folder, 'outside');
  mkdirSync(root);
  mkdirSync(outside);
  writeFileSync(join(outside, 'secret.txt'), 'secret');
  const put = (name: string, text = ''): string => {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    return path;
  };
  return { root, outside, put };
}
