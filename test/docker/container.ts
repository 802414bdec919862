/** Runs commands in a root of its own, as Docker would: own mounts and processes, and all of them gone when the first has ended. Needs root on Linux. */

import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

export interface Setting {
  /** The folder that becomes /. */
  root: string;
  argv: string[];
  cwd: string;
  env: Record<string, string>;
  uid: number;
  gid: number;
  /** Folders of this machine by where they are seen. */
  binds?: Record<string, string>;
  /** Without a network of any kind, without capabilities, and without a way to get them. */
  isConfined?: boolean;
}

/** Not chroot, in which the kernel lets nobody make the namespaces that sessions are confined by. */
const ENTER = `
set -e
cd "$ROOT"
mount --bind . .
cd "$ROOT"
mount -t proc proc proc
mount --rbind /dev dev
mount --bind /etc/resolv.conf etc/resolv.conf
for pair in $BINDS; do mount --bind "\${pair%%=*}" ".\${pair#*=}"; done
[ -z "$IS_CONFINED" ] || python3 -c 'import fcntl, socket, struct
s = socket.socket()
fcntl.ioctl(s, 0x8914, struct.pack("16sH14x", b"lo", 0x41))'
mkdir -p .old
pivot_root . .old
umount -l /.old
rmdir /.old
cd "$CWD"
exec "$@"`;

export function startInside({ root, argv, cwd, env, uid, gid, binds = {}, isConfined = false }: Setting): ChildProcess {
  mkdirSync(join(root, 'etc'), { recursive: true });
  for (const seen of Object.values(binds)) mkdirSync(join(root, seen), { recursive: true });
  const settings = {
    ROOT: root,
    CWD: cwd,
    BINDS: Object.entries(binds)
      .filter(([folder]) => existsSync(folder))
      .map((pair) => pair.join('='))
      .join(' '),
    IS_CONFINED: isConfined ? '1' : '',
  };
  const spaces = ['--mount', '--pid', '--ipc', '--uts', ...(isConfined ? ['--net'] : [])];
  const limits = isConfined ? ['--no-new-privs', '--inh-caps=-all', '--bounding-set=-all'] : [];
  const user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...limits];
  const inside = ['env', '-i', ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...argv];
  return spawn('unshare', [...spaces, '--fork', '--kill-child', 'sh', '-c', ENTER, 'sh', ...user, ...inside], {
    env: { PATH: process.env.PATH ?? '', ...settings },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

export function endOf(child: ChildProcess, onLine: (line: string) => void = () => {}): Promise<Ended> {
  const said = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text: string) => {
      said[name] += text;
      for (const line of text.split('\n')) if (line.trim()) onLine(line);
    });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => resolve({ code, ...said }));
  });
}

/** Runs a command beside what runs inside already, as `docker exec` would. */
export function execInside(pid: number, { argv, cwd, env, uid, gid }: Omit<Setting, 'root'>): ChildProcess {
  const user = ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--no-new-privs'];
  const inside = ['env', '-i', '-C', cwd, ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...argv];
  const spaces = ['--mount', '--pid', '--net', '--ipc', '--uts', '--root'];
  return spawn('nsenter', ['--target', String(pid), ...spaces, '--', ...user, ...inside], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
}

/** The process that is the first inside: the only child of unshare. */
export function firstInside({ pid }: ChildProcess): number | undefined {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return children === '' ? undefined : Number(children);
}
