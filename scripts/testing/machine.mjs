/** What this machine has, and what the test run installs on it: system packages where that can be done without a question, and the Pythons that the driver is tested under. */

import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { ROOT, run } from './run.mjs';

/** By package manager: what brings each need, and how it is installed. */
const PACKAGES = {
  'apt-get': {
    bwrap: 'bubblewrap',
    'c++': 'g++',
    venv: 'python3-venv',
    debootstrap: 'debootstrap',
    'docker-compose': 'docker-compose',
    chromium: 'chromium',
  },
  dnf: { bwrap: 'bubblewrap', 'c++': 'gcc-c++', debootstrap: 'debootstrap' },
  apk: { bwrap: 'bubblewrap', 'c++': 'g++', debootstrap: 'debootstrap' },
};
const INSTALL = { 'apt-get': ['install', '-y', '--no-install-recommends'], dnf: ['install', '-y'], apk: ['add'] };

export function has(command) {
  return spawnSync('sh', ['-c', `command -v ${command}`]).status === 0;
}

/** Installs those of these needs that are not met; whoever has the need finds out for itself whether that worked. */
export async function installPackages(needs) {
  const isMet = (need) =>
    need === 'venv' ? spawnSync('python3', ['-c', 'import ensurepip, venv']).status === 0 : has(need);
  const missing = needs.filter((need) => !isMet(need));
  const manager = Object.keys(PACKAGES).find(has);
  const names = missing.flatMap((need) => PACKAGES[manager]?.[need] ?? []);
  if (process.platform !== 'linux' || names.length === 0) return;
  const [command, ...before] = [...(process.getuid() === 0 ? [] : ['sudo', '-n']), manager];
  const call = (args) => run({ name: `installing ${names.join(', ')}`, command, args: [...before, ...args] });
  const { problem } = await call([...INSTALL[manager], ...names]);
  if (!problem || manager !== 'apt-get') return;
  await call(['update']);
  await call([...INSTALL[manager], ...names]);
}

/** As the program itself sees it; nothing if it can confine. */
export function whyNotConfined() {
  const { stdout } = spawnSync('node', ['dist/main.js', 'doctor', '--json'], { cwd: ROOT, encoding: 'utf8' });
  const sandbox = JSON.parse(stdout || '[]').find(({ name }) => name === 'sandbox');
  if (sandbox?.state === 'works') return undefined;
  return sandbox?.detail ?? 'cuvette doctor did not say whether this machine can confine';
}

/** What the page's tests cannot be run without; nothing if it is there. */
export function whyNoBrowser() {
  return has('/usr/bin/chromium') ? undefined : 'there is no /usr/bin/chromium on this machine; install chromium';
}

/** What the image's own steps cannot be run without. */
export function whyNoImage() {
  if (process.platform !== 'linux') return 'the image is built on Linux only';
  if (process.getuid() !== 0) return "the steps of the Dockerfile are root's, and this is not root";
  const missing = ['debootstrap', 'unshare', 'nsenter', 'setpriv', 'pivot_root'].filter((name) => !has(name));
  if (missing.length > 0) return `there is no ${missing.join(', ')} on this machine`;
  if (spawnSync('unshare', ['--mount', '--pid', '--fork', 'true']).status !== 0)
    return 'root may make no namespaces here';
  return undefined;
}

/** The Python on PATH and every other version that pyenv has, from the oldest. */
export function pythons() {
  const found = new Map();
  const print = 'import sys; print("%d.%d" % sys.version_info[:2], sys.executable)';
  const add = (path) => {
    const { status, stdout } = spawnSync(path, ['-c', print], { encoding: 'utf8' });
    if (status !== 0) return;
    const [version, executable] = stdout.trim().split(' ');
    const [major, minor] = version.split('.').map(Number);
    if (major === 3 && minor >= 9 && !found.has(version)) found.set(version, { version, path: executable, minor });
  };
  add('python3');
  const pyenv = join(homedir(), '.pyenv', 'versions');
  for (const version of ['3.9', '3.10', '3.11', '3.12', '3.13', '3.14']) {
    add(`python${version}`);
    for (const folder of list(pyenv)) if (folder.startsWith(`${version}.`)) add(join(pyenv, folder, 'bin', 'python'));
  }
  return [...found.values()].sort((a, b) => a.minor - b.minor);
}

function list(folder) {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
