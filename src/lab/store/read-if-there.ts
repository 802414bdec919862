/** Reads a file that may not be there yet. One that is there and cannot be read is an error, never taken for empty. */

import { readFile } from 'node:fs/promises';
import { CuvetteError, messageOf } from '../../errors.ts';

export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw new CuvetteError('folder_unusable', `${path} cannot be read: ${messageOf(error)}. Check who owns it.`, {
      cause: error,
    });
  }
}
