/** Takes the token that opens the workbench page from the environment, and says where sign-ins are kept. */

import { join } from 'node:path';
import { CuvetteError } from '../errors.ts';
import { createSignIns, type SignIns } from '../surfaces/rest/sign-ins.ts';

const VARIABLE = 'CUVETTE_UI_TOKEN';
const FORM = /^[\w.~-]{16,}$/;

/** Must be called before other processes are started: they must not inherit the token. */
export function takePageToken(): string | undefined {
  const given = process.env[VARIABLE];
  delete process.env[VARIABLE];
  if (given === undefined || given === '') return undefined;
  if (FORM.test(given)) return given;
  throw new CuvetteError(
    'invalid_input',
    `${VARIABLE} is no token: 16 characters at least, of A-Z, a-z, 0-9 and .~_-. Leave it out to have one made.`,
  );
}

/** By what is served: a server that is started again for the same finds the sign-ins of the last one. */
export function openSignIns(runtime: string, served: string, token: string | undefined, ways: string): SignIns {
  return createSignIns({ file: join(runtime, 'ui', `${served}.json`), token, ways });
}
