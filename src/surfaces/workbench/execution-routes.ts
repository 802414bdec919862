/** Routes of executions: a page of the history, one of them, its text by offset or by a word, a part of an output, running code and stopping it. */

import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import { findText, readPage } from '../../sessions/paging.ts';
import { pagedExecution } from '../../sessions/seen-session.ts';
import { originOf, type RestEnv } from '../caller.ts';
import { refuseInvalid } from '../rest/problem.ts';
import { executionInfo, executionPage, isBase64, toExecutionInfo, toExecutionPage } from './execution-info.ts';
import { idIn, seenSession } from './session-info.ts';
import { jsonAnswer, sessionParam } from './session-routes.ts';
import { takeUpInterrupted } from './take-up.ts';
import type { WorkbenchOptions } from './workbench.ts';

const LONGEST_TIMEOUT = 86_400;
const MOST_OF_TEXT = 1 << 20;
const MOST_ARGUMENTS = 1000;
const number = z.coerce.number().int().positive();
const executionParam = sessionParam.extend({ number });

const SHOWN =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:";
/** Scripts of a figure run in an origin of their own, without a network. Nothing else than HTML has any. */
const HTML = `sandbox allow-scripts; ${SHOWN}; script-src 'unsafe-inline' 'unsafe-eval'; frame-ancestors 'self'`;
const OTHERS = `sandbox; ${SHOWN}; frame-ancestors 'self'`;

const listing = createRoute({
  method: 'get',
  path: '/sessions/{session}/executions',
  operationId: 'listExecutions',
  summary: 'A page of the history of a session',
  request: {
    params: sessionParam,
    query: z.object({
      before: number.optional().openapi({ description: 'A number; the newest executions if left out.' }),
      limit: z.coerce.number().int().min(1).max(200).default(50),
    }),
  },
  responses: { 200: jsonAnswer('The oldest first; fewer than asked for where they are large.', executionPage) },
});

const reading = createRoute({
  method: 'get',
  path: '/sessions/{session}/executions/{number}',
  operationId: 'getExecution',
  summary: 'An execution, with its outputs',
  request: { params: executionParam },
  responses: { 200: jsonAnswer('As far as it has come.', executionInfo) },
});

const startBody = z
  .object({
    code: z.string(),
    interpreter: z.string().max(200).nullish(),
    timeout: z.number().min(0).max(LONGEST_TIMEOUT).nullish().openapi({ description: 'Seconds; 0: none.' }),
    args: z.array(z.string()).max(MOST_ARGUMENTS).nullish(),
    stdin: z.string().nullish(),
  })
  .openapi('NewExecution');

const starting = createRoute({
  method: 'post',
  path: '/sessions/{session}/executions',
  operationId: 'startExecution',
  summary: 'Run code in a session, in the background',
  request: {
    params: sessionParam,
    body: { content: { 'application/json': { schema: startBody } }, required: true },
  },
  responses: { 202: jsonAnswer('It is in the queue.', z.object({ execution: z.number() })) },
});

const interruption = createRoute({
  method: 'post',
  path: '/sessions/{session}/executions/{number}/interrupt',
  operationId: 'interruptExecution',
  summary: 'Stop an execution that runs or waits',
  request: { params: executionParam },
  responses: { 204: { description: 'It is told to stop; one that has ended is left as it is.' } },
});

const textPage = z.object({
  text: z.string(),
  offset: z.number(),
  next: z.number().nullable().openapi({ description: 'Where to read on; null at the end of what there is.' }),
  length: z.number(),
});
const found = z.object({
  matches: z.array(z.object({ offset: z.number(), line: z.string() })),
  has_more: z.boolean(),
});

const text = createRoute({
  method: 'get',
  path: '/sessions/{session}/executions/{number}/output',
  operationId: 'readOutput',
  summary: 'The text of an execution: from an offset, or where a word stands in it',
  request: {
    params: executionParam,
    query: z.object({
      offset: z.coerce.number().int().default(0).openapi({ description: 'In characters; negative: from the end.' }),
      search: z.string().min(1).max(1000).optional().openapi({ description: 'A word, in either case.' }),
      limit: z.coerce.number().int().min(1).max(MOST_OF_TEXT).optional(),
    }),
  },
  responses: { 200: jsonAnswer('A part of the text, or where the word was found.', z.union([textPage, found])) },
});

const part = createRoute({
  method: 'get',
  path: '/sessions/{session}/executions/{number}/outputs/{index}/{type}',
  operationId: 'getOutputPart',
  summary: 'One media type of one output, such as a figure',
  request: {
    params: executionParam.extend({ index: z.coerce.number().int().min(0), type: z.string().max(200) }),
  },
  responses: {
    200: { description: 'Its bytes, which a browser shows in a sandbox.', content: { '*/*': { schema: z.string() } } },
  },
});

export function executionRoutes({ sessionsOf }: WorkbenchOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });

  app.openapi(listing, async (c) => {
    const { before = Number.MAX_SAFE_INTEGER, limit } = c.req.valid('query');
    const seen = await takeUpInterrupted(sessionsOf(c), c.req.valid('param').session);
    return c.json(toExecutionPage(seen, before, limit), 200);
  });
  app.openapi(reading, (c) => {
    const { session, number } = c.req.valid('param');
    const execution = seenSession(sessionsOf(c), session).history.execution(number);
    return c.json(toExecutionInfo(pagedExecution(execution)), 200);
  });
  app.openapi(starting, async (c) => {
    const { code, interpreter, timeout, args, stdin } = c.req.valid('json');
    const { execution } = await sessionsOf(c).start({
      session: idIn(c.req.valid('param').session),
      code,
      origin: originOf(c),
      interpreter: interpreter ?? undefined,
      timeout: timeout ?? undefined,
      args: args ?? undefined,
      stdin: stdin ?? undefined,
      isStateful: true,
      isAnnounced: true,
    });
    return c.json({ execution: execution.record.number }, 202);
  });
  app.openapi(interruption, async (c) => {
    const { session, number } = c.req.valid('param');
    const sessions = sessionsOf(c);
    const { id } = seenSession(sessions, session);
    await sessions.use(id, (open) => open.interrupt(number));
    return c.body(null, 204);
  });
  app.openapi(text, async (c) => {
    const { session, number } = c.req.valid('param');
    const { offset, search, limit } = c.req.valid('query');
    const { transcript } = seenSession(sessionsOf(c), session).history.execution(number);
    if (search !== undefined) {
      const { matches, hasMore } = await findText(transcript, search, Math.min(limit ?? 100, 1000));
      return c.json({ matches, has_more: hasMore }, 200);
    }
    const page = await readPage(transcript, { by: 'offset', offset, limit: limit ?? 65_536 });
    const { length } = transcript;
    return c.json({ ...page, offset: offset < 0 ? Math.max(0, length + offset) : offset, length }, 200);
  });
  app.openapi(part, (c) => {
    const { session, number, index, type } = c.req.valid('param');
    const { transcript } = seenSession(sessionsOf(c), session).history.execution(number);
    const output = transcript.outputs[index];
    const value = output && 'data' in output && Object.hasOwn(output.data, type) ? output.data[type] : undefined;
    if (value === undefined)
      throw new CuvetteError(
        'unknown_file',
        `Execution ${number} has no output ${index} of the type ${JSON.stringify(type)}. It may be too old, or not kept.`,
      );
    return partResponse(type, value);
  });
  return app;
}

function partResponse(type: string, value: unknown): Response {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  const isText = !isBase64(type) || typeof value !== 'string';
  return new Response(isText ? text : new Uint8Array(Buffer.from(text, 'base64')), {
    headers: {
      'content-type': isText ? `${safeType(type)}; charset=utf-8` : safeType(type),
      'content-security-policy': type === 'text/html' ? HTML : OTHERS,
      'x-content-type-options': 'nosniff',
      'cross-origin-resource-policy': 'same-origin',
      'cache-control': 'private, max-age=31536000, immutable',
    },
  });
}

/** Code chooses the names of types. */
function safeType(type: string): string {
  return /^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : 'text/plain';
}
