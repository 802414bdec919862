/** Builds the command line by which bubblewrap makes a root for the driver from a list of mounts. */

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { findProgram } from '../search-path.ts';
import { foldersAbove, type Mount, SEEN } from './layout.ts';

export interface Root {
  mounts: Mount[];
  /** What a link holds, and where it stands. */
  links: [string, string][];
  /** Folders that something is mounted on later. */
  folders: string[];
}

const TEMPORARY = [['/tmp', '/var/tmp']] as const;

/** `isRoot`: the driver gives up root itself, inside, where it can still be reached: its Python may be in a folder that only root can enter. */
export function bubblewrapArguments(root: Root, isRoot: boolean, env: Record<string, string>): string[] {
  const identity = isRoot
    ? ['--cap-drop', 'ALL', '--cap-add', 'CAP_SETUID', '--cap-add', 'CAP_SETGID']
    : ['--unshare-user'];
  const links = [...root.links, ...TEMPORARY];
  const folders = [...root.folders, ...Object.values(SEEN), '/run'];
  const targets = [...root.mounts.map(({ target }) => target), ...links.map(([, path]) => path), ...folders];
  return [
    ...identity,
    ...[...foldersAbove(targets), ...folders].flatMap((folder) => ['--dir', folder]),
    ...links.flatMap(([target, path]) => ['--symlink', target, path]),
    // The machine's own, whole: without it, the kernel lets nobody but root mount another.
    ...['--bind', '/proc', '/proc'],
    ...['--dev', '/dev'],
    ...root.mounts.flatMap(({ source, target, isWritable }) => [isWritable ? '--bind' : '--ro-bind', source, target]),
    ...['--remount-ro', '/dev', '--remount-ro', '/'],
    ...['--chdir', '/', '--clearenv'],
    ...Object.entries(env).flatMap(([name, value]) => ['--setenv', name, value]),
    '--',
  ];
}

export function findBubblewrap(env?: NodeJS.ProcessEnv): string | undefined {
  return findProgram('bwrap', env);
}

/** Nothing, if it cannot even be run. */
export async function bubblewrapVersion(path: string): Promise<string | undefined> {
  try {
    const { stdout } = await promisify(execFile)(path, ['--version'], { timeout: 10_000 });
    return /(\d[\d.]*)/.exec(stdout)?.[1] ?? 'of an unknown version';
  } catch {
    return undefined;
  }
}
