/** Starts a `cuvette serve` in a home of its own, and sends what its callers send: requests as bytes, forms, streams of events. */

import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { request as httpRequest, type IncomingHttpHeaders, type IncomingMessage } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, onTestFinished } from 'vitest';
import {
  collectOutput,
  createHome,
  HANGS_AFTER,
  type Home,
  kill,
  MAIN,
  nameOf,
  processesOf,
  waitFor,
} from '../harness.ts';

export const ID = /^[A-Za-z0-9_-]{21}$/;

// -- what is answered -------------------------------------------------------------------------------

export interface Reply {
  status: number;
  headers: IncomingHttpHeaders;
  bytes: Buffer;
  text: string;
  json<T = Record<string, unknown>>(): T;
}

export interface OutputFile {
  id: string;
  name: string;
  session_id: string;
  storage_session_id: string;
  path: string;
  size: number;
  inherited?: true;
}

export interface ExecAnswer {
  session_id: string;
  stdout: string;
  stderr: string;
  files: OutputFile[];
  deleted_files?: string[];
  status?: string;
  run: {
    stdout: string;
    stderr: string;
    output: string;
    code: number | null;
    signal: string | null;
    status: string | null;
    message: string | null;
    reason: string | null;
    memory: number | null;
    cpu_time: number | null;
    wall_time: number | null;
  };
  language: string;
  version: string;
  runtime_session_id?: string;
  runtime_status?: string;
}

export interface UploadAnswer {
  message: string;
  session_id: string;
  storage_session_id: string;
  files: { id: string; fileId: string; name: string; filename: string; path: string; size: number; status?: string }[];
  succeeded?: number;
  failed?: number;
}

/** RFC 9457, with our code in two fields more. */
export interface Problem {
  title: string;
  status: number;
  detail: string;
  error: string;
  code: string;
  retry_after_seconds?: number;
}

// -- requests ---------------------------------------------------------------------------------------

export interface RequestOptions {
  headers?: Record<string, string>;
  /** Parts are sent one after the other, as chunks; a single one with its length. */
  body?: string | Buffer | Buffer[];
  signal?: AbortSignal;
}

export interface Caller {
  send(method: string, path: string, options?: RequestOptions): Promise<Reply>;
  get(path: string, headers?: Record<string, string>): Promise<Reply>;
  post(path: string, body: unknown, options?: Omit<RequestOptions, 'body'>): Promise<Reply>;
  /** Runs code; fails unless it is answered with 200. */
  exec(body: Record<string, unknown>, options?: Omit<RequestOptions, 'body'>): Promise<ExecAnswer>;
  python(code: string, more?: Record<string, unknown>): Promise<ExecAnswer>;
  bash(code: string, more?: Record<string, unknown>): Promise<ExecAnswer>;
  /** One file, in a session of its own. */
  upload(name: string, content: string | Buffer, fields?: Record<string, string>): Promise<UploadAnswer>;
  /** The bytes; fails unless they are there. */
  download(file: { id: string; session_id: string }): Promise<Buffer>;
  stream(body: Record<string, unknown>, headers?: Record<string, string>): Promise<EventStream>;
  /** Reads the events of a path. */
  watch(path: string, headers?: Record<string, string>): Promise<EventStream>;
}

export function createCaller(url: string, base = '', always: Record<string, string> = {}): Caller {
  const send: Caller['send'] = async (method, path, options = {}) => {
    const headers = { ...always, ...options.headers };
    const response = await open(method, `${url}${base}${path}`, { ...options, headers });
    const chunks: Buffer[] = [];
    for await (const chunk of response) chunks.push(chunk);
    const bytes = Buffer.concat(chunks);
    const text = bytes.toString('utf8');
    return { status: response.statusCode ?? 0, headers: response.headers, bytes, text, json: () => JSON.parse(text) };
  };
  const caller: Caller = {
    send,
    get: (path, headers = {}) => send('GET', path, { headers }),
    post: (path, body, options = {}) =>
      send('POST', path, {
        ...options,
        headers: { 'content-type': 'application/json', ...options.headers },
        body: JSON.stringify(body),
      }),
    async exec(body, options) {
      return ok(await caller.post('/exec', body, options)).json<ExecAnswer>();
    },
    python: (code, more = {}) => caller.exec({ lang: 'py', code, ...more }),
    bash: (code, more = {}) => caller.exec({ lang: 'bash', code, ...more }),
    async upload(name, content, fields = {}) {
      const form = formOf([...Object.entries(fields), { name, content }]);
      return ok(await send('POST', '/upload', form)).json<UploadAnswer>();
    },
    async download({ id, session_id }) {
      return ok(await send('GET', `/download/${session_id}/${id}`)).bytes;
    },
    async stream(body, headers = {}) {
      const response = await open('POST', `${url}${base}/exec/stream`, {
        headers: { 'content-type': 'application/json', ...always, ...headers },
        body: JSON.stringify(body),
      });
      return readEvents(response);
    },
    watch: async (path, headers = {}) =>
      readEvents(await open('GET', `${url}${base}${path}`, { headers: { ...always, ...headers } })),
  };
  return caller;
}

export function ok(reply: Reply): Reply {
  if (reply.status !== 200) throw new Error(`Answered with ${reply.status}: ${reply.text.slice(0, 2000)}`);
  return reply;
}

function open(method: string, url: string, { headers = {}, body, signal }: RequestOptions): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const parts = Array.isArray(body) ? body : body === undefined ? [] : [Buffer.from(body)];
    const length = Array.isArray(body) ? {} : { 'content-length': String(parts[0]?.length ?? 0) };
    // A connection for each, unless the caller says otherwise: none waits behind another, and none stays open.
    const [, hostname, port, path] = /^http:\/\/([^/:]+):(\d+)(.*)$/.exec(url) ?? [];
    // Given in parts, so that the path is sent as it is.
    const request = httpRequest({
      hostname,
      port,
      path,
      method,
      headers: { ...length, ...headers },
      agent: false,
      signal,
    });
    request.setTimeout(HANGS_AFTER, () => request.destroy(new Error(`No answer to ${method} ${url}`)));
    request.once('response', resolve);
    request.once('error', reject);
    for (const part of parts) request.write(part);
    request.end();
  });
}

// -- forms ------------------------------------------------------------------------------------------

type Part = [field: string, value: string] | { name: string; content: string | Buffer; type?: string; field?: string };

/** A form as LibreChat's client writes it: file names in raw UTF-8, and sent as chunks, without a length. */
export function formOf(parts: Part[]): { headers: Record<string, string>; body: Buffer[] } {
  const boundary = '--------------------------014257936809311248735521';
  const body = parts.flatMap((part) => {
    const [head, content] = Array.isArray(part)
      ? [`Content-Disposition: form-data; name="${part[0]}"`, part[1]]
      : [
          `Content-Disposition: form-data; name="${part.field ?? 'file'}"; filename="${part.name}"\r\n` +
            `Content-Type: ${part.type ?? 'application/octet-stream'}`,
          part.content,
        ];
    return [Buffer.from(`--${boundary}\r\n${head}\r\n\r\n`), Buffer.from(content), Buffer.from('\r\n')];
  });
  return {
    headers: { 'content-type': `multipart/form-data; boundary=${boundary}`, 'transfer-encoding': 'chunked' },
    body: [...body.filter(({ length }) => length > 0), Buffer.from(`--${boundary}--\r\n`)],
  };
}

// -- streams of events ------------------------------------------------------------------------------

export interface StreamEvent extends Partial<Omit<ExecAnswer, 'files'>> {
  /** The one of server-sent events. */
  eventId: string;
  type: string;
  name?: string;
  text?: string;
  data?: Record<string, string>;
  display_id?: string;
  update?: true;
  ename?: string;
  files?: OutputFile[];
  /** Milliseconds after the stream was opened. */
  at: number;
}

export interface EventStream {
  status: number;
  headers: IncomingHttpHeaders;
  events: StreamEvent[];
  comments: string[];
  /** Resolves at the last byte; true if it was the server who ended it. */
  ended: Promise<boolean>;
  /** The first event of the kind. */
  event(type: string): Promise<StreamEvent>;
  /** What was printed up to now. */
  printed(): string;
  /** The kinds of events in their order; what is printed in one go may come in several events. */
  kinds(): string[];
  /** As a client does that goes away. */
  close(): void;
  /** As one that reads nothing for a while. */
  pause(): void;
  resume(): void;
}

function readEvents(response: IncomingMessage): EventStream {
  const began = performance.now();
  const events: StreamEvent[] = [];
  const comments: string[] = [];
  let rest = '';
  response.setEncoding('utf8').on('data', (text: string) => {
    const blocks = (rest + text).split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const lines = block.split('\n');
      comments.push(...lines.filter((line) => line.startsWith(':')));
      const data = lines.filter((line) => line.startsWith('data: ')).map((line) => line.slice(6));
      const eventId = lines.find((line) => line.startsWith('id: '))?.slice(4) ?? '';
      if (data.length > 0)
        events.push({ ...JSON.parse(data.join('\n')), eventId, at: Math.round(performance.now() - began) });
    }
  });
  const ended = new Promise<boolean>((resolve) => {
    response.once('end', () => resolve(true));
    response.once('close', () => resolve(false));
    response.once('error', () => resolve(false));
  });
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    events,
    comments,
    ended,
    event: (type) => waitFor(`an event ${type}`, () => events.find((event) => event.type === type)),
    printed: () => events.flatMap(({ type, text }) => (type === 'stream' ? [text ?? ''] : [])).join(''),
    kinds: () =>
      events.map(({ type }) => type).filter((type, index, all) => type !== 'stream' || all[index - 1] !== type),
    close: () => response.destroy(),
    pause: () => void response.pause(),
    resume: () => void response.resume(),
  };
}

// -- the service ------------------------------------------------------------------------------------

export interface ServiceOptions {
  home: Home;
  args?: string[];
  env?: Record<string, string | undefined>;
  cwd?: string;
}

export interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

export interface Service extends Caller {
  readonly home: Home;
  readonly url: string;
  readonly pid: number;
  /** What it has said so far. */
  stdout(): string;
  stderr(): string;
  /** A caller with headers of its own, or with something between the address and the path. */
  as(headers: Record<string, string>, base?: string): Caller;
  stop(signal?: NodeJS.Signals): Promise<Ended>;
}

/** A service for the tests of a file. After them, nothing of it may be left but the zygotes, which wait for the next one. */
export async function useService(options: Omit<ServiceOptions, 'home'> = {}): Promise<Service> {
  const home = createHome();
  afterAll(() => endHome(home));
  const service = await startService({ ...options, home });
  afterAll(async () => {
    const { code, stderr } = await service.stop();
    if (code !== 0 || stderr !== '') throw new Error(`The service ended with ${code}, and said: ${stderr}`);
  });
  return service;
}

/** Cleans a home up, and fails if anything but zygotes still runs in it. */
export async function endHome(home: Home): Promise<void> {
  try {
    await expectOnlyZygotes(home);
  } finally {
    await home.close();
  }
}

/** A service beside the one of the file, for one test. */
export async function anotherService(options: ServiceOptions): Promise<Service> {
  const service = await startService(options);
  onTestFinished(async () => {
    await service.stop();
  });
  return service;
}

/** What it says, and the code it ends with, where it has a reason not to start. One that starts all the same is ended at once, and fails. */
export async function refusalOf(
  home: Home,
  args: string[],
  env: Record<string, string | undefined> = {},
): Promise<Ended> {
  const { ended, stdout, kill: end } = spawnService({ home, args, env });
  const deadline = Date.now() + HANGS_AFTER / 2;
  const watch = setInterval(() => (stdout() !== '' || Date.now() > deadline) && end('SIGKILL'), 10);
  const result = await ended;
  clearInterval(watch);
  if (result.signal !== null) throw new Error(`It did not end; it said: ${result.stdout}${result.stderr}`);
  return result;
}

/** Starts it as a user does, on any port that is free; its first line says which. */
export async function startService(options: ServiceOptions): Promise<Service> {
  const { home } = options;
  const child = spawnService(options);
  const running = {
    async close() {
      child.kill('SIGINT');
      await child.ended;
    },
  };
  home.agents.add(running);
  const url = await waitFor('the service listens', () => {
    if (child.hasEnded()) throw new Error(`The service ended: ${child.stderr()}`);
    return /^Cuvette \S+ · (\S+) · .*\n/.exec(child.stdout())?.[1];
  });
  return {
    ...createCaller(url),
    home,
    url,
    pid: child.pid,
    stdout: child.stdout,
    stderr: child.stderr,
    as: (headers, base = '') => createCaller(url, base, headers),
    async stop(signal = 'SIGINT') {
      home.agents.delete(running);
      child.kill(signal);
      return child.ended;
    },
  };
}

function spawnService({ home, args = [], env = {}, cwd }: ServiceOptions) {
  // A port that is given comes after this one, and counts.
  const child = spawn(process.execPath, [MAIN, 'serve', '--port', '0', ...args], {
    cwd: cwd ?? home.project(),
    env: home.env(env),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { stdout, stderr } = collectOutput(child);
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code, signal) => resolve({ code, signal, stdout: stdout(), stderr: stderr() }));
  });
  return {
    pid: child.pid ?? 0,
    stdout,
    stderr,
    ended,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
  };
}

// -- what code does, seen from outside --------------------------------------------------------------

export interface Mark {
  /** The path for code. */
  readonly path: string;
  isThere(): boolean;
}

let marks = 0;

/** A file for code to leave in its workspace, in whichever session, under a name that nothing else has. */
export function unusedMark({ data }: Home): Mark {
  marks += 1;
  const name = `mark-${marks}`;
  const sessions = join(data, 'sessions');
  return {
    path: `/mnt/data/${name}`,
    isThere: () => readdirSync(sessions).some((id) => existsSync(join(sessions, id, 'workspace', name))),
  };
}

/** Ends the zygotes of a home, which nobody needs any more, and fails if anything else goes on. */
async function expectOnlyZygotes(home: Home): Promise<void> {
  for (const { pid } of processesOf(home.root)) if (nameOf(pid) === 'cuvette-zygote') kill(pid, 'SIGTERM');
  const deadline = Date.now() + HANGS_AFTER / 2;
  let left = processesOf(home.root);
  while (left.length > 0 && Date.now() < deadline) {
    await sleep(20);
    left = processesOf(home.root);
  }
  if (left.length > 0)
    throw new Error(`Left: ${left.map(({ pid, command }) => `${pid} ${nameOf(pid)} ${command}`).join('\n')}`);
}
