/** Starts and finds zygotes: one for each Python and set of preloaded modules, shared by all servers of this user. */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../../errors.ts';
import { withLock } from '../../file-lock.ts';
import { readLines, writeLine } from '../../json-lines.ts';
import { packageFile } from '../../package-root.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { VERSION } from '../../version.ts';
import type { LiveInterpreter } from '../interpreter.ts';
import { connectDriver, openSocket } from './driver.ts';

const DRIVER = packageFile('python', 'cuvette_driver', '__main__.py');
const RETRY_PAUSES_MS = [0, 50, 200, 1000];
const START_TIMEOUT_MS = 20_000;
const DISMISS_TIMEOUT_MS = 3000;

export interface ZygoteSpec {
  python: string;
  /** Modules that sessions find already imported; or `PROGRAMS`. */
  preload: string[];
}

/** In place of modules: a zygote for programs of other languages. */
export const PROGRAMS = ['--programs'];

export interface SpawnRequest {
  /** Where the session's driver is to listen. */
  socket: string;
  cwd: string;
  /** Mounts that folder at /mnt/data for the session. */
  place?: boolean;
  /** For a confined session: its own folders, as the driver sees them, and where code finds them. */
  mounts?: [string, string][];
  env: Record<string, string>;
  linger: number;
  startup: string | null;
  /** For a keeper of programs: a Python, as code sees it, that is to be the session's interpreter and is confined with it. */
  interpreter?: string;
  /** A process, by its id and the time it started, with which the session's driver ends. */
  owner?: [number, string];
}

export interface Zygotes {
  /** Forks a driver for a session; resolves once its socket can be connected to. */
  spawn(spec: ZygoteSpec, request: SpawnRequest): Promise<void>;
  /** Connects to a driver that listens on this socket; undefined if none does. */
  connect(socket: string): Promise<LiveInterpreter | undefined>;
  /** Starts the zygote ahead of need. */
  prepare(spec: ZygoteSpec): Promise<void>;
  /** Disconnects from the zygotes; those that no other server uses end now. Waits for that if `isAwaited`. */
  dismiss(isAwaited: boolean): Promise<void>;
  close(): void;
}

/** `env` is what the zygotes themselves are started with. In a sandbox, they are of another kind, and what they fork is confined. */
export function createZygotes(runtime: string, env: NodeJS.ProcessEnv = process.env, sandbox?: Sandbox): Zygotes {
  const live = new Map<string, Promise<Zygote>>();
  let isOver = false;

  function find(spec: ZygoteSpec): Promise<Zygote> {
    const key = keyOf(spec);
    const known = live.get(key);
    if (known) return known;
    const starting = sandbox
      ? openConfined(spec, sandbox, env)
      : openZygote(spec, join(runtime, 'z', key), (path) => ({
          argv: [spec.python, DRIVER, path, ...spec.preload],
          env,
        }));
    live.set(key, starting);
    const forget = () => live.get(key) === starting && live.delete(key);
    starting.then((zygote) => zygote.socket.once('close', forget), forget);
    return starting;
  }

  return {
    async spawn(spec, request) {
      for (const pause of [...RETRY_PAUSES_MS, undefined]) {
        try {
          return await (await find(spec)).ask({ op: 'spawn', ...request });
        } catch (error) {
          if (isOver || pause === undefined || !(error instanceof ZygoteEnded)) throw error;
          // It was killed from outside, or had just had nobody to serve for long enough. No code has run yet, and another can do it,
          // once nothing of the first listens any more.
          await sleep(pause);
        }
      }
    },
    connect: connectDriver,
    async prepare(spec) {
      await find(spec);
    },
    async dismiss(isAwaited) {
      isOver = true;
      const all = await Promise.allSettled(live.values());
      live.clear();
      await Promise.all(all.map((one) => one.status === 'fulfilled' && one.value.dismiss(isAwaited)));
    },
    close() {
      isOver = true;
      for (const starting of live.values()) starting.then((zygote) => zygote.socket.destroy()).catch(() => {});
      live.clear();
    },
  };
}

/** Thrown when a zygote ends in the middle of a request. */
class ZygoteEnded extends CuvetteError {
  constructor(message: string) {
    super('interpreter_failed', message);
  }
}

interface Zygote {
  socket: Socket;
  ask(message: object): Promise<void>;
  dismiss(isAwaited: boolean): Promise<void>;
}

/** Sessions that see or may do something else need another zygote, so all of that is part of its key. */
async function openConfined(spec: ZygoteSpec, sandbox: Sandbox, env: NodeJS.ProcessEnv): Promise<Zygote> {
  const root = await sandbox.rootFor(spec.python);
  const folder = join(sandbox.runtime, 'z', keyOf(spec, sandbox.describe(root)));
  return openZygote(spec, folder, (path) => {
    sandbox.give(folder);
    return { argv: sandbox.command(spec.python, root, folder, [sandbox.inside(path), ...spec.preload]), env };
  });
}

/** How to start one that listens on that socket. */
type Start = (path: string) => { argv: string[]; env: NodeJS.ProcessEnv };

async function openZygote(spec: ZygoteSpec, folder: string, start: Start): Promise<Zygote> {
  const path = join(folder, 'sock');
  const found = await openSocket(path);
  if (found) return talkTo(found, spec, folder);
  // Two servers that come at once share one zygote.
  const started = await withLock(
    `${folder}.lock`,
    undefined,
    async () => (await openSocket(path)) ?? launch(spec, folder, path, start),
  );
  return talkTo(started, spec, folder);
}

async function launch(spec: ZygoteSpec, folder: string, path: string, start: Start): Promise<Socket> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  rmSync(path, { force: true });
  const logPath = join(folder, 'log');
  const log = openSync(logPath, 'w', 0o600);
  const { argv, env } = start(path);
  const [command = '', ...args] = argv;
  const child = spawn(command, args, {
    cwd: '/',
    detached: true,
    env,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  let failure: string | undefined;
  child.once('error', (error) => {
    failure = error.message;
  });
  child.once('exit', (code, signal) => {
    failure = `it ended with ${signal ?? `code ${code}`}`;
  });
  child.unref();
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (let wait = 2; Date.now() < deadline; wait = Math.min(wait * 1.5, 50)) {
    const socket = await openSocket(path);
    if (socket) return socket;
    if (failure) break;
    await sleep(wait);
  }
  throw new CuvetteError(
    'interpreter_failed',
    `${spec.python} could not be started as an interpreter: ${failure ?? 'it did not answer in time'}.${tailOf(logPath)}`,
  );
}

function talkTo(socket: Socket, spec: ZygoteSpec, folder: string): Zygote {
  const waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  let count = 0;
  const messageOf = (problem: string) => `${spec.python} could not start a session: ${problem}.`;
  const fail = (id: number, error: CuvetteError) => {
    waiting.get(id)?.reject(error);
    waiting.delete(id);
  };
  readLines(socket, (line) => {
    const answer = JSON.parse(line) as { id: number; error?: string };
    if (answer.error) return fail(answer.id, new CuvetteError('interpreter_failed', messageOf(answer.error)));
    waiting.get(answer.id)?.resolve();
    waiting.delete(answer.id);
  });
  socket.on('error', () => socket.destroy());
  socket.once('close', () => {
    for (const id of [...waiting.keys()]) fail(id, new ZygoteEnded(messageOf('its zygote ended')));
  });
  socket.unref();
  return {
    socket,
    ask(message) {
      count += 1;
      const id = count;
      return new Promise((resolve, reject) => {
        waiting.set(id, { resolve, reject });
        writeLine(socket, { ...message, id });
      });
    },
    async dismiss(isAwaited) {
      const closed = new Promise<void>((resolve) => {
        if (socket.closed) return resolve();
        socket.once('close', () => resolve());
        writeLine(socket, { op: 'dismiss' });
        socket.end();
      });
      await closed;
      // Its folder is the last thing that it removes.
      const deadline = Date.now() + DISMISS_TIMEOUT_MS;
      while (isAwaited && existsSync(folder) && Date.now() < deadline) await sleep(10);
    },
  };
}

/** Another driver, another zygote: one that an older Cuvette left running is not talked to. */
function keyOf(spec: ZygoteSpec, ...more: unknown[]): string {
  const folder = dirname(DRIVER);
  const files = readdirSync(folder).filter((name) => name.endsWith('.py'));
  const changed = files.map((name) => statSync(join(folder, name)).mtimeMs);
  return createHash('sha256')
    .update(JSON.stringify([VERSION, DRIVER, changed, spec, ...more]))
    .digest('hex')
    .slice(0, 12);
}

function tailOf(path: string): string {
  try {
    const lines = readFileSync(path, 'utf8').trim().split('\n').slice(-5);
    return lines[0] ? ` Its last words: ${lines.join(' | ')}` : '';
  } catch {
    return '';
  }
}
