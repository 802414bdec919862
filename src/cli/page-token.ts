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

/** A server that is started again at the same port finds the sign-ins of the last one. At any port that was free, there is no coming back. */
export function openSignIns(options: {
  runtime: string;
  /** What is served there. */
  what: 'service' | 'folder';
  port: number;
  wantedPort: number;
  token: string | undefined;
  ways: string;
}): SignIns {
  const { runtime, what, port, wantedPort, token, ways } = options;
  const isFound = port === wantedPort;
  return createSignIns({ ...(isFound && { file: join(runtime, 'ui', `${what}-${port}.json`) }), token, ways });
}
