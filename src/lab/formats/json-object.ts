/** Reads a file that holds one JSON object. */

import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';
import { CuvetteError, messageOf } from '../../errors.ts';

/** Undefined if the file is not there. */
export function readJsonObject(path: string): Record<string, unknown> | undefined {
  if (!existsSync(path)) return undefined;
  try {
    return z.record(z.string(), z.unknown()).parse(JSON.parse(readFileSync(path, 'utf8')));
  } catch (error) {
    const reason = error instanceof z.ZodError ? 'it is not an object' : messageOf(error);
    throw new CuvetteError('bad_model', `${path} cannot be read: ${reason}. It must be JSON; fetch it again.`, {
      cause: error,
    });
  }
}
