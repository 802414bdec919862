/** Answers every error as problem details (RFC 9457), with our error code in the two fields that clients read. */

import { STATUS_CODES } from 'node:http';
import type { Context, ErrorHandler, NotFoundHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import type { ZodError } from 'zod';
import { CuvetteError, type ErrorCode } from '../../errors.ts';
import type { Logger } from '../../log.ts';
import { retryAfterOf } from '../../sessions/admission.ts';
import { executionInTheWay } from '../../sessions/busy.ts';
import type { RestEnv } from '../caller.ts';
import { hidePathSecret } from './redaction.ts';

/** The HTTP surface adds `not_found`, for a path that does not exist, to the table of errors. */
type ProblemCode = ErrorCode | 'not_found';

interface Problem {
  status: number;
  code: ProblemCode;
  detail: string;
  retryAfter?: number | undefined;
  /** The execution that is in the way. */
  execution?: number | undefined;
}

const INSIDE: Problem = {
  status: 500,
  code: 'internal',
  detail: "Something went wrong inside; the server's log has the details.",
};

/** A person or a model reads no more. */
const MOST_ISSUES = 5;

export function onError(log: Logger, pathSecret?: string): ErrorHandler<RestEnv> {
  return (error, c) => {
    const { status } = describe(error);
    const isGone = c.req.raw.signal.aborted;
    log[status < 500 || isGone ? 'debug' : 'error'](
      { err: error, method: c.req.method, path: hidePathSecret(c.req.path, pathSecret), status },
      'request failed',
    );
    return problem(error);
  };
}

export function problem(error: unknown): Response {
  return answer(describe(error));
}

/** Describes an error for an answer whose status cannot tell it. */
export function explain(error: unknown): { code: string; sentence: string } {
  const { code, detail } = describe(error);
  return { code, sentence: detail };
}

export const notFound: NotFoundHandler<RestEnv> = (c) =>
  answer({
    status: 404,
    code: 'not_found',
    detail: `There is no ${c.req.method} ${hidePathSecret(c.req.path)} here. GET / lists what there is.`,
  });

/** Answers a request that does not fit its schema; given to OpenAPIHono as `defaultHook`. */
export function refuseInvalid(
  result: { target: string } & ({ success: true } | { success: false; error: ZodError }),
  c: Context,
): Response | undefined {
  if (result.success) return undefined;
  if (result.target === 'json' && !/json/i.test(c.req.header('content-type') ?? '')) {
    return problem(
      new CuvetteError(
        'invalid_input',
        'The body must be JSON. Send it with the header Content-Type: application/json.',
      ),
    );
  }
  const { issues } = result.error;
  const sentences = issues
    .slice(0, MOST_ISSUES)
    .map(({ path, message }) => (path.length > 0 ? `${path.join('.')}: ${message}` : message));
  const isEntity = issues.some(({ path }) => path.at(-1) === 'entity_id');
  return problem(
    new CuvetteError(
      isEntity ? 'invalid_entity' : 'invalid_input',
      `The request's ${result.target} is wrong: ${sentences.join('; ')}.`,
    ),
  );
}

function describe(error: unknown): Problem {
  if (error instanceof CuvetteError && error.code !== 'internal')
    return {
      status: error.status,
      code: error.code,
      detail: error.message,
      retryAfter: retryAfterOf(error),
      execution: executionInTheWay(error),
    };
  if (error instanceof HTTPException && error.status < 500)
    return { status: error.status, code: codeOf(error.status), detail: sentenceOf(error) };
  return INSIDE;
}

function answer({ status, code, detail, retryAfter, execution }: Problem): Response {
  const body = {
    type: 'about:blank',
    title: STATUS_CODES[status] ?? 'Error',
    status,
    detail,
    error: code,
    code,
    ...(retryAfter !== undefined && { retry_after_seconds: retryAfter }),
    ...(execution !== undefined && { execution }),
  };
  const headers = new Headers({ 'content-type': 'application/problem+json' });
  if (retryAfter !== undefined) headers.set('retry-after', String(retryAfter));
  if (status === 401) headers.set('www-authenticate', 'Bearer');
  return new Response(JSON.stringify(body), { status, headers });
}

function codeOf(status: number): ProblemCode {
  const codes: Record<number, ProblemCode> = {
    401: 'unauthorized',
    403: 'forbidden',
    404: 'not_found',
    413: 'too_large',
    429: 'rate_limited',
  };
  return codes[status] ?? 'invalid_input';
}

function sentenceOf({ status, message }: HTTPException): string {
  if (message.startsWith('Malformed JSON'))
    return 'The body of the request is not JSON. Check quotes, commas and braces.';
  if (status === 415) return 'The body has a Content-Type that is not read here. For JSON, send application/json.';
  return message ? `${message.replace(/\.$/, '')}.` : `${STATUS_CODES[status] ?? 'The request is wrong'}.`;
}
