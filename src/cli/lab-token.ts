/** The token of a lab that is served: from a file, from the environment, or a new one. */

import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { CuvetteError, messageOf } from '../errors.ts';

export interface LabToken {
  token: string;
  /** Where its reader finds it; nothing if it has to be printed. */
  source: string | undefined;
}

const VARIABLE = 'CUVETTE_LAB_TOKEN';
const FORM = /^[\x21-\x7e]{16,}$/;

export function takeToken(file: string | undefined): LabToken {
  const given = process.env[VARIABLE];
  // What is started from here has no need of it.
  delete process.env[VARIABLE];
  if (file !== undefined) return { token: fromFile(file), source: 'the content of the token file' };
  if (given === undefined || given === '') return { token: fresh(), source: undefined };
  if (FORM.test(given)) return { token: given, source: `the value of ${VARIABLE}` };
  throw new CuvetteError(
    'invalid_input',
    `${VARIABLE} is no token: 16 characters at least, without spaces. Leave it out to have one made.`,
  );
}

/** The file is written if it is not there. */
function fromFile(file: string): string {
  const token = fresh();
  try {
    writeFileSync(file, `${token}\n`, { flag: 'wx', mode: 0o600 });
    return token;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new CuvetteError('invalid_input', `The token cannot be written to ${file}: ${messageOf(error)}.`, {
        cause: error,
      });
  }
  const kept = readFileSync(file, 'utf8').trim();
  if (FORM.test(kept)) return kept;
  throw new CuvetteError(
    'invalid_input',
    `${file} has no token: 16 characters at least, without spaces. Remove the file to have one made.`,
  );
}

function fresh(): string {
  return randomBytes(32).toString('base64url');
}
