/** What can go wrong with a Cuvette service elsewhere, in words: what it refuses, what is no service, and connections that were lost. */

import * as z from 'zod';
import { CuvetteError, messageOf } from '../errors.ts';

const problemSchema = z.object({ code: z.string(), detail: z.string() });

/** Errors that mean here what they mean there. */
const codes = z.enum([
  'invalid_input',
  'forbidden',
  'too_large',
  'rate_limited',
  'storage_full',
  'unknown_session',
  'unknown_execution',
  'unknown_interpreter',
  'interpreter_failed',
  'python_missing',
  'internal',
]);

/** Whether it may be otherwise a moment later: of what the service itself refuses, it will not. */
export function isLost(error: unknown): boolean {
  return !(error instanceof CuvetteError) || error.code === 'lab_unreachable';
}

export async function refusal(response: Response, endpoint: string): Promise<CuvetteError> {
  if (response.status === 401) return unauthorized(endpoint);
  const problem = problemSchema.safeParse(await response.json().catch(() => undefined));
  if (problem.success) return errorFrom(problem.data.code, problem.data.detail, endpoint);
  return unreachable(endpoint, new Error(`it answered with status ${response.status}`));
}

export function errorFrom(code: string, message: string, endpoint: string): CuvetteError {
  const known = codes.safeParse(code);
  return known.success ? new CuvetteError(known.data, message) : unreachable(endpoint, new Error(message));
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
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return new CuvetteError(
    'lab_unreachable',
    `The Cuvette at ${endpoint} cannot be reached: ${messageOf(cause) || messageOf(error)}. See that cuvette serve runs there, and the tunnel to it; if its address has changed, call colab_attach again.`,
    { cause: error },
  );
}
