/** What can go wrong with a Cuvette service elsewhere, in words: what it refuses, what is no service, and connections that were lost. */

import { CuvetteError } from '../../errors.ts';
import { knownError, problemIn, reasonOf } from './problems.ts';

/** Whether it may be otherwise a moment later: of what the service itself refuses, it will not. */
export function isLost(error: unknown): boolean {
  return !(error instanceof CuvetteError) || error.code === 'lab_unreachable';
}

export async function refusal(response: Response, endpoint: string): Promise<CuvetteError> {
  if (response.status === 401) return unauthorized(endpoint);
  const problem = problemIn(await response.text().catch(() => ''));
  if (problem) return errorFrom(problem.code, problem.detail, endpoint);
  return unreachable(endpoint, new Error(`it answered with status ${response.status}`));
}

export function errorFrom(code: string, message: string, endpoint: string): CuvetteError {
  return knownError(code, message) ?? unreachable(endpoint, new Error(message));
}

export function unauthorized(endpoint: string): CuvetteError {
  return new CuvetteError(
    'unauthorized',
    `The Cuvette at ${endpoint} does not know this key. Call colab_attach with endpoint, and as token the key that it was started with (CUVETTE_API_KEY).`,
  );
}

export function notAService(endpoint: string): CuvetteError {
  return new CuvetteError(
    'lab_unreachable',
    `What is at ${endpoint} does not answer as Cuvette does. See that cuvette serve or cuvette lab serve runs there, and that the address is right; then call colab_attach again.`,
  );
}

export function unreachable(endpoint: string, error: unknown): CuvetteError {
  if (error instanceof CuvetteError) return error;
  return new CuvetteError(
    'lab_unreachable',
    `The Cuvette at ${endpoint} cannot be reached: ${reasonOf(error).why}. See that cuvette serve runs there, and the tunnel to it; if its address has changed, call colab_attach again.`,
    { cause: error },
  );
}
