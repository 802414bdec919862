/** Starts and finds zygotes: one for each Python and set of preloaded modules, shared by all servers of this user. */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { closeSync, openSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import type { Socket } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../../errors.ts';
import { withLock } from '../../file-lock.ts';
import { readLines, writeLine } from '../../json-lines.ts';
import { packageFile } from '../../package-root.ts';
import { privateFolder } from '../../paths.ts';
import { VERSION } from '../../version.ts';
import { openSocket } from './driver.ts';

const DRIVER = packageFile('python', 'cuvette_driver', '__main__.py');
const PATIENCE = 20_000;

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
  env: Record<string, string>;
  linger: number;
  startup: string | null;
  /** A process, by its id and the time it started, with which the session's driver ends. */
  owner?: [number, string];
}

export interface Zygotes {
  /** Forks a driver for a session; resolves once its socket can be connected to. */
  spawn(spec: ZygoteSpec, request: SpawnRequest): Promise<void>;
  /** Starts the zygote ahead of need. */
  prepare(spec: ZygoteSpec): Promise<void>;
  close(): void;
}

/** `env` is what the zygotes themselves are started with. */
export function createZygotes(runtime: string, env: NodeJS.ProcessEnv = process.env): Zygotes {
  const live = new Map<string, Promise<Zygote>>();

  function find(spec: ZygoteSpec): Promise<Zygote> {
    const key = keyOf(spec);
    const known = live.get(key);
    if (known) return known;
    const starting = openZygote(spec, join(runtime, 'z', key), env);
    live.set(key, starting);
    const forget = () => live.get(key) === starting && live.delete(key);
    starting.then((zygote) => zygote.socket.once('close', forget), forget);
    return starting;
  }

  return {
    async spawn(spec, request) {
      const zygote = await find(spec);
      await zygote.ask({ op: 'spawn', ...request });
    },
    async prepare(spec) {
      await find(spec);
    },
    close() {
      for (const starting of live.values()) starting.then((zygote) => zygote.socket.destroy()).catch(() => {});
      live.clear();
    },
  };
}

interface Zygote {
  socket: Socket;
  ask(message: object): Promise<void>;
}

async function openZygote(spec: ZygoteSpec, folder: string, env: NodeJS.ProcessEnv): Promise<Zygote> {
  const path = join(folder, 'sock');
  const found = await openSocket(path);
  if (found) return talkTo(found, spec);
  // Two servers that come at once share one zygote.
  const started = await withLock(
    `${folder}.lock`,
    undefined,
    async () => (await openSocket(path)) ?? launch(spec, folder, path, env),
  );
  return talkTo(started, spec);
}

async function launch(spec: ZygoteSpec, folder: string, path: string, env: NodeJS.ProcessEnv): Promise<Socket> {
  privateFolder(folder);
  rmSync(path, { force: true });
  const logPath = join(folder, 'log');
  const log = openSync(logPath, 'w', 0o600);
  const child = spawn(spec.python, [DRIVER, path, ...spec.preload], {
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
  const deadline = Date.now() + PATIENCE;
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

function talkTo(socket: Socket, spec: ZygoteSpec): Zygote {
  const waiting = new Map<number, { resolve: () => void; reject: (error: Error) => void }>();
  let count = 0;
  const fail = (id: number, problem: string) => {
    waiting
      .get(id)
      ?.reject(new CuvetteError('interpreter_failed', `${spec.python} could not start a session: ${problem}.`));
    waiting.delete(id);
  };
  readLines(socket, (line) => {
    const answer = JSON.parse(line) as { id: number; error?: string };
    if (answer.error) return fail(answer.id, answer.error);
    waiting.get(answer.id)?.resolve();
    waiting.delete(answer.id);
  });
  socket.on('error', () => socket.destroy());
  socket.once('close', () => {
    for (const id of [...waiting.keys()]) fail(id, 'its zygote ended');
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
  };
}

/** Another driver, another zygote: one that an older Cuvette left running is not talked to. */
function keyOf(spec: ZygoteSpec): string {
  const folder = dirname(DRIVER);
  const files = readdirSync(folder).filter((name) => name.endsWith('.py'));
  const changed = files.map((name) => statSync(join(folder, name)).mtimeMs);
  return createHash('sha256')
    .update(JSON.stringify([VERSION, DRIVER, changed, spec]))
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
