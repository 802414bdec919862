/** Confines sessions for the rest of the program: how a zygote is started inside, where paths are seen there, and who owns the files. */

import { execFile } from 'node:child_process';
import { chmodSync, lchownSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { packageFile } from '../package-root.ts';
import { bubblewrapArguments, type Root } from './bubblewrap.ts';
import { type Cgroups, closeCgroups, openCgroups, sweepCgroups } from './cgroups.ts';
import { removeDeadSockets } from './dead-sockets.ts';
import {
  holdsSecret,
  INSIDE,
  isAbove,
  type Mount,
  SEEN,
  same,
  systemMounts,
  toolMounts,
  withoutNested,
} from './layout.ts';
import { type Policy, USER_IN_PLACE_OF_ROOT } from './policy.ts';

export interface Sandbox {
  readonly policy: Policy;
  readonly cgroups: Cgroups | undefined;
  /** Where what is confined has its sockets. */
  readonly runtime: string;
  /** The user whom files must belong to for code to change them, where that is not the user of this process. */
  readonly owner: number | undefined;
  /** Where commands are found inside. */
  readonly searchPath: string;
  /** Makes a file or folder of ours the code's. */
  give(path: string): void;
  /** Where a path of this machine is seen by the driver. */
  inside(path: string): string;
  /** What stays the same for as long as a session can be gone on with: the policy, and where its folders and its way out are. */
  readonly identity: string;
  /** What a zygote of this Python is to see. */
  rootFor(python: string): Promise<Mount[]>;
  /** All by which a zygote with this root differs from others: one that was started for something else must not serve in its place. */
  describe(root: Mount[]): string;
  /** The command line that starts the driver inside; puts what it needs into the zygote's folder. */
  command(python: string, root: Mount[], folder: string, args: string[]): string[];
  /** Confines a process as sessions will be, and throws what goes wrong. */
  rehearse(python: string): Promise<{ seccomp: boolean }>;
  /** Removes what is left of those that have ended. */
  close(): Promise<void>;
}

export interface SandboxOptions {
  bubblewrap: string;
  policy: Policy;
  /** The runtime folder of this user's servers. */
  runtime: string;
  /** Where sessions have their folders. */
  sessions: string;
  /** A folder that is the workspace itself, at its own path. */
  project?: string | undefined;
  /** The Unix socket of the proxy, below `runtime`, where the policy has one. */
  proxy?: string | undefined;
  /** Tools and folders that code may read, beside the system's own. */
  tools: string[];
  readable: string[];
}

const DRIVER = packageFile('python', 'cuvette_driver');
const CHECK = join(DRIVER, 'confinement_check.py');
const ENTRY = join(DRIVER, '__main__.py');
const PLACES = 'import json,sys;print(json.dumps(sorted({sys.prefix,sys.base_prefix,sys.exec_prefix})))';
const PROCESSOR_FILES = ['online', 'possible', 'present'];

export function openSandbox(options: SandboxOptions): Sandbox {
  const { policy, sessions, project } = options;
  const isRoot = process.getuid?.() === 0;
  const owner = isRoot ? USER_IN_PLACE_OF_ROOT : undefined;
  const cgroups = openCgroups(options.runtime, owner);
  if (cgroups) sweepCgroups(cgroups);
  const runtime = join(options.runtime, 'c');
  const give = (path: string) => {
    if (owner !== undefined) lchownSync(path, owner, owner);
  };
  for (const folder of ['', 'k', 'z']) {
    mkdirSync(join(runtime, folder), { recursive: true, mode: 0o700 });
    give(join(runtime, folder));
    if (folder) removeDeadSockets(join(runtime, folder), join(INSIDE.runtime, folder));
  }
  mkdirSync(sessions, { recursive: true, mode: 0o700 });
  // Entered by the code's user, listed by nobody; what is above it is closed to others.
  if (isRoot) chmodSync(sessions, 0o711);

  const places: [string, string][] = [
    [runtime, INSIDE.runtime],
    [sessions, INSIDE.sessions],
    ...(project === undefined ? [] : ([[project, INSIDE.project]] as [string, string][])),
  ];
  const searchPath = [...new Set([...options.tools.map((tool) => dirname(tool)), ...systemFolders()])].join(delimiter);
  const secret = [homedir(), join(homedir(), '.local', 'share'), options.runtime, sessions];
  const known = new Map<string, Promise<string[]>>();
  const identity = JSON.stringify([policy, sessions, project ?? null, options.proxy ?? null]);

  function inside(path: string): string {
    const place = places.find(([source]) => isAbove(source, path));
    if (!place) throw new Error(`${path} is not seen from inside`);
    return join(place[1], relative(place[0], path));
  }

  async function rootFor(python: string): Promise<Mount[]> {
    const prefixes = known.get(python) ?? prefixesOf(python);
    known.set(python, prefixes);
    const { mounts } = systemMounts(policy.network === 'allow');
    const tools = options.tools.flatMap((tool) => toolMounts(tool, secret));
    const own = (await prefixes).filter((prefix) => !isAbove('/usr', prefix));
    const open = own.find((prefix) => holdsSecret(prefix, secret));
    if (open) throw new Error(`${python} is installed in ${open}, which has files of yours in it: code would see them`);
    const readable = [...(await prefixes), DRIVER, ...options.readable].map(same);
    return withoutNested([...mounts, ...tools, ...readable]);
  }

  /** With what only the driver sees of it. */
  function wholeRoot(seen: Mount[]): Root {
    const groups = Object.entries(cgroups?.folders ?? {}).map(([kind, source]) => ({
      source,
      target: join(INSIDE.cgroup, kind),
      isWritable: true,
    }));
    const own = places.map(([source, target]) => ({ source, target, isWritable: true }));
    return {
      mounts: [...seen, ...own, ...groups],
      links: systemMounts(false).links,
      folders: project === undefined ? [] : [project],
    };
  }

  function command(python: string, root: Mount[], folder: string, args: string[]): string[] {
    const seen = inside(folder);
    const kept = root.map(({ target }) => target).filter(isBelowSessionFolder);
    const proxy = options.proxy && inside(options.proxy);
    const written = writeFiles(folder, { policy, cgroups, seen, kept, proxy });
    const whole = wholeRoot(root);
    const wrapped = bubblewrapArguments({ ...whole, mounts: [...whole.mounts, ...written] }, isRoot, {
      PATH: searchPath,
      HOME: join(seen, 'home'),
      LANG: 'C.UTF-8',
    });
    return [options.bubblewrap, ...wrapped, python, ...args];
  }

  return {
    policy,
    cgroups,
    runtime,
    owner,
    searchPath,
    give,
    inside,
    identity,
    rootFor,
    describe(root) {
      const whole = wholeRoot(root);
      return JSON.stringify([identity, whole, whole.mounts.map(({ source }) => fileOf(source)), searchPath]);
    },
    command: (python, root, folder, args) =>
      command(python, root, folder, [ENTRY, `--policy=${join(inside(folder), 'policy.json')}`, ...args]),
    async rehearse(python) {
      const folder = mkdtempSync(join(runtime, 'z', 'check-'));
      give(folder);
      try {
        const args = ['-S', '-E', CHECK, join(inside(folder), 'policy.json')];
        const [program = '', ...rest] = command(python, await rootFor(python), folder, args);
        const { stdout } = await promisify(execFile)(program, rest, { timeout: 20_000, cwd: '/' });
        return JSON.parse(stdout) as { seccomp: boolean };
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
    async close() {
      if (cgroups) await closeCgroups(cgroups);
    },
  };
}

/** A folder that was removed and made anew is another one: what is mounted of it is the old one. */
function fileOf(path: string): string {
  const { dev, ino } = statSync(path);
  return `${dev}:${ino}`;
}

function isBelowSessionFolder(target: string): boolean {
  return Object.values(SEEN).some((folder) => isAbove(folder, target));
}

/** Of the folders that commands are looked for in here, those that are the system's. */
function systemFolders(): string[] {
  const folders = (process.env.PATH ?? '').split(delimiter).filter((folder) => /^\/(usr|bin|sbin)(\/|$)/.test(folder));
  return folders.length > 0 ? folders : ['/usr/local/bin', '/usr/bin', '/bin'];
}

async function prefixesOf(python: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(python, ['-E', '-c', PLACES], { timeout: 20_000, cwd: '/' });
  return JSON.parse(stdout) as string[];
}

/** The policy for the driver, and the files by which programs find the limits where they look for the machine. */
function writeFiles(
  folder: string,
  about: {
    policy: Policy;
    cgroups: Cgroups | undefined;
    seen: string;
    kept: string[];
    proxy: string | undefined;
  },
): Mount[] {
  const { policy, cgroups, seen } = about;
  const { memory, cpus } = policy.limits;
  const groups = Object.keys(cgroups?.folders ?? {}).map((kind) => [kind, join(INSIDE.cgroup, kind)]);
  const put = (name: string, text: string) => writeFileSync(join(folder, name), text, { mode: 0o644 });
  put(
    'policy.json',
    JSON.stringify({
      network: policy.network,
      proxy: about.proxy ?? null,
      limits: policy.limits,
      cgroup: cgroups ? { version: cgroups.version, folders: Object.fromEntries(groups) } : null,
      kept: about.kept,
      covers: memory > 0 ? [[join(seen, 'meminfo'), '/proc/meminfo']] : [],
    }),
  );
  if (memory > 0) put('meminfo', memoryFile(memory));
  put(
    'passwd',
    `root:x:0:0::/:/bin/false\nuser:x:1000:1000::${SEEN.home}:/bin/bash\nnobody:x:65534:65534::/:/bin/false\n`,
  );
  put('group', 'root:x:0:\nuser:x:1000:\nnogroup:x:65534:\n');
  const names: [string, string][] = [
    ['passwd', '/etc/passwd'],
    ['group', '/etc/group'],
  ];
  if (policy.network !== 'allow') {
    put('hosts', '127.0.0.1 localhost\n::1 localhost\n127.0.1.1 cuvette\n');
    names.push(['hosts', '/etc/hosts']);
  }
  if (cpus > 0) {
    put('processors', cpus === 1 ? '0\n' : `0-${cpus - 1}\n`);
    names.push(...PROCESSOR_FILES.map((name): [string, string] => ['processors', `/sys/devices/system/cpu/${name}`]));
  }
  return names.map(([name, target]) => ({ source: join(folder, name), target }));
}

/** As the kernel writes it, for a machine that has as much memory as the session may use. */
function memoryFile(bytes: number): string {
  const rows = {
    MemTotal: bytes,
    MemFree: bytes,
    MemAvailable: bytes,
    Buffers: 0,
    Cached: 0,
    SwapCached: 0,
    Active: 0,
  };
  const rest = { Inactive: 0, SwapTotal: 0, SwapFree: 0, Shmem: 0, Slab: 0, SReclaimable: 0, CommitLimit: bytes };
  return Object.entries({ ...rows, ...rest })
    .map(([name, size]) => `${`${name}:`.padEnd(15)} ${String(Math.floor(size / 1024)).padStart(8)} kB\n`)
    .join('');
}
