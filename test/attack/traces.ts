/** Lists what a service leaves on the machine: its processes, mounts, control groups, sockets, files and shared memory. */

import { type Dirent, lstatSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HANGS_AFTER, type Home, nameOf, pacedLook, processesOf } from '../e2e/harness.ts';

export interface Trace {
  processes: string[];
  mounts: string[];
  cgroups: string[];
  files: string[];
  sharedMemory: string[];
}

/** Milliseconds between two looks at a service that gets ready, and how many must show the same. */
const BETWEEN_LOOKS = 200;
const STEADY_LOOKS = 8;

/** What a database and the note of a log leave of themselves. */
const PASSING = /\.db(-wal|-shm|-journal)?$|\/log$/;

export function traceOf(home: Home): Trace {
  const pids = pidsAround(home);
  return {
    processes: pids.map((pid) => nameOf(pid)).filter(Boolean),
    mounts: read('/proc/self/mountinfo')
      .split('\n')
      .filter((line) => line.includes(home.root)),
    cgroups: cgroupsOf(home, new Set(pids)),
    files: ['r', 'd'].flatMap((folder) => filesBelow(join(home.root, folder))).map(withoutNumber),
    sharedMemory: ['shm', 'sem', 'msg'].flatMap((kind) =>
      read(`/proc/sysvipc/${kind}`)
        .trim()
        .split('\n')
        .slice(1)
        .map((line) => `${kind} ${line.trim().split(/\s+/)[0]}`),
    ),
  };
}

/** What is in the second trace and not in the first; of two that are alike, one more. */
export function extraOf(before: Trace, after: Trace): string[] {
  const kinds = ['processes', 'mounts', 'cgroups', 'files', 'sharedMemory'] as const;
  return kinds.flatMap((kind) => {
    const known = [...before[kind]];
    return after[kind].flatMap((one) => {
      const at = known.indexOf(one);
      if (at === -1) return [`${kind}: ${one}`];
      known.splice(at, 1);
      return [];
    });
  });
}

/** Processes end, and folders are removed, a moment after the answer: what is left counts once it has had time. */
export async function settled(look: () => string[]): Promise<string[]> {
  const deadline = Date.now() + HANGS_AFTER / 2;
  const lookAgain = pacedLook(look, 100);
  let left = await lookAgain();
  while (left.length > 0 && Date.now() < deadline) left = await lookAgain();
  return left;
}

/** The trace once it does not change any more, and nobody in it works: what is got ready in the background is ready. */
export async function steadyTraceOf(home: Home): Promise<Trace> {
  let [last, sameFor] = [traceOf(home), 0];
  while (sameFor < STEADY_LOOKS) {
    await sleep(BETWEEN_LOOKS);
    const next = traceOf(home);
    const isSame = extraOf(last, next).length + extraOf(next, last).length === 0;
    sameFor = isSame && !pidsAround(home).some(isAtWork) ? sameFor + 1 : 0;
    last = next;
  }
  return last;
}

/** Whether it runs, waits for its turn to run, or waits for a disk. */
function isAtWork(pid: number): boolean {
  return /\) [RD]/.test(read(`/proc/${pid}/stat`));
}

/** The processes of a home, and all below them. */
export function pidsAround(home: Home): number[] {
  return processesOf(home.root).map(({ pid }) => pid);
}

/** Folders of control groups of a zygote, by the home it was seen in: they are known as ours when all its processes are gone. */
const zygoteGroups = new Map<string, Set<string>>();

/** The groups of our zygotes and, without their numbers, of the sessions below: one that is ready takes the place of another. */
function cgroupsOf(home: Home, pids: Set<number>): string[] {
  const all = foldersBelow('/sys/fs/cgroup', 8).filter((folder) => /\/cuvette-[^/]+\/[^/]+/.test(folder));
  const zygoteOf = (folder: string) => /^.*?\/cuvette-[^/]+\/[^/]+/.exec(folder)?.[0] ?? '';
  const ours = zygoteGroups.get(home.root) ?? new Set();
  zygoteGroups.set(home.root, ours);
  for (const folder of all)
    if (
      read(join(folder, 'cgroup.procs'))
        .split('\n')
        .filter(Boolean)
        .some((pid) => pids.has(Number(pid)))
    )
      ours.add(zygoteOf(folder));
  return all.filter((folder) => ours.has(zygoteOf(folder))).map((folder) => folder.replace(/\/\d+$/, '/*'));
}

function foldersBelow(folder: string, depth: number): string[] {
  if (depth === 0) return [];
  return list(folder)
    .filter((entry) => entry.isDirectory())
    .flatMap(({ name }) => [join(folder, name), ...foldersBelow(join(folder, name), depth - 1)]);
}

function filesBelow(folder: string): string[] {
  return list(folder)
    .flatMap((entry) => {
      const path = join(folder, entry.name);
      return entry.isDirectory() ? [path, ...filesBelow(path)] : [path];
    })
    .filter((path) => !PASSING.test(path));
}

/** Bytes that the files below a folder take on the disk. */
export function takenBelow(folder: string): number {
  return filesBelow(folder)
    .map((path) => lstatSync(path, { throwIfNoEntry: false })?.blocks ?? 0)
    .reduce((sum, blocks) => sum + blocks * 512, 0);
}

/** Keepers that are ready for the next program have numbers, and take each other's place. */
function withoutNumber(path: string): string {
  return path.replace(/\/r\.\d+\.\d+/, '/r.*');
}

function list(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
