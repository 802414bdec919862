/**
 * Answers a call in a language that is not here as an execution that failed, with 200: LibreChat shows its model the stderr of an
 * execution, and of an error status either nothing or the whole address, with the secret in it.
 */

import { nanoid } from 'nanoid';
import { CuvetteError } from '../../errors.ts';
import { BUILTIN } from '../../sessions/interpreter-catalog.ts';
import type { SessionChoice, SharedSessions } from '../../sessions/shared-sessions.ts';
import type { ExecAnswer } from './exec-answer.ts';
import { chooseSession, type ExecBody } from './exec-request.ts';
import type { Principal } from './principal.ts';
import type { Versions } from './versions.ts';

/** What a shell exits with when there is no such command. */
const NOT_FOUND = 127;
const ID = /^[A-Za-z0-9_-]{21}$/;

/** Throws the error again if it is about anything but the language. */
export async function refusalOf(
  error: unknown,
  call: Pick<ExecBody, 'lang' | 'session_id' | 'entity_id' | 'runtime_session_hint'>,
  principal: Principal,
  { shared, versions }: { shared: SharedSessions; versions: Versions },
): Promise<ExecAnswer & { stderr: string }> {
  if (!(error instanceof CuvetteError) || !(error.code === 'unknown_language' || error.code === 'runtime_missing'))
    throw error;
  const installed = (await versions.all()).filter(({ missing }) => missing.length === 0).map(({ lang }) => lang);
  const message = `${error.message} Languages that are here: ${installed.join(', ')}.`;
  const stderr = `${message}\n`;
  return {
    session_id: sessionOf(chooseSession(call, BUILTIN), principal.id, shared),
    stdout: '',
    stderr,
    files: [],
    run: {
      stdout: '',
      stderr,
      output: stderr,
      code: NOT_FOUND,
      signal: null,
      status: 'RE',
      reason: error.code.replaceAll('_', '-'),
      message,
      memory: null,
      cpu_time: null,
      wall_time: null,
    },
    language: call.lang,
    version: '',
  };
}

/** The session that the call would have run in; a client may go on with it. */
function sessionOf({ alias, id }: SessionChoice, owner: string, shared: SharedSessions): string {
  if (alias !== undefined) return shared.idOf(owner, alias);
  return id && ID.test(id) && shared.mayUse(owner, id) ? id : nanoid();
}
