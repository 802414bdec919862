/** Decides what a confined session sees, and where: the root that bubblewrap makes, and the folders in it that are the session's own. */

import { existsSync, lstatSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import { basename, dirname, join, relative, sep } from 'node:path';

/** Below it stands what only the driver may see; sessions find it empty. */
const HIDDEN = '/cuvette';
export const SEEN = {
  workspace: '/mnt/data',
  programs: '/mnt/programs',
  program: '/mnt/program',
  home: '/home/user',
  temporary: '/tmp',
};
export const INSIDE = {
  runtime: join(HIDDEN, 'run'),
  sessions: join(HIDDEN, 'sessions'),
  project: join(HIDDEN, 'project'),
  cgroup: join(HIDDEN, 'cgroup'),
};

/** A folder or file of this machine, and where it stands in the root. */
export interface Mount {
  source: string;
  target: string;
  isWritable?: boolean;
}

/** As links they would lead to /usr; as folders of their own, they are as much the system. */
const SYSTEM = ['/bin', '/sbin', '/lib', '/lib64', '/lib32', '/libx32'];
/** Of /etc, what programs need to run, and what is no secret of the machine's. */
const SETTINGS =
  /^(alternatives|ca-certificates|ca-certificates\.conf|crypto-policies|ld\.so\.cache|ld\.so\.conf|ld\.so\.conf\.d|localtime|timezone|nsswitch\.conf|mime\.types|magic|fonts|inputrc|terminfo|protocols|services|gai\.conf|host\.conf|os-release|debian_version|lsb-release|locale\.alias|locale\.conf|matplotlibrc|ImageMagick.*|python3.*|java.*|perl|R|texmf|gtk-\d.*)$/;
/** Beside them, these hold private keys. */
const CERTIFICATES = ['ssl/certs', 'ssl/openssl.cnf', 'pki/ca-trust', 'pki/tls/certs', 'pki/tls/openssl.cnf'];
const FOR_NETWORK = ['resolv.conf', 'hosts'];

export function systemMounts(hasNetwork: boolean): { mounts: Mount[]; links: [string, string][] } {
  const mounts: Mount[] = [same('/usr')];
  const links: [string, string][] = [];
  for (const path of SYSTEM.filter((one) => existsSync(one))) {
    if (lstatSync(path).isSymbolicLink()) links.push([readlinkSync(path), path]);
    else mounts.push(same(path));
  }
  const names = readdirSync('/etc').filter((name) => SETTINGS.test(name));
  const settings = [...names, ...CERTIFICATES, ...(hasNetwork ? FOR_NETWORK : [])].map((name) => join('/etc', name));
  mounts.push(...settings.filter(leadsSomewhere).map(same));
  return { mounts, links };
}

function leadsSomewhere(path: string): boolean {
  return existsSync(path);
}

export function same(path: string): Mount {
  return { source: path, target: path };
}

/** What a tool needs to be seen: its whole installation, where it stands in one and nothing secret does; else the file alone. */
export function toolMounts(path: string, secret: string[]): Mount[] {
  const real = realpathSync(path);
  const prefix = dirname(dirname(real));
  const isInstalled = basename(dirname(real)) === 'bin' && !holdsSecret(prefix, secret);
  const found = isAbove('/usr', real) ? [] : [isInstalled ? same(prefix) : same(real)];
  // Below /usr, a link is seen as it is.
  return path === real || isAbove('/usr', path) ? found : [...found, { source: real, target: path }];
}

export function holdsSecret(folder: string, secret: string[]): boolean {
  return secret.some((path) => isAbove(folder, path) || (existsSync(path) && isAbove(folder, realpathSync(path))));
}

/** Without those that another one brings along: by folders, from the top. */
export function withoutNested(mounts: Mount[]): Mount[] {
  const sorted = [...mounts].sort((a, b) => a.target.length - b.target.length);
  const kept: Mount[] = [];
  for (const mount of sorted) {
    const above = kept.findLast(({ target }) => isAbove(target, mount.target));
    const isThere = above && relative(above.target, mount.target) === relative(above.source, mount.source);
    if (!isThere) kept.push(mount);
  }
  return kept;
}

export function isAbove(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder === sep ? sep : folder + sep);
}

/** Every folder on the way, which bubblewrap would otherwise make for its owner alone. */
export function foldersAbove(targets: string[]): string[] {
  const found = new Set<string>();
  for (const target of targets) {
    for (let folder = dirname(target); folder !== '/'; folder = dirname(folder)) found.add(folder);
  }
  return [...found].sort();
}
