/** Serves a lab over HTTP: a route for each primitive, behind a token. A client that asks for lines of JSON is told of progress on the way, and may come back for the rest. */

import { Hono, type HonoRequest } from 'hono';
import { readConfig } from '../../config.ts';
import { CuvetteError } from '../../errors.ts';
import type { Spills } from '../../files/spill.ts';
import { readJsonBody } from '../../json-body.ts';
import type { Lab } from '../../lab/core/lab.ts';
import type { Primitive } from '../../lab/primitives/primitive.ts';
import { ROUTED } from '../../lab/primitives/table.ts';
import { EVENTS, HEADERS, HEARTBEAT } from '../../lab/remote/lab-protocol.ts';
import type { Logger } from '../../log.ts';
import { VERSION } from '../../version.ts';
import type { RestEnv } from '../caller.ts';
import { goneSignal } from '../caller.ts';
import { eventStream } from '../event-stream.ts';
import { instanceHeader } from '../instance-header.ts';
import { checkHostAndOrigin, isSameSecret } from '../rest/access.ts';
import { notFound, onError } from '../rest/problem.ts';
import { limitBody } from '../rest/request-body.ts';
import { collectAnswer, createLabCalls, type LabCallLimits } from './lab-calls.ts';
import { createModelCheck } from './model-check.ts';

export interface LabAppOptions {
  lab: Lab;
  token: string;
  /** That it listens on: names that are not of this machine are refused. */
  host: string;
  /** Of the tunnel that leads here, at this moment. */
  names?: () => string[];
  /** Where the events of calls go that are too many for memory. */
  spills: Spills;
  log: Logger;
  limits?: Partial<LabCallLimits>;
}

const MOST_BODY = 64 * 1024 * 1024;

export function createLabApp({ lab, token, host, names, spills, log, limits }: LabAppOptions): Hono<RestEnv> {
  const calls = createLabCalls({ lab, spills, log, limits });
  const checkModel = createModelCheck(lab);
  const app = new Hono<RestEnv>();
  app.onError(onError(log));
  app.notFound(notFound);
  app.use(checkHostAndOrigin(readConfig({ host }, {}), names));
  app.use(async (c, next) => {
    const [, given = ''] = /^Bearer +(.+)$/i.exec(c.req.header('authorization') ?? '') ?? [];
    if (!isSameSecret(given, token))
      throw new CuvetteError(
        'unauthorized',
        'This lab wants the token that it printed when it started, in the header Authorization: Bearer TOKEN.',
      );
    await next();
  });
  app.use(instanceHeader(HEADERS.instance));
  app.use(limitBody(MOST_BODY));
  app.get('/', (c) => c.json({ service: 'cuvette lab', version: VERSION, routes: ROUTED.map(routeOf) }));
  app.delete('/calls/:id', (c) => {
    calls.stop(c.req.param('id'));
    return c.body(null, 204);
  });
  for (const { name, route } of ROUTED) {
    app.on(route.method, route.path, async (c) => {
      const gone = goneSignal(c);
      await checkModel(c.req.header(HEADERS.model));
      const args = route.method === 'GET' ? c.req.query() : await bodyOf(c.req.raw);
      const { id, isJoin, after } = joiningOf(c.req);
      const reader = calls.find({ id, isJoin, name, args }).listen(after);
      if (!c.req.header('accept')?.includes(EVENTS)) return c.json(await collectAnswer(reader, gone));
      return eventStream(reader, { contentType: EVENTS, heartbeat: '{}\n', silence: HEARTBEAT, gone });
    });
  }
  return app;
}

function routeOf({ name, route }: Primitive): string {
  return `${route.method} ${route.path} (${name})`;
}

async function bodyOf(request: Request): Promise<Record<string, unknown>> {
  const json = await readJsonBody(request);
  try {
    const body: unknown = json.isBlank ? {} : json.parse();
    if (typeof body === 'object' && body !== null && !Array.isArray(body)) return { ...body };
  } catch (error) {
    throw new CuvetteError('invalid_input', 'The body of the request is not JSON.', { cause: error });
  }
  throw new CuvetteError('invalid_input', 'The body of the request must be a JSON object.');
}

/** What only reads, by GET, can be asked again without an id. */
function joiningOf(request: HonoRequest): { id: string | undefined; isJoin: boolean; after: number } {
  const id = request.method === 'GET' ? undefined : request.header(HEADERS.id);
  const isJoin = request.header(HEADERS.join) === '1';
  if (id === undefined ? isJoin : !/^[\x21-\x7e]{1,200}$/.test(id))
    throw new CuvetteError(
      'invalid_input',
      `To join a call, give its id in the header ${HEADERS.id}: 1 to 200 characters, without spaces.`,
    );
  const after = request.header(HEADERS.after) ?? '0';
  if (!/^\d{1,9}$/.test(after))
    throw new CuvetteError('invalid_input', `The header ${HEADERS.after} must be the number of an event.`);
  return { id, isJoin, after: Number(after) };
}
