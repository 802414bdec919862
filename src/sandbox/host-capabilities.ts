/** Detects what this machine can do to confine code, and says what to type if it cannot. */

import { existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { bubblewrapVersion, findBubblewrap } from './bubblewrap.ts';

export interface HostCapabilities {
  platform: NodeJS.Platform;
  kernel: string;
  bubblewrap: { path: string; version: string } | undefined;
  /** How many user namespaces a user may have; 0 if none. */
  userNamespaces: number;
  /** By Debian's older switch. */
  isForbidden: boolean;
  /** Ubuntu's rule that takes every right from them. */
  isRestrictedByAppArmor: boolean;
  isContainer: boolean;
  /** `ID` and `ID_LIKE` of /etc/os-release. */
  distribution: string[];
}

export async function detectHostCapabilities(): Promise<HostCapabilities> {
  const path = findBubblewrap();
  const version = path && (await bubblewrapVersion(path));
  return {
    platform: process.platform,
    kernel: release(),
    bubblewrap: path && version ? { path, version } : undefined,
    userNamespaces: Number(read('/proc/sys/user/max_user_namespaces') || 0),
    isForbidden: read('/proc/sys/kernel/unprivileged_userns_clone') === '0',
    isRestrictedByAppArmor: read('/proc/sys/kernel/apparmor_restrict_unprivileged_userns') === '1',
    isContainer: existsSync('/.dockerenv') || existsSync('/run/.containerenv'),
    distribution: [...read('/etc/os-release').matchAll(/^ID(?:_LIKE)?="?([^"\n]*)"?$/gm)].flatMap(([, names = '']) =>
      names.split(' '),
    ),
  };
}

/** A sentence on what to do, for a machine on which confinement failed with that problem. */
export function adviceFor(machine: HostCapabilities, problem: string): string {
  if (machine.platform === 'darwin')
    return 'macOS has no namespaces: run Cuvette in a Linux virtual machine or container (docs/docker.md).';
  if (machine.platform !== 'linux') return 'Only Linux can: run Cuvette on Linux, or in a container (docs/docker.md).';
  if (!machine.bubblewrap) return `Install bubblewrap: ${installCommand(machine)}`;
  if (machine.isContainer)
    return (
      'This container lets nobody make namespaces. Start it with: ' +
      'docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined …'
    );
  if (machine.isForbidden) return 'Let users have namespaces: sudo sysctl -w kernel.unprivileged_userns_clone=1';
  if (machine.userNamespaces === 0) return 'Let users have namespaces: sudo sysctl -w user.max_user_namespaces=28633';
  if (machine.isRestrictedByAppArmor)
    return 'AppArmor takes the rights from user namespaces. Lift that: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0';
  if (/\/proc/.test(problem))
    return 'Parts of /proc are covered, so the kernel lets nobody mount another. Start Cuvette where /proc is whole.';
  return 'Run: cuvette doctor, for what this machine can do.';
}

function installCommand({ distribution, isContainer }: HostCapabilities): string {
  const sudo = isContainer ? '' : 'sudo ';
  if (distribution.some((name) => ['fedora', 'rhel', 'centos'].includes(name))) return `${sudo}dnf install bubblewrap`;
  if (distribution.includes('arch')) return `${sudo}pacman -S bubblewrap`;
  if (distribution.includes('alpine')) return `${sudo}apk add bubblewrap`;
  if (distribution.some((name) => ['suse', 'opensuse'].includes(name))) return `${sudo}zypper install bubblewrap`;
  return `${sudo}apt-get install bubblewrap`;
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch {
    return '';
  }
}
