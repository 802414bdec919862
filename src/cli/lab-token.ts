/** Takes the token of a served lab from a file or the environment, or makes a new one. */

import { randomBytes } from 'node:crypto';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { CuvetteError, messageOf } from '../errors.ts';

export interface LabToken {
  token: string;
  /** Where the operator finds it; undefined if it has to be printed. */
  source: string | undefined;
  /** Shown to the operator before it is used. */
  warning?: string;
}

const VARIABLE = 'CUVETTE_LAB_TOKEN';
/** The bits of a file's mode by which its group or others may read or write. */
const OTHERS = 0o066;
const FORM = /^[\x21-\x7e]{16,}$/;

export function takeToken(file: string | undefined): LabToken {
  const given = process.env[VARIABLE];
  // Child processes must not inherit it.
  delete process.env[VARIABLE];
  if (file !== undefined) return { ...fromFile(file), source: 'the content of the token file' };
  if (given === undefined || given === '') return { token: fresh(), source: undefined };
  if (FORM.test(given)) return { token: given, source: `the value of ${VARIABLE}` };
  throw new CuvetteError(
    'invalid_input',
    `${VARIABLE} is no token: 16 characters at least, without spaces. Leave it out to have one made.`,
  );
}

/** Reads the token from the file, which is written if it does not exist. */
function fromFile(file: string): Omit<LabToken, 'source'> {
  const token = fresh();
  try {
    writeFileSync(file, `${token}\n`, { flag: 'wx', mode: 0o600 });
    return { token };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new CuvetteError('invalid_input', `The token cannot be written to ${file}: ${messageOf(error)}.`, {
        cause: error,
      });
  }
  const { text, mode } = read(file);
  const kept = text.trim();
  if (FORM.test(kept)) return { token: kept, ...((mode & OTHERS) !== 0 && { warning: readByOthers(file) }) };
  throw new CuvetteError(
    'invalid_input',
    `${file} has no token: 16 characters at least, without spaces. Remove the file to have one made.`,
  );
}

function read(file: string): { text: string; mode: number } {
  try {
    return { text: readFileSync(file, 'utf8'), mode: statSync(file).mode };
  } catch (error) {
    throw new CuvetteError(
      'invalid_input',
      `The token cannot be read from ${file}: ${messageOf(error)}. Give a file of your own, or one that is not there yet.`,
      { cause: error },
    );
  }
}

function readByOthers(file: string): string {
  return `Other users of this machine can read or change the token in ${file}, and so use the lab. Run: chmod 600 ${file}`;
}

function fresh(): string {
  return randomBytes(32).toString('base64url');
}
