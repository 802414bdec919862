/**
 * Makes control groups, if this machine allows it: one folder for the zygotes of all servers, in which each zygote makes its own and one
 * for each session. Uses version 2 if it has the controllers, else version 1.
 */

import { createHash } from 'node:crypto';
import { chownSync, existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ancestorsOf, isRunning } from '../process-tree.ts';

const CONTROLLERS = ['memory', 'pids', 'cpu'] as const;
type Controller = (typeof CONTROLLERS)[number];

export interface Cgroups {
  version: 1 | 2;
  folders: Partial<Record<Controller, string>>;
}

const OWN = 'cuvette';
/** Milliseconds: between two tries, for zygotes that may still be ending, and for the kernel to let go of the processes of those that have. */
const PAUSE = 10;
const WHILE_ENDING = 2000;
const AFTER_THE_END = 15_000;

/** Makes the folders for the servers of one runtime folder, for a user to work in; nothing where the machine does not let us. */
export function openCgroups(runtime: string, user: number | undefined): Cgroups | undefined {
  const found = findVersion2() ?? findVersion1();
  if (!found) return undefined;
  const folders: Cgroups['folders'] = {};
  const mark = createHash('sha256').update(runtime).digest('hex').slice(0, 8);
  for (const [controller, base] of Object.entries(found.bases) as [Controller, string][]) {
    const folder = join(base, `${OWN}-${mark}`);
    try {
      mkdirSync(folder, { recursive: true });
      if (user !== undefined) giveTo(folder, user);
      if (found.version === 2) enable(folder);
      folders[controller] = folder;
    } catch {} // This one is not ours to use.
  }
  return Object.keys(folders).length > 0 ? { version: found.version, folders } : undefined;
}

/** Removes what zygotes that have ended left. False if the kernel still counts a process of theirs. */
export function sweepCgroups({ folders }: Cgroups): boolean {
  let isSwept = true;
  for (const folder of new Set(Object.values(folders))) {
    for (const name of listed(folder)) {
      if (isAlive(name)) continue;
      for (const session of listed(join(folder, name))) tryRemove(join(folder, name, session));
      isSwept = tryRemove(join(folder, name)) && isSwept;
    }
  }
  return isSwept;
}

/** Zygotes that were just dismissed take a moment to end; those that live on keep theirs. */
export async function closeCgroups(cgroups: Cgroups): Promise<void> {
  const folders = [...new Set(Object.values(cgroups.folders))];
  for (let waited = 0; ; waited += PAUSE) {
    const isSwept = sweepCgroups(cgroups);
    if (folders.map(tryRemove).every(Boolean)) return;
    if (waited >= (isSwept ? WHILE_ENDING : AFTER_THE_END)) return;
    await sleep(PAUSE);
  }
}

/** A zygote names its folder by its process: z, its id, and when it started. */
function isAlive(name: string): boolean {
  const [, pid = '', started = ''] = /^z(\d+)-(\d+)$/.exec(name) ?? [];
  return isRunning({ pid: Number(pid), started });
}

function findVersion2(): { version: 2; bases: Partial<Record<Controller, string>> } | undefined {
  const path = ownGroups().get('');
  const mount = mounts().find(({ kind }) => kind === 'cgroup2');
  if (path === undefined || !mount) return undefined;
  const base = join(mount.point, relative(mount.root, path));
  const has = words(join(base, 'cgroup.controllers'));
  const wanted = CONTROLLERS.filter((name) => has.includes(name));
  if (!wanted.includes('memory') || !wanted.includes('pids')) return undefined;
  const isReady = () => wanted.every((name) => words(join(base, 'cgroup.subtree_control')).includes(name));
  if (!isReady()) enable(base);
  if (!isReady() && stepAside(base)) enable(base);
  return isReady() ? { version: 2, bases: Object.fromEntries(wanted.map((name) => [name, base])) } : undefined;
}

function enable(folder: string): void {
  for (const name of CONTROLLERS) {
    try {
      writeFileSync(join(folder, 'cgroup.subtree_control'), `+${name}`);
    } catch {}
  }
}

/** A group of version 2 has either processes or groups below it: ours goes one down, if nobody else's is there. */
function stepAside(base: string): boolean {
  const own = new Set([process.pid, ...ancestorsOf(process.pid).map(({ pid }) => pid)].map(String));
  const inside = words(join(base, 'cgroup.procs'));
  if (!inside.every((pid) => own.has(pid))) return false;
  try {
    const aside = join(base, `${OWN}-server`);
    mkdirSync(aside, { recursive: true });
    for (const pid of inside) writeFileSync(join(aside, 'cgroup.procs'), pid);
    return true;
  } catch {
    return false;
  }
}

function findVersion1(): { version: 1; bases: Partial<Record<Controller, string>> } | undefined {
  const own = ownGroups();
  const all = mounts().filter(({ kind }) => kind === 'cgroup');
  const bases: Partial<Record<Controller, string>> = {};
  for (const controller of CONTROLLERS) {
    const mount = all.find(({ options }) => options.includes(controller));
    const path = own.get(controller);
    if (mount && path !== undefined) bases[controller] = join(mount.point, relative(mount.root, path));
  }
  return Object.keys(bases).length > 0 ? { version: 1, bases } : undefined;
}

/** The group of this process for each controller; that of version 2 under the empty name. */
function ownGroups(): Map<string, string> {
  const found = new Map<string, string>();
  for (const line of lines('/proc/self/cgroup')) {
    const [, names = '', path = ''] = line.split(':');
    for (const name of names.split(',')) found.set(name, path);
  }
  return found;
}

function mounts(): { root: string; point: string; kind: string; options: string[] }[] {
  return lines('/proc/self/mountinfo').flatMap((line) => {
    const [before = '', after = ''] = line.split(' - ');
    const [, , , root = '', point = ''] = before.split(' ');
    const [kind = '', , options = ''] = after.split(' ');
    return kind.startsWith('cgroup') ? [{ root, point, kind, options: options.split(',') }] : [];
  });
}

function giveTo(folder: string, user: number): void {
  chownSync(folder, user, user);
  for (const file of ['cgroup.procs', 'cgroup.subtree_control', 'tasks']) {
    const path = join(folder, file);
    if (existsSync(path)) chownSync(path, user, user);
  }
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
  } catch {
    return [];
  }
}

/** False while somebody is in it. */
function tryRemove(folder: string): boolean {
  try {
    rmdirSync(folder);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT';
  }
  return true;
}

function words(path: string): string[] {
  return lines(path).flatMap((line) => line.split(' '));
}

function lines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n').filter(Boolean);
  } catch {
    return [];
  }
}
