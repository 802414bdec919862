/** Reads JSON files that may not exist yet, and names what is wrong with one. A file that cannot be read is an error, never taken for empty. */

import { readFile } from 'node:fs/promises';
import * as z from 'zod';
import { CuvetteError, codeOf, messageOf } from '../../errors.ts';

export async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8');
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw new CuvetteError('folder_unusable', `${path} cannot be read: ${messageOf(error)}. Check who owns it.`, {
      cause: error,
    });
  }
}

/** Why JSON or a schema rejected content, with the name of each field that is wrong. */
export function whyInvalid(error: unknown): string {
  return error instanceof z.ZodError ? z.prettifyError(error) : messageOf(error);
}
