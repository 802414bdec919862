/** What can go wrong with a lab elsewhere, in words: what it refuses, what is no lab, and connections that were lost. */

import { CuvetteError } from '../../errors.ts';
import { knownError, problemIn, reasonOf } from './problems.ts';

/** The connection broke before the answer, or nobody was there: it may be tried again. */
export class LostConnection extends Error {
  /** Whether the call may have arrived, and so may run. */
  readonly isSent: boolean;

  constructor(why: string, isSent: boolean, cause?: unknown) {
    super(why, { cause });
    this.isSent = isSent;
  }
}

/** Of an answer that is not what was asked for. A tunnel whose other end is gone answers for it, with a status of its own. */
export async function refusal(response: Response, endpoint: string): Promise<CuvetteError | LostConnection> {
  const { status, headers } = response;
  const text = await response.text().catch(() => '');
  if (status === 401)
    return new CuvetteError(
      'unauthorized',
      `The lab at ${endpoint} wants its token, which it printed when it started. Call colab_attach with endpoint and token.`,
    );
  if (status >= 300 && status < 400)
    return notALab(endpoint, `it leads to ${headers.get('location')}, and a token must not be led elsewhere`);
  const problem = problemIn(text);
  if (problem) return errorFrom(problem.code, problem.detail, endpoint);
  if (status >= 500) return new LostConnection(`it answered with status ${status}`, true);
  return notALab(endpoint, `it answered with status ${status} and ${headers.get('content-type') ?? 'no content type'}`);
}

export function errorFrom(code: string, message: string, endpoint: string): CuvetteError {
  return knownError(code, message) ?? notALab(endpoint, message);
}

export function notALab(endpoint: string, why: string, cause?: unknown): CuvetteError {
  return new CuvetteError(
    'lab_unreachable',
    `The lab at ${endpoint} does not answer as a lab does: ${why}. See that it runs (cuvette lab serve --model MODEL), then call colab_attach again.`,
    { cause },
  );
}

/** Every try has failed. */
export function unreachable(endpoint: string, lost: LostConnection, mayRun: boolean): CuvetteError {
  const again = mayRun ? ' Asking the same again continues the call, and does not run it twice.' : '';
  return new CuvetteError(
    'lab_unreachable',
    `The lab at ${endpoint} does not answer: ${lost.message}. See that it runs there (cuvette lab serve --model MODEL), and the tunnel to it; if its address has changed, call colab_attach again.${again}`,
    { cause: lost },
  );
}

export function restarted(endpoint: string): CuvetteError {
  return new CuvetteError(
    'lab_unreachable',
    `The lab at ${endpoint} does not know this call: it was restarted since, or the call never came there. What it has on disk is still there. Call again to run it anew.`,
  );
}

/** It has run there, in part or to its end. */
export function forgotten(endpoint: string): CuvetteError {
  return new CuvetteError(
    'call_over',
    `The lab at ${endpoint} has run this call, and has its answer no more: it stops what nobody listens to for a while, and forgets what ended long ago. See what the call has left there (variables, captures, list_manifests), then call again to run it anew.`,
  );
}

/** By an error of fetch. */
export function lostBy(error: unknown): LostConnection {
  const { code, why } = reasonOf(error);
  return new LostConnection(why, !NEVER_CONNECTED.test(code), error);
}

/** No connection was made, or none that anything was said on: to a name, to a machine, or because of a certificate. */
const NEVER_CONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|EPROTO|ERR_SSL_|ERR_TLS_|CERT_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_)/;
