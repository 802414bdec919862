/** What a Cuvette elsewhere, lab or service, says is wrong: as it comes over HTTP, and as the error that it is here. */

import * as z from 'zod';
import { CuvetteError, messageOf } from '../../errors.ts';

const problemSchema = z.object({ code: z.string(), detail: z.string() });

/** Errors that mean here what they mean there. */
const codes = z.enum([
  'invalid_input',
  'unauthorized',
  'forbidden',
  'too_large',
  'rate_limited',
  'storage_full',
  'bad_model',
  'unknown_model',
  'unknown_capture',
  'unknown_probe',
  'unknown_sae',
  'unknown_file',
  'unknown_call',
  'call_over',
  'unknown_session',
  'unknown_execution',
  'unknown_interpreter',
  'interpreter_failed',
  'runtime_missing',
  'python_missing',
  'python_too_old',
  'lab_changed',
  'download_failed',
  'internal',
]);

/** Nothing, if the text is no problem of ours. */
export function problemIn(text: string): z.infer<typeof problemSchema> | undefined {
  try {
    return problemSchema.parse(JSON.parse(text));
  } catch {
    return undefined;
  }
}

/** Nothing, if the code means nothing here. */
export function knownError(code: string, message: string): CuvetteError | undefined {
  const known = codes.safeParse(code);
  return known.success ? new CuvetteError(known.data, message) : undefined;
}

/** Of an error of fetch, which has the reason in its cause. */
export function reasonOf(error: unknown): { code: string; why: string } {
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  return { code, why: (cause instanceof Error && cause.message) || code || messageOf(error) };
}
