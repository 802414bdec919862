import { existsSync, readFileSync } from 'node:fs';
import { release } from 'node:os';
import { describe, expect, it, vi } from 'vitest';
import { adviceFor, detectHostCapabilities, type HostCapabilities } from '../../src/sandbox/host-capabilities.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const MACHINE: HostCapabilities = {
  platform: 'linux',
  kernel: '6.1.0',
  bubblewrap: { path: '/usr/bin/bwrap', version: '0.8.0' },
  userNamespaces: 1000,
  isForbidden: false,
  isRestrictedByAppArmor: false,
  isContainer: false,
  distribution: ['debian'],
};

const advice = (different: Partial<HostCapabilities>, problem = 'it failed') =>
  adviceFor({ ...MACHINE, ...different }, problem);

describe('the advice for a machine without bubblewrap', () => {
  it.each([
    [['debian'], 'sudo apt-get install bubblewrap'],
    [['ubuntu', 'debian'], 'sudo apt-get install bubblewrap'],
    [['fedora'], 'sudo dnf install bubblewrap'],
    [['rocky', 'rhel', 'centos', 'fedora'], 'sudo dnf install bubblewrap'],
    [['amzn', 'fedora'], 'sudo dnf install bubblewrap'],
    [['arch'], 'sudo pacman -S bubblewrap'],
    [['manjaro', 'arch'], 'sudo pacman -S bubblewrap'],
    [['alpine'], 'sudo apk add bubblewrap'],
    [['opensuse-leap', 'suse', 'opensuse'], 'sudo zypper install bubblewrap'],
    [['sles', 'suse'], 'sudo zypper install bubblewrap'],
    [[], 'sudo apt-get install bubblewrap'],
  ])('of %j is the command that installs it', (distribution, command) => {
    expect(advice({ bubblewrap: undefined, distribution })).toBe(`Install bubblewrap: ${command}`);
  });

  it('is without sudo in a container, which seldom has it', () => {
    const inside = { bubblewrap: undefined, isContainer: true };
    expect(advice({ ...inside, distribution: ['alpine'] })).toBe('Install bubblewrap: apk add bubblewrap');
    expect(advice(inside)).toBe('Install bubblewrap: apt-get install bubblewrap');
  });
});

describe('the advice for a machine that has no namespaces for us', () => {
  it('is to use Linux, on macOS and on other systems', () => {
    expect(advice({ platform: 'darwin', bubblewrap: undefined })).toMatch(
      /^macOS has no namespaces: .*docs\/docker\.md/,
    );
    expect(advice({ platform: 'win32', bubblewrap: undefined })).toMatch(/^Only Linux can: .*docs\/docker\.md/);
  });

  it('is how to start it, in a container', () => {
    const said = advice({ isContainer: true, userNamespaces: 0, isRestrictedByAppArmor: true });
    expect(said).toContain('docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined');
    expect(said).toContain('systempaths=unconfined');
  });

  it("is Debian's own switch, where that is off", () => {
    expect(advice({ isForbidden: true })).toContain('kernel.unprivileged_userns_clone=1');
  });

  it('is the sysctl that forbids them', () => {
    expect(advice({ userNamespaces: 0 })).toContain('sudo sysctl -w user.max_user_namespaces=');
    expect(advice({ isRestrictedByAppArmor: true })).toContain(
      'sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0',
    );
  });

  it('is about /proc, if that is what could not be mounted', () => {
    expect(advice({}, 'mount /proc: Operation not permitted')).toMatch(/^Parts of \/proc are covered/);
  });

  it('is to run cuvette doctor, if nothing else is known', () => {
    expect(advice({})).toContain('cuvette doctor');
  });

  it('names the first of several things that are missing', () => {
    const everything = { platform: 'darwin' as const, bubblewrap: undefined, isContainer: true, userNamespaces: 0 };
    expect(advice(everything)).toContain('macOS');
    expect(advice({ ...everything, platform: 'linux' })).toContain('Install bubblewrap');
    expect(advice({ ...everything, platform: 'linux', bubblewrap: MACHINE.bubblewrap })).toContain('docker run');
  });
});

describe.skipIf(process.platform !== 'linux')('the capabilities of this machine', () => {
  it('are detected', async () => {
    const machine = await detectHostCapabilities();
    expect(machine).toMatchObject({ platform: 'linux', kernel: release() });
    expect(machine.distribution.every((name) => /^[a-z0-9._-]+$/.test(name))).toBe(true);
    const text = existsSync('/etc/os-release') ? readFileSync('/etc/os-release', 'utf8') : '';
    const [, id] = /^ID="?([a-z0-9._-]+)"?$/m.exec(text) ?? [];
    if (id !== undefined) expect(machine.distribution).toContain(id);
    expect(Number.isInteger(machine.userNamespaces)).toBe(true);
  });

  it('include no bubblewrap if PATH has none', async () => {
    vi.stubEnv('PATH', temporaryFolder());
    try {
      expect((await detectHostCapabilities()).bubblewrap).toBeUndefined();
    } finally {
      vi.unstubAllEnvs();
    }
  });
});
