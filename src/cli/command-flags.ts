/** Reads flags; a wrong one is the user's error, with the way out. */

import { type ParseArgsConfig, parseArgs } from 'node:util';
import { CuvetteError, messageOf } from '../errors.ts';

export function parseFlags<T extends ParseArgsConfig>(config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new CuvetteError('invalid_input', `${messageOf(error)}. Run: cuvette help`, { cause: error });
  }
}
