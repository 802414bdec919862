/** SessionQueue what can go wrong with a remote Cuvette into errors that say what to do: what it refuses, what is no Cuvette, and connections that were lost. */

import * as z from 'zod';
import { CuvetteError, isErrorCode, messageOf } from '../../errors.ts';

/** What is at an address: a lab, or a service that runs code alone. */
export interface Remote {
  endpoint: string;
  kind: 'lab' | 'service';
}

/** The connection broke before the answer, or nobody was there: it may be tried again. */
export class LostConnection extends Error {
  /** Whether the call may have arrived, and so may run. */
  readonly isSent: boolean;

  constructor(why: string, isSent: boolean, cause?: unknown) {
    super(why, { cause });
    this.isSent = isSent;
  }
}

const WORDS = {
  lab: {
    name: 'lab',
    like: 'a lab',
    command: 'cuvette lab serve --model MODEL',
    unreachable: 'does not answer',
    unauthorized: 'wants its token, which it printed when it started. Call colab_attach with endpoint and token.',
    left: 'variables, captures, list_manifests',
  },
  service: {
    name: 'Cuvette',
    like: 'Cuvette',
    command: 'cuvette serve',
    unreachable: 'cannot be reached',
    unauthorized:
      'does not know this key. Call colab_attach with endpoint, and as token the key that it was started with (CUVETTE_API_KEY).',
    left: 'list_vars, files',
  },
} as const;

const problemSchema = z.object({ code: z.string(), detail: z.string() });

/** Of an answer that is not what was asked for. A tunnel whose other end is gone answers for it, with a status of its own. */
export async function refusal(response: Response, remote: Remote): Promise<CuvetteError | LostConnection> {
  const { status, headers } = response;
  const text = await response.text().catch(() => '');
  if (status === 401) return unauthorized(remote);
  if (status >= 300 && status < 400)
    return notCuvette(
      remote,
      `it leads to ${headers.get('location')}, and a token must not be sent to another address`,
    );
  const problem = problemIn(text);
  if (problem) return errorFrom(problem.code, problem.detail, remote);
  if (status >= 500) return new LostConnection(`it answered with status ${status}`, true);
  return notCuvette(
    remote,
    `it answered with status ${status} and ${headers.get('content-type') ?? 'no content type'}`,
  );
}

/** An error that the remote has told by its code. */
export function errorFrom(code: string, message: string, remote: Remote): CuvetteError {
  // That one says what is here to be reached, and is not the remote's to say.
  const isKnown = isErrorCode(code) && code !== 'lab_unreachable';
  return isKnown ? new CuvetteError(code, message) : notCuvette(remote, message);
}

export function unauthorized({ endpoint, kind }: Remote): CuvetteError {
  return new CuvetteError('unauthorized', `The ${WORDS[kind].name} at ${endpoint} ${WORDS[kind].unauthorized}`);
}

export function notCuvette({ endpoint, kind }: Remote, why: string, cause?: unknown): CuvetteError {
  const { name, like, command } = WORDS[kind];
  return new CuvetteError(
    'lab_unreachable',
    `The ${name} at ${endpoint} does not answer as ${like} does: ${why}. See that it runs (${command}) and that the address is right, then call colab_attach again.`,
    { cause },
  );
}

/** Every try has failed. */
export function unreachable({ endpoint, kind }: Remote, lost: LostConnection, mayRun: boolean): CuvetteError {
  const { name, command, unreachable: verb } = WORDS[kind];
  const again = mayRun
    ? ' The call may have run there, or still run. Asking the same again continues the call, and does not run it twice.'
    : '';
  return new CuvetteError(
    'lab_unreachable',
    `The ${name} at ${endpoint} ${verb}: ${lost.message}. See that ${command} runs there, and the tunnel to it; if its address has changed, call colab_attach again.${again}`,
    { cause: lost },
  );
}

export function restarted({ endpoint, kind }: Remote): CuvetteError {
  const { name, left } = WORDS[kind];
  return new CuvetteError(
    'lab_unreachable',
    `The ${name} at ${endpoint} does not know this call: it was restarted since, or the call never came there. What it has on disk is still there. See whether the call may have run (${left}). Call again to run it anew.`,
  );
}

/** It has run there, in part or to its end. */
export function forgotten({ endpoint, kind }: Remote): CuvetteError {
  const { name, left } = WORDS[kind];
  return new CuvetteError(
    'call_over',
    `The ${name} at ${endpoint} has run this call, and has its answer no more: it stops what nobody listens to for a while, and forgets what ended long ago. See what the call has left there (${left}), then call again to run it anew.`,
  );
}

export function lostMessage({ kind }: Remote): string {
  return `The connection to the ${WORDS[kind].name} was lost; trying again.`;
}

/** By an error of fetch, which has the reason in its cause. */
export function lostBy(error: unknown): LostConnection {
  if (error instanceof LostConnection) return error;
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  const why = (cause instanceof Error && cause.message) || code || messageOf(error);
  return new LostConnection(why, !NEVER_CONNECTED.test(code), error);
}

/** No connection was made, or none that anything was said on: to a name, to a machine, or because of a certificate. */
const NEVER_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|EPROTO|ERR_SSL_|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;

/** Nothing, if the text is no problem of ours. */
function problemIn(text: string): z.infer<typeof problemSchema> | undefined {
  try {
    return problemSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}
