/** Decides where files live on this machine. It imports little, because the shell client loads it before anything else. */

import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { CuvetteError, messageOf } from './errors.ts';

/** A socket's path holds at most 103 bytes everywhere; what Cuvette adds to the runtime folder takes 38. */
const LONGEST_RUNTIME = 65;

export interface Paths {
  /** Can be deleted at any time: the managed Python environment. */
  cache: string;
  /** History, outputs, saved interpreters. */
  data: string;
  /** Sockets and the records of live servers; only its owner can enter it. */
  runtime: string;
}

export function findPaths(env: NodeJS.ProcessEnv = process.env): Paths {
  if (env.CUVETTE_HOME) {
    const home = env.CUVETTE_HOME;
    return { cache: join(home, 'cache'), data: join(home, 'data'), runtime: join(home, 'run') };
  }
  const cache = join(env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'cuvette');
  const data = join(env.XDG_DATA_HOME || join(homedir(), '.local', 'share'), 'cuvette');
  const runtime = env.XDG_RUNTIME_DIR ? join(env.XDG_RUNTIME_DIR, 'cuvette') : join(cache, 'run');
  return { cache, data, runtime };
}

/** Makes a folder that only its owner can enter; refuses one that somebody else controls. */
export function privateFolder(path: string): string {
  const { isForeign, mode } = usableFolder(path, 'set CUVETTE_HOME to a folder of yours');
  if (isForeign || (mode & 0o077) !== 0) {
    throw new CuvetteError(
      'folder_unusable',
      `${path} must belong to you alone (${isForeign ? 'it belongs to another user' : 'others can enter it'}). ` +
        `Run: chmod 700 ${path}, or set CUVETTE_HOME to a folder of yours.`,
    );
  }
  return path;
}

/** Makes a folder that others may look into, but not change: what is private is made private below it. */
export function ownFolder(path: string): string {
  const { isForeign, mode } = usableFolder(path, 'name another');
  if (isForeign || (mode & 0o022) !== 0) {
    throw new CuvetteError(
      'folder_unusable',
      `${path} must be yours to change, and nobody else's (${isForeign ? 'it belongs to another user' : 'others can write to it'}). ` +
        `Run: chmod go-w ${path}, or name another folder.`,
    );
  }
  return path;
}

function usableFolder(path: string, otherwise: string): { isForeign: boolean; mode: number } {
  try {
    makeFolders(path);
    accessSync(path, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw new CuvetteError(
      'folder_unusable',
      `${path} cannot be written (${messageOf(error)}). Make it writable, or ${otherwise}.`,
      { cause: error },
    );
  }
  const { uid, mode } = statSync(path);
  return { isForeign: process.getuid !== undefined && uid !== process.getuid(), mode };
}

/** Node's own recursive mkdir never ends where a folder exists but takes no children, as /proc. */
function makeFolders(path: string): void {
  if (existsSync(path)) return;
  makeFolders(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // Somebody else may have made it just now.
  }
}

/** The folder for sockets, whose paths the system allows only so many bytes. */
export function runtimeFolder(path: string): string {
  if (Buffer.byteLength(path) > LONGEST_RUNTIME) {
    throw new CuvetteError(
      'folder_unusable',
      `${path} is too long for sockets (at most ${LONGEST_RUNTIME} bytes). Set CUVETTE_HOME to a folder with a shorter path.`,
    );
  }
  return privateFolder(path);
}
