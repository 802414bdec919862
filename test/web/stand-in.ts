/**
 * Stands in for the service, in memory, so that the page can be shown what a machine cannot produce at will: two thousand cells, a million rows,
 * a slow reader, a server that goes away. It speaks the page's API and serves the built page; tests of the real service use the real one.
 */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type ServerType, serve } from '@hono/node-server';
import { type Context, Hono } from 'hono';
import { streamSSE } from 'hono/streaming';

export const WEB = join(import.meta.dirname, '..', '..', 'dist', 'web');

export type Json = Record<string, unknown>;

export interface StandInExecution extends Json {
  number: number;
  code: string;
  state: string;
  outcome: string | null;
  outputs: Json[];
}

export interface StandInSession {
  id: string;
  names: string[];
  is_live: boolean;
  executions: StandInExecution[];
  used_at: string;
}

export interface StandIn {
  readonly url: string;
  /** Requests that came, as `GET /sessions`. */
  readonly requests: { method: string; path: string; headers: Record<string, string>; query: Record<string, string> }[];
  addSession(id: string, names?: string[]): StandInSession;
  /** Adds an execution and tells whoever watches. */
  execute(session: StandInSession, fields: Partial<StandInExecution>): StandInExecution;
  /** Adds text to an execution that runs. */
  print(session: StandInSession, execution: StandInExecution, text: string, name?: 'stdout' | 'stderr'): void;
  output(session: StandInSession, execution: StandInExecution, output: Json): void;
  end(session: StandInSession, execution: StandInExecution, outcome?: string): void;
  send(session: StandInSession, event: Json): void;
  sendSidebar(event: Json): void;
  /** Answers of routes that are asked for by the page, by path pattern; the first that fits answers. */
  answer(
    pattern: RegExp,
    handler: (match: RegExpExecArray, query: URLSearchParams, request: Request) => Response | Promise<Response>,
  ): void;
  /** What POST executions does. */
  onRun: (session: StandInSession, code: string, interpreter: string) => number;
  /** Of the cookie; without it, everybody is let in. */
  token: string | undefined;
  /** Goes away, and comes back on the same port, as another instance. */
  stop(): Promise<void>;
  start(): Promise<void>;
}

const PAGE_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; font-src 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'";
const FRAME_CSP =
  "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; style-src 'unsafe-inline'; img-src data: blob:; font-src data:; media-src data: blob:; worker-src blob:; connect-src 'none'; frame-src 'none'; form-action 'none'; base-uri 'none'; webrtc 'block'; frame-ancestors 'self'";

const TYPES: Record<string, string> = { js: 'text/javascript', css: 'text/css', html: 'text/html; charset=utf-8' };

interface Watcher {
  push(event: { id: string; data: string }): void;
}

export async function startStandIn(): Promise<StandIn> {
  const sessions = new Map<string, StandInSession>();
  const watchers = new Map<string, Set<Watcher>>();
  const logs = new Map<string, { id: string; data: string }[]>();
  const answers: [RegExp, Parameters<StandIn['answer']>[1]][] = [];
  const requests: StandIn['requests'] = [];
  let instance = 1;
  let server: ServerType | undefined;
  let port = 0;
  let at = Date.parse('2026-11-18T09:00:00Z');

  const publish = (channel: string, event: Json) => {
    const log = logs.get(channel) ?? [];
    const entry = { id: `${instance}.${log.length + 1}`, data: JSON.stringify(event) };
    logs.set(channel, [...log.slice(-400), entry]);
    for (const watcher of watchers.get(channel) ?? []) watcher.push(entry);
  };
  const summary = (session: StandInSession) => ({
    id: session.id,
    names: session.names,
    created_at: '2026-11-18T08:00:00Z',
    used_at: session.used_at,
    is_live: session.is_live,
    executions: session.executions.length,
    running: session.executions.find(({ state }) => state === 'running')?.number ?? null,
    queued: session.executions.filter(({ state }) => state === 'queued').length,
    is_default: false,
  });
  const changed = (session: StandInSession) => publish('', { type: 'session', session: summary(session) });
  const headOf = ({ outputs: _, ...head }: StandInExecution) => head;
  const find = (id: string) => sessions.get(id) ?? undefined;

  const app = new Hono();
  app.use(async (c, next) => {
    const { pathname, searchParams } = new URL(c.req.url);
    requests.push({
      method: c.req.method,
      path: decodeURIComponent(pathname),
      headers: c.req.header(),
      query: Object.fromEntries(searchParams),
    });
    const isOpen = pathname === '/' || pathname.startsWith('/ui/') || pathname === '/login';
    if (standIn.token && !isOpen && c.req.header('cookie') !== `cuvette=${standIn.token}`)
      return c.json({ code: 'unauthorized', detail: 'Sign in first.' }, 401);
    return next();
  });
  app.get('/', (c) =>
    c.html(readFileSync(join(WEB, 'index.html'), 'utf8'), 200, { 'content-security-policy': PAGE_CSP }),
  );
  app.get('/ui/:name', (c) => {
    const name = c.req.param('name');
    const type = TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream';
    const headers = {
      'content-type': type,
      ...(/^frame(-scripts)?\.html$/.test(name) && { 'content-security-policy': FRAME_CSP }),
    };
    return new Response(readFileSync(join(WEB, 'ui', name)), { headers });
  });
  app.post('/login', (c) => {
    if (c.req.header('authorization') !== `Bearer ${standIn.token}`)
      return c.json({ code: 'unauthorized', detail: 'This key is not known here.' }, 401);
    return c.body(null, 204, { 'set-cookie': `cuvette=${standIn.token}; HttpOnly; SameSite=Strict; Path=/` });
  });
  app.use(async (c, next) => {
    const { pathname, searchParams } = new URL(c.req.url);
    for (const [pattern, handler] of answers) {
      const match = pattern.exec(decodeURIComponent(pathname));
      if (match) return handler(match, searchParams, c.req.raw);
    }
    return next();
  });
  app.get('/sessions', (c) => c.json({ sessions: [...sessions.values()].map(summary) }));
  app.post('/sessions', (c) => c.json(summary(standIn.addSession(`new-${sessions.size}`)), 201));
  app.get('/events', (c) => events(c, '', () => ({ type: 'sessions', sessions: [...sessions.values()].map(summary) })));
  app.get('/sessions/:id', (c) => {
    const session = find(c.req.param('id'));
    if (!session) return c.json({ code: 'unknown_session', detail: 'There is no such session.' }, 404);
    return c.json({
      ...summary(session),
      interpreters: INTERPRETERS,
      limits: {},
      sandbox: 'confined, no network',
      workspace: '/mnt/data',
    });
  });
  app.get('/sessions/:id/events', (c) => {
    const session = find(c.req.param('id'));
    if (!session) return c.json({ code: 'unknown_session', detail: 'There is no such session.' }, 404);
    return events(c, session.id, () => ({
      type: 'snapshot',
      session: summary(session),
      executions: session.executions.slice(-50),
      has_more: session.executions.length > 50,
    }));
  });
  app.get('/sessions/:id/executions', (c) => {
    const all = find(c.req.param('id'))?.executions ?? [];
    const before = Number(c.req.query('before') ?? Number.POSITIVE_INFINITY);
    const older = all.filter(({ number }) => number < before);
    return c.json({ executions: older.slice(-50), has_more: older.length > 50 });
  });
  app.post('/sessions/:id/executions', async (c) => {
    const session = find(c.req.param('id'));
    if (!session) return c.json({ code: 'unknown_session', detail: 'There is no such session.' }, 404);
    const { code, interpreter = 'python' } = await c.req.json<{ code: string; interpreter?: string }>();
    return c.json({ execution: standIn.onRun(session, code, interpreter) }, 202);
  });
  app.get('/sessions/:id/executions/:n', (c) => {
    const execution = find(c.req.param('id'))?.executions.find(({ number }) => number === Number(c.req.param('n')));
    return execution
      ? c.json(execution)
      : c.json({ code: 'unknown_execution', detail: 'There is no such execution.' }, 404);
  });
  app.post('/sessions/:id/executions/:n/interrupt', (c) => {
    const session = find(c.req.param('id'));
    const execution = session?.executions.find(({ number }) => number === Number(c.req.param('n')));
    if (session && execution) standIn.end(session, execution, 'cancelled');
    return c.body(null, 204);
  });
  app.get('/sessions/:id/interpreters/:name/variables', (c) => c.json({ variables: [] }));
  app.get('/sessions/:id/workspace', (c) => c.json({ path: '', entries: [], is_cut: false }));

  function events(c: Context, channel: string, snapshot: () => Json): Response {
    return streamSSE(c, async (stream) => {
      const queue: { id: string; data: string }[] = [];
      let wake = () => {};
      const watcher: Watcher = {
        push(event) {
          queue.push(event);
          wake();
        },
      };
      const last = c.req.header('last-event-id');
      const log = logs.get(channel) ?? [];
      const known = last ? log.findIndex(({ id }) => id === last) : -1;
      if (known >= 0) queue.push(...log.slice(known + 1));
      else queue.push({ id: `${instance}.${log.length}`, data: JSON.stringify(snapshot()) });
      const all = watchers.get(channel) ?? new Set();
      watchers.set(channel, all.add(watcher));
      stream.onAbort(() => {
        all.delete(watcher);
        wake();
      });
      while (!stream.aborted && all.has(watcher)) {
        for (let event = queue.shift(); event; event = queue.shift()) await stream.writeSSE(event);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    });
  }

  const standIn: StandIn = {
    get url() {
      return `http://127.0.0.1:${port}/`;
    },
    requests,
    token: undefined,
    addSession(id, names = []) {
      const session: StandInSession = { id, names, is_live: true, executions: [], used_at: new Date(at).toISOString() };
      at += 60_000;
      sessions.set(id, session);
      changed(session);
      return session;
    },
    execute(session, fields) {
      const execution: StandInExecution = {
        number: session.executions.length + 1,
        interpreter: 'python',
        origin: 'agent',
        code: '',
        state: 'done',
        outcome: 'ok',
        reason: null,
        exit_code: null,
        started_at: new Date(at).toISOString(),
        wall: 0.012,
        cpu: 0.01,
        peak: null,
        variables_survived: true,
        notes: [],
        text_length: 0,
        output_is_cut: false,
        outputs: [],
        ...fields,
      };
      at += 1000;
      session.executions.push(execution);
      session.used_at = new Date(at).toISOString();
      publish(session.id, { type: 'execution', execution: headOf(execution) });
      for (const output of execution.outputs)
        publish(session.id, { type: 'output', execution: execution.number, output });
      changed(session);
      return execution;
    },
    print(session, execution, text, name = 'stdout') {
      const last = execution.outputs.at(-1);
      const index = last?.type === 'stream' && last.name === name ? Number(last.index) : execution.outputs.length;
      const offset = Number(execution.text_length ?? 0);
      execution.text_length = offset + text.length;
      if (last && index === last.index) last.text = `${last.text}${text}`.slice(-20_000);
      else execution.outputs.push({ type: 'stream', index, name, text });
      publish(session.id, {
        type: 'output',
        execution: execution.number,
        offset,
        output: { type: 'stream', index, name, text },
      });
    },
    output(session, execution, output) {
      const indexed = { index: execution.outputs.length, ...output };
      execution.outputs.push(indexed);
      publish(session.id, { type: 'output', execution: execution.number, output: indexed });
    },
    end(session, execution, outcome = 'ok') {
      Object.assign(execution, { state: 'done', outcome, wall: 1.5 });
      publish(session.id, { type: 'execution', execution: headOf(execution) });
      publish(session.id, { type: 'variables', interpreter: 'python' });
      changed(session);
    },
    send: (session, event) => publish(session.id, event),
    sendSidebar: (event) => publish('', event),
    answer: (pattern, handler) => void answers.unshift([pattern, handler]),
    onRun(session, code, interpreter) {
      const execution = standIn.execute(session, {
        code,
        interpreter,
        origin: 'page',
        state: 'running',
        outcome: null,
        wall: null,
      });
      standIn.print(session, execution, `ran ${code}\n`);
      standIn.end(session, execution);
      return execution.number;
    },
    async stop() {
      watchers.clear();
      const running = server;
      server = undefined;
      if (!running) return;
      if ('closeAllConnections' in running) running.closeAllConnections();
      await new Promise((resolve) => running.close(resolve));
    },
    async start() {
      instance += 1;
      logs.clear();
      await new Promise<void>((resolve) => {
        server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, (info) => {
          port = info.port;
          resolve();
        });
      });
    },
  };
  await standIn.start();
  return standIn;
}

const INTERPRETERS = [
  ['python', 'python', 'Python 3.12', 'python', '3.12.4', 'idle', true, 4711],
  ['bash', 'program', 'bash', 'shell', '5.2', 'not started', false, null],
  ['node', 'program', 'JavaScript', 'javascript', '20.19', 'not started', false, null],
  ['typescript', 'program', 'TypeScript', 'typescript', null, 'not started', false, null],
  ['go', 'program', 'Go', 'go', '1.22', 'not started', false, null],
  ['cpp', 'program', 'C++', 'cpp', '13', 'not started', false, null],
].map(([name, kind, title, language, version, state, is_stateful, pid]) => ({
  name,
  kind,
  title,
  language,
  version,
  state,
  is_stateful,
  pid,
}));
