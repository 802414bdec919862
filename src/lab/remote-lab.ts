/** A lab that is served elsewhere, reached over HTTP with its token. The answer comes as lines of JSON, so that progress is told on the way. */

import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import * as z from 'zod';
import { CuvetteError, messageOf } from '../errors.ts';
import type { Output } from '../interpreters/interpreter.ts';
import { isLoopback } from '../loopback.ts';
import type { Lab } from './lab.ts';
import { ROUTED } from './primitives/table.ts';

/** What the server of a lab tells while a call is answered: at last, the answer or an error. */
const eventSchema = z.object({
  progress: z.string().optional(),
  output: z.record(z.string(), z.unknown()).optional(),
  answer: z.record(z.string(), z.unknown()).optional(),
  error: z.object({ code: z.string(), message: z.string() }).optional(),
});

export const EVENTS = 'application/x-ndjson';

const problemSchema = z.object({ code: z.string(), detail: z.string() });

/** Errors that mean here what they mean there. */
const codes = z.enum([
  'invalid_input',
  'unauthorized',
  'forbidden',
  'too_large',
  'storage_full',
  'bad_model',
  'unknown_model',
  'unknown_capture',
  'unknown_probe',
  'unknown_sae',
  'unknown_file',
  'download_failed',
  'internal',
]);

export function createRemoteLab({ endpoint, token }: { endpoint: string; token: string | undefined }): Lab {
  const base = parseEndpoint(endpoint);

  async function send(name: string, args: Record<string, unknown>, signal: AbortSignal): Promise<Response> {
    const primitive = ROUTED.find((one) => one.name === name);
    if (!primitive) throw new Error(`There is no primitive ${name}.`);
    const { method, path } = primitive.route;
    const url = new URL(`${base}${path}`);
    if (method === 'GET') for (const [key, value] of Object.entries(args)) url.searchParams.set(key, String(value));
    return fetch(url, {
      method,
      headers: {
        accept: EVENTS,
        ...(token && { authorization: `Bearer ${token}` }),
        ...(method === 'POST' && { 'content-type': 'application/json' }),
      },
      ...(method === 'POST' && { body: JSON.stringify(args) }),
      // A token must not be led elsewhere.
      redirect: 'error',
      signal,
    });
  }

  return {
    async call(name, args, { signal, progress, output }) {
      try {
        const response = await send(name, args, signal);
        if (!response.ok || !response.body) throw await refusal(response, endpoint);
        for await (const event of eventsOf(response.body)) {
          if (event.progress !== undefined) progress(event.progress);
          if (event.output) output?.(event.output as unknown as Output);
          if (event.error) throw asError(event.error.code, event.error.message, endpoint);
          if (event.answer) return event.answer;
        }
        throw new Error('it ended before its answer');
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof CuvetteError) throw error;
        throw unreachable(endpoint, reasonOf(error), error);
      }
    },
    close: async () => {},
  };
}

/** Without a slash at its end. A token that goes over a network in the clear is anybody's. */
export function parseEndpoint(endpoint: string): string {
  const url = new URL(endpoint);
  if (url.protocol === 'http:' && !isLoopback(url.hostname.replace(/^\[(.*)\]$/, '$1')))
    throw new CuvetteError(
      'invalid_input',
      `${endpoint} is not encrypted, so that others could read the token. Use https, or a tunnel that ends on this machine: ssh -L 8787:127.0.0.1:8787 HOST`,
    );
  if (url.username || url.password || url.search || url.hash)
    throw new CuvetteError('invalid_input', `Give the address alone, as in https://host:8787, and the token as token.`);
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`;
}

async function* eventsOf(body: NonNullable<Response['body']>): AsyncGenerator<z.infer<typeof eventSchema>> {
  const lines = createInterface({
    input: Readable.fromWeb(body as ReadableStream),
    crlfDelay: Number.POSITIVE_INFINITY,
  });
  for await (const line of lines) if (line.trim() !== '') yield eventSchema.parse(JSON.parse(line));
}

async function refusal(response: Response, endpoint: string): Promise<CuvetteError> {
  if (response.status === 401)
    return new CuvetteError(
      'unauthorized',
      `The lab at ${endpoint} wants its token, which it printed when it started. Call colab_attach with endpoint and token.`,
    );
  const problem = problemSchema.safeParse(await response.json().catch(() => undefined));
  if (problem.success) return asError(problem.data.code, problem.data.detail, endpoint);
  return unreachable(endpoint, `it answered with status ${response.status}`);
}

function asError(code: string, message: string, endpoint: string): CuvetteError {
  const known = codes.safeParse(code);
  return known.success ? new CuvetteError(known.data, message) : unreachable(endpoint, message);
}

function unreachable(endpoint: string, why: string, cause?: unknown): CuvetteError {
  return new CuvetteError(
    'lab_unreachable',
    `The lab at ${endpoint} does not answer as a lab does: ${why}. See that it runs (cuvette lab serve --model MODEL), then call colab_attach again.`,
    { cause },
  );
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  return cause instanceof Error ? cause.message || messageOf(error) : messageOf(error);
}
