/** Stands in for the image of Node that ours is built on: a root of Debian's own packages, with this machine's Node and npm in it. It is made once, and kept. */

import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type Say, testCache } from '../prepare.ts';
import { endOf } from './container.ts';

const RELEASE = 'bookworm';
/** The line of the image's list of sources that the Dockerfile adds to. */
const SUITES = `Suites: ${RELEASE} ${RELEASE}-updates`;
const SOURCES = '/etc/apt/sources.list.d/debian.sources';
/** What the image has beyond the smallest root, and what this machine's Node is linked to. */
const PACKAGES = ['ca-certificates', 'libstdc++6', 'libatomic1'];

export async function baseRoot(say: Say): Promise<string> {
  const key = createHash('sha256')
    .update(JSON.stringify([RELEASE, SUITES, PACKAGES, process.version]))
    .digest('hex')
    .slice(0, 12);
  const folder = join(testCache(), `docker-base-${key}`);
  if (existsSync(folder)) return folder;
  say(`Making a root of Debian ${RELEASE}`);
  const making = `${folder}.making`;
  rmSync(making, { recursive: true, force: true });
  const flags = ['--variant=minbase', `--include=${PACKAGES.join()}`];
  const { code, stderr } = await endOf(spawn('debootstrap', [...flags, RELEASE, making, ...mirrorOf('/')]), say);
  if (code !== 0) throw new Error(`debootstrap ended with ${code}: ${stderr}`);
  writeSources(making);
  copyAptSettings(making);
  copyAuthorities(making);
  installNode(making);
  execFileSync('chroot', [making, 'useradd', '--create-home', '--uid', '1000', 'node']);
  renameSync(making, folder);
  return folder;
}

/** Where a root's own packages come from, if its sources are in the form that the image has. */
function mirrorOf(root: string): string[] {
  const file = join(root, SOURCES);
  const [, mirror] = existsSync(file) ? (/^URIs: (\S+)$/m.exec(readFileSync(file, 'utf8')) ?? []) : [];
  return mirror ? [mirror] : [];
}

/** In the form that the image has them, from where debootstrap took its packages. */
function writeSources(root: string): void {
  const list = join(root, 'etc', 'apt', 'sources.list');
  const [, mirror] = /^deb (\S+) /m.exec(readFileSync(list, 'utf8')) ?? [];
  const keys = '/usr/share/keyrings/debian-archive-keyring.gpg';
  const lines = ['Types: deb', `URIs: ${mirror}`, SUITES, 'Components: main', `Signed-By: ${keys}`, ''];
  writeFileSync(join(root, SOURCES), lines.join('\n'));
  rmSync(list);
}

/** How this machine reaches Debian's packages, where that takes more than the network. */
function copyAptSettings(root: string): void {
  const folder = '/etc/apt/apt.conf.d';
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder).filter((one) => /proxy|verify/i.test(one)))
    cpSync(join(folder, name), join(root, folder, name));
}

/** Those that this machine trusts beyond Debian's own. */
function copyAuthorities(root: string): void {
  const folder = '/usr/local/share/ca-certificates';
  if (!existsSync(folder)) return;
  cpSync(folder, join(root, folder), { recursive: true });
  execFileSync('chroot', [root, 'update-ca-certificates'], { stdio: 'pipe' });
}

function installNode(root: string): void {
  const npm = dirname(dirname(realpathSync(execFileSync('sh', ['-c', 'command -v npm'], { encoding: 'utf8' }).trim())));
  const modules = join(root, 'usr', 'local', 'lib', 'node_modules');
  mkdirSync(modules, { recursive: true });
  cpSync(realpathSync(process.execPath), join(root, 'usr', 'local', 'bin', 'node'));
  cpSync(npm, join(modules, 'npm'), { recursive: true });
  for (const name of ['npm', 'npx'])
    symlinkSync(`../lib/node_modules/npm/bin/${name}-cli.js`, join(root, 'usr', 'local', 'bin', name));
}
