/** A lab over HTTP: a route for each primitive, behind a token. Who asks for lines of JSON is told of progress on the way. */

import { Hono } from 'hono';
import { readConfig } from '../../config.ts';
import { CuvetteError, toCuvetteError } from '../../errors.ts';
import type { Lab } from '../../lab/lab.ts';
import type { Primitive } from '../../lab/primitives/primitive.ts';
import { ROUTED } from '../../lab/primitives/table.ts';
import { EVENTS } from '../../lab/remote-lab.ts';
import type { LabContext } from '../../lab/workbench.ts';
import type { Logger } from '../../log.ts';
import { VERSION } from '../../version.ts';
import { goneSignal } from '../rest/caller.ts';
import { createGuards, limitBody } from '../rest/guards.ts';
import type { RestEnv } from '../rest/principal.ts';
import { notFound, onError } from '../rest/problem.ts';
import { isSame } from '../rest/secrets.ts';

export interface LabAppOptions {
  lab: Lab;
  token: string;
  /** That it listens on: names that are not of this machine are refused. */
  host: string;
  /** Of the tunnel that leads here, at this moment. */
  names?: () => string[];
  log: Logger;
}

const MOST_BODY = 64 * 1024 * 1024;
/** Milliseconds; clients take a connection for dead that says nothing for minutes. */
const STILL_HERE = 15_000;

export function createLabApp({ lab, token, host, names, log }: LabAppOptions): Hono<RestEnv> {
  const app = new Hono<RestEnv>();
  app.onError(onError(log));
  app.notFound(notFound);
  app.use(createGuards(readConfig({ host }, {}), names));
  app.use(async (c, next) => {
    const [, given = ''] = /^Bearer +(.+)$/i.exec(c.req.header('authorization') ?? '') ?? [];
    if (!isSame(given, token))
      throw new CuvetteError(
        'unauthorized',
        'This lab wants the token that it printed when it started, in the header Authorization: Bearer TOKEN.',
      );
    await next();
  });
  app.use(limitBody(MOST_BODY));
  app.get('/', (c) => c.json({ service: 'cuvette lab', version: VERSION, routes: ROUTED.map(routeOf) }));
  for (const primitive of ROUTED) {
    const { method, path } = primitive.route;
    app.on(method, path, async (c) => {
      const args = method === 'GET' ? c.req.query() : await bodyOf(c.req.raw);
      const call: Call = (context) => lab.call(primitive.name, args, context);
      if (!c.req.header('accept')?.includes(EVENTS))
        return c.json(await call({ progress: () => {}, signal: goneSignal(c) }));
      return stream(call, goneSignal(c), log);
    });
  }
  return app;
}

function routeOf({ name, route }: Primitive): string {
  return `${route.method} ${route.path} (${name})`;
}

async function bodyOf(request: Request): Promise<Record<string, unknown>> {
  const text = await request.text();
  try {
    const body: unknown = text.trim() === '' ? {} : JSON.parse(text);
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body };
  } catch (error) {
    throw new CuvetteError('invalid_input', 'The body of the request is not JSON.', { cause: error });
  }
  throw new CuvetteError('invalid_input', 'The body of the request must be a JSON object.');
}

type Call = (context: LabContext) => Promise<Record<string, unknown>>;

/** Progress as it comes, a sign of life now and then, and at last the answer or the error, each a line. */
function stream(call: Call, gone: AbortSignal, log: Logger): Response {
  const encoder = new TextEncoder();
  const stop = new AbortController();
  const body = new ReadableStream<Uint8Array>({
    async start(controller) {
      const write = (event: Record<string, unknown>) => {
        if (!stop.signal.aborted) controller.enqueue(encoder.encode(`${JSON.stringify(event)}\n`));
      };
      const timer = setInterval(() => write({}), STILL_HERE);
      try {
        const signal = AbortSignal.any([gone, stop.signal]);
        const answer = await call({
          signal,
          progress: (progress) => write({ progress }),
          output: (output) => write({ output }),
        });
        write({ answer });
      } catch (error) {
        const { code, message } = toCuvetteError(error);
        const isFault = code === 'internal' && !gone.aborted && !stop.signal.aborted;
        log[isFault ? 'error' : 'debug']({ err: error }, 'lab');
        write({ error: { code, message } });
      } finally {
        clearInterval(timer);
        if (!stop.signal.aborted) controller.close();
      }
    },
    cancel: () => stop.abort(),
  });
  return new Response(body, { headers: { 'content-type': EVENTS, 'cache-control': 'no-cache' } });
}
