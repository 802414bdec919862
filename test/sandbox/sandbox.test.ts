import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { packageFile } from '../../src/package-root.ts';
import { findBubblewrap } from '../../src/sandbox/bubblewrap.ts';
import { isAbove, type Mount, same } from '../../src/sandbox/layout.ts';
import type { Sandbox, SandboxOptions } from '../../src/sandbox/sandbox.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { optionsIn, sandboxFor } from './open-sandbox.ts';
import { script } from './script.ts';

const isLinux = process.platform === 'linux';
const DRIVER = packageFile('python', 'cuvette_driver');

afterEach(() => void vi.unstubAllEnvs());

function start(different: Partial<SandboxOptions> = {}, settings: Record<string, unknown> = {}) {
  const folder = temporaryFolder();
  const options = { ...optionsIn(folder, settings), ...different };
  const sandbox = sandboxFor(options);
  const zygote = join(sandbox.runtime, 'z', 'one');
  mkdirSync(zygote);
  const python = script(folder, 'python', `echo '["/opt/python", "/usr"]'`);
  return { ...options, folder, sandbox, zygote, python };
}

/** What was written for the driver, for a zygote that sees these. */
function written(sandbox: Sandbox, zygote: string, root: Mount[] = []) {
  const command = sandbox.command('/py', root, zygote, ['sock']);
  const read = (name: string) => readFileSync(join(zygote, name), 'utf8');
  return { command, read, names: readdirSync(zygote).sort(), policy: JSON.parse(read('policy.json')) };
}

/** The words of an option in a command line, each time that it is there. */
function wordsOf(command: string[], option: string): string[][] {
  return command.flatMap((word, index) => (word === option ? [command.slice(index + 1, index + 3)] : []));
}

describe.skipIf(!isLinux)('folders as the driver sees them', () => {
  it('are the sessions, the runtime folder, and a project', () => {
    const { sandbox, sessions } = start({ project: '/work/of mine' });
    expect(sandbox.inside(join(sessions, 'abc', 'home'))).toBe('/cuvette/sessions/abc/home');
    expect(sandbox.inside(sessions)).toBe('/cuvette/sessions');
    expect(sandbox.inside(join(sandbox.runtime, 'k', 'x', 'sock'))).toBe('/cuvette/run/k/x/sock');
    expect(sandbox.inside('/work/of mine/a b')).toBe('/cuvette/project/a b');
  });

  it('do not include any folder but the sessions, the runtime folder and the project', () => {
    const { sandbox, sessions, runtime, folder } = start();
    for (const path of ['/etc', folder, runtime, `${sessions}2`, dirname(sessions), join(runtime, 'z'), '/work']) {
      expect(() => sandbox.inside(path), path).toThrow(`${path} is not seen from inside`);
    }
  });

  it('are closed to others; the sessions of root can be entered, and not listed', () => {
    const { sandbox, sessions } = start();
    const isRoot = process.getuid?.() === 0;
    const modeOf = (path: string) => statSync(path).mode & 0o777;
    expect(modeOf(sandbox.runtime)).toBe(0o700);
    expect(modeOf(sessions)).toBe(isRoot ? 0o711 : 0o700);
    for (const path of [sandbox.runtime, join(sandbox.runtime, 'k'), join(sandbox.runtime, 'z')]) {
      expect(statSync(path).uid).toBe(sandbox.owner ?? process.getuid?.());
    }
    expect(sandbox.owner).toBe(isRoot ? 968_331 : undefined);
  });
});

describe.skipIf(!isLinux)('the root of a zygote', () => {
  it('has the system, its Python, the driver, and what else code may read; nothing of it twice, nothing writable', async () => {
    const readable = temporaryFolder();
    const { sandbox, python } = start({ readable: [readable, join(readable, 'below')] });
    const root = await sandbox.rootFor(python);
    for (const path of ['/usr', '/opt/python', DRIVER, readable]) expect(root).toContainEqual(same(path));
    expect(root).not.toContainEqual(same(join(readable, 'below')));
    expect(root.filter(({ isWritable }) => isWritable)).toEqual([]);
    expect(await sandbox.rootFor(python)).toEqual(root);
  });

  it('has the tools, which are found by PATH before those of the system', async () => {
    const prefix = join(temporaryFolder(), 'node');
    mkdirSync(join(prefix, 'bin'), { recursive: true });
    const { sandbox, python } = start({ tools: [script(join(prefix, 'bin'), 'node', '')] });
    expect(await sandbox.rootFor(python)).toContainEqual(same(prefix));
    const [first, ...others] = sandbox.searchPath.split(':');
    expect(first).toBe(join(prefix, 'bin'));
    expect(others.length).toBeGreaterThan(0);
    expect(others.every((folder) => /^\/(usr|bin|sbin)(\/|$)/.test(folder))).toBe(true);
  });

  it.each(['bin', '.local/bin', 'links/bin'])('never has the home, for a tool in %s of it', async (below) => {
    const folder = temporaryFolder();
    const home = join(folder, 'var', 'home', 'ada');
    mkdirSync(join(home, below), { recursive: true });
    mkdirSync(join(home, '.local', 'share', 'keyrings'), { recursive: true });
    symlinkSync('var/home', join(folder, 'home'));
    vi.stubEnv('HOME', join(folder, 'home', 'ada'));
    const tool = script(join(home, below), 'node', '');
    const { sandbox, python } = start({ tools: [tool] });
    const root = await sandbox.rootFor(python);
    for (const secret of [join(home, '.ssh', 'id'), join(home, '.local', 'share', 'keyrings', 'login')]) {
      expect(root.filter(({ source }) => isAbove(source, secret))).toEqual([]);
    }
    expect(root.some(({ source }) => isAbove(source, tool))).toBe(true);
  });

  it('is refused for a Python that is installed where the home is', async () => {
    const home = temporaryFolder();
    vi.stubEnv('HOME', home);
    const { sandbox } = start();
    const python = script(home, 'python', `echo '["${home}", "/usr"]'`);
    await expect(sandbox.rootFor(python)).rejects.toThrow(`is installed in ${home}, which has files of yours in it`);
  });

  it('is not refused for a Python of the system where the home is below /usr', async () => {
    vi.stubEnv('HOME', '/usr/sbin');
    const { sandbox, python } = start();
    expect(await sandbox.rootFor(python)).toContainEqual(same('/usr'));
  });

  it('fails with the name of a Python that cannot be run', async () => {
    await expect(start().sandbox.rootFor('/no/such/python')).rejects.toThrow('/no/such/python');
  });
});

describe.skipIf(!isLinux)('what the driver is given', () => {
  it('is the policy, as it was given', () => {
    const { sandbox, zygote } = start({}, { sessionMemory: '100MiB', sessionProcesses: 7, sessionQuota: '1MB' });
    const { policy, command } = written(sandbox, zygote);
    expect(policy).toMatchObject({ network: 'none', proxy: null, kept: [], limits: sandbox.policy.limits });
    expect(policy.covers).toEqual([['/cuvette/run/z/one/meminfo', '/proc/meminfo']]);
    expect(command.slice(command.indexOf('--') + 1)).toEqual([
      '/py',
      join(DRIVER, '__main__.py'),
      '--policy=/cuvette/run/z/one/policy.json',
      'sock',
    ]);
  });

  it('has the control groups where the driver finds them', () => {
    const { sandbox, zygote } = start();
    const { policy, command } = written(sandbox, zygote);
    const kinds = Object.keys(sandbox.cgroups?.folders ?? {});
    const seen = Object.fromEntries(kinds.map((kind) => [kind, `/cuvette/cgroup/${kind}`]));
    expect(policy.cgroup).toEqual(sandbox.cgroups ? { version: sandbox.cgroups.version, folders: seen } : null);
    const binds = wordsOf(command, '--bind');
    for (const [kind, folder] of Object.entries(sandbox.cgroups?.folders ?? {})) {
      expect(binds).toContainEqual([folder, `/cuvette/cgroup/${kind}`]);
    }
  });

  it('lets the driver write to its own places alone', () => {
    const { sandbox, sessions, zygote } = start();
    const { command } = written(sandbox, zygote, [same('/usr'), same('/opt/x')]);
    const groups = Object.entries(sandbox.cgroups?.folders ?? {}).map(([kind, at]) => [at, `/cuvette/cgroup/${kind}`]);
    expect(wordsOf(command, '--bind')).toEqual([
      ['/proc', '/proc'],
      [sandbox.runtime, '/cuvette/run'],
      [sessions, '/cuvette/sessions'],
      ...groups,
    ]);
  });

  it('has nothing of the environment of the server', () => {
    const { sandbox, zygote } = start();
    const names = wordsOf(written(sandbox, zygote).command, '--setenv').map(([name]) => name);
    expect(names).toEqual(['PATH', 'HOME', 'LANG']);
  });

  it('keeps, of what is shown, what lies below a folder of the session', () => {
    const { sandbox, zygote } = start();
    const root = ['/tmp/env', '/home/user/tool', '/mnt/data2', '/usr', '/home/other', '/mnt/data/x'].map(same);
    expect(written(sandbox, zygote, root).policy.kept).toEqual(['/tmp/env', '/home/user/tool', '/mnt/data/x']);
  });

  it('names as much memory as a session may have, for whoever looks for the machine’s', () => {
    const { sandbox, zygote } = start({}, { sessionMemory: '100MiB' });
    const text = written(sandbox, zygote).read('meminfo');
    const rows = Object.fromEntries(
      text
        .trim()
        .split('\n')
        .map((line) => line.split(/:\s+/)),
    );
    expect(rows).toMatchObject({ MemTotal: '102400 kB', MemAvailable: '102400 kB', SwapTotal: '0 kB' });
    // As the kernel writes it: programs cut it by columns.
    for (const line of text.trim().split('\n')) expect(line).toMatch(/^\w+: +\d+ kB$/);
  });

  it('names no memory where there is no limit', () => {
    const { sandbox, zygote } = start({}, { sessionMemory: '0' });
    const { policy, names } = written(sandbox, zygote);
    expect([policy.covers, names.includes('meminfo')]).toEqual([[], false]);
    expect(policy.limits.memory).toBe(0);
    expect(start().sandbox.policy.limits.memory).toBeLessThanOrEqual(totalmem());
  });

  it.each([
    ['1', '0\n'],
    ['3', '0-2\n'],
  ])('names %s processors', (sessionCpus, text) => {
    const { sandbox, zygote } = start({}, { sessionCpus });
    const { read, command } = written(sandbox, zygote);
    expect(read('processors')).toBe(text);
    for (const name of ['online', 'possible', 'present']) {
      const mount = [join(zygote, 'processors'), `/sys/devices/system/cpu/${name}`];
      expect(wordsOf(command, '--ro-bind')).toContainEqual(mount);
    }
  });

  it('shows nothing of /sys where all processors may be used', () => {
    const { sandbox, zygote } = start();
    expect(written(sandbox, zygote).command.filter((word) => word.startsWith('/sys/dev'))).toEqual([]);
  });

  it('has a passwd file with one user', () => {
    const { sandbox, zygote } = start();
    const { read } = written(sandbox, zygote);
    expect(
      read('passwd')
        .split('\n')
        .map((line) => line.split(':')[0]),
    ).toEqual(['root', 'user', 'nobody', '']);
    expect(read('passwd')).toContain('user:x:1000:1000::/home/user:/bin/bash\n');
    expect(read('group')).toContain('user:x:1000:\n');
  });

  it.each([
    ['none', true],
    ['packages.example.org', true],
    ['allow', false],
  ])('has hosts of its own for the network %s: %s', (network, hasOwn) => {
    const { sandbox, zygote } = start({}, { network });
    const { names, command } = written(sandbox, zygote);
    expect(names.includes('hosts')).toBe(hasOwn);
    const own = wordsOf(command, '--ro-bind').filter(([, target]) => target === '/etc/hosts');
    expect(own).toEqual(hasOwn ? [[join(zygote, 'hosts'), '/etc/hosts']] : []);
  });

  it('names the socket of the proxy as the driver sees it', () => {
    const folder = temporaryFolder();
    const runtime = join(folder, 'run');
    const { sandbox, zygote } = start(
      { runtime, proxy: join(runtime, 'c', 'proxy.sock') },
      { network: 'packages.example.org' },
    );
    expect(written(sandbox, zygote).policy).toMatchObject({ network: 'proxy', proxy: '/cuvette/run/proxy.sock' });
  });
});

const bubblewrap = isLinux ? findBubblewrap() : undefined;
const python = said('python3', ['-c', 'import sys; print(sys.executable)']);
const canConfine =
  bubblewrap &&
  python &&
  said(bubblewrap, '--unshare-user --unshare-pid --ro-bind / / --proc /proc echo yes'.split(' '));

function said(command: string, args: string[]): string | undefined {
  try {
    return execFileSync(command, args, { encoding: 'utf8', stdio: 'pipe' }).trim();
  } catch {
    return undefined;
  }
}

describe.skipIf(!canConfine)('a sandbox on this machine (where bubblewrap works)', () => {
  const real = (settings: Record<string, unknown> = {}) => start({ bubblewrap: bubblewrap ?? '' }, settings);

  /** What a shell says that is run in the root, before the driver would give up its rights. */
  async function inRoot(code: string, given = real()): Promise<string> {
    const { sandbox, zygote } = given;
    sandbox.give(zygote);
    const root = await sandbox.rootFor(python ?? '');
    const command = sandbox.command(python ?? '', root, zygote, []);
    const [program = '', ...args] = command.slice(0, command.indexOf('--') + 1);
    return execFileSync(program, [...args, '/bin/sh', '-c', `${code}\nexit 0`], { encoding: 'utf8', stdio: 'pipe' });
  }

  it('confines a process, and leaves no file', async () => {
    const { sandbox } = real();
    expect(await sandbox.rehearse(python ?? '')).toEqual({ seccomp: ['x64', 'arm64'].includes(process.arch) });
    expect(readdirSync(join(sandbox.runtime, 'z'))).toEqual(['one']);
  });

  it.each([{ network: 'allow' }, { sessionCpus: 1 }, { sessionMemory: '0', sessionProcesses: '0' }])(
    'goes well with %j',
    async (settings) => {
      await expect(real(settings).sandbox.rehearse(python ?? '')).resolves.toHaveProperty('seccomp');
    },
  );

  it('fails with what bubblewrap says', async () => {
    const folder = temporaryFolder();
    const broken = script(folder, 'bwrap', 'echo no namespaces today >&2; exit 1');
    const { sandbox } = start({ bubblewrap: broken });
    await expect(sandbox.rehearse(python ?? '')).rejects.toThrow('no namespaces today');
  });

  it('shows no secret, no other’s folder, and nothing that stands beside its own', async () => {
    const given = real();
    const secret = join(given.folder, 'secret');
    writeFileSync(secret, 'the secret', { mode: 0o644 });
    const hidden = [
      secret,
      '/etc/shadow',
      '/etc/sudoers',
      '/etc/ssh',
      '/var/lib',
      '/var/log',
      '/run/dbus',
      '/boot',
      '/sys/fs',
    ];
    const said = await inRoot(`for one in ${hidden.join(' ')}; do [ -e "$one" ] && echo "$one"; done`, given);
    expect(said).toBe('');
    expect(await inRoot('ls /home; cat /etc/hostname 2>&1 | grep -c No')).toBe('user\n1\n');
  });

  it('lets nothing be written but what is the driver’s', async () => {
    const places = [
      '/',
      '/usr',
      '/etc',
      '/dev',
      '/home',
      '/home/user',
      '/mnt',
      '/mnt/data',
      '/run',
      '/var',
      '/cuvette',
      '/tmp',
    ];
    const tries = `for one in ${places.join(' ')} '${DRIVER}'; do touch "$one/new" 2>/dev/null && echo "$one"; done`;
    expect(await inRoot(tries)).toBe('');
    const echo = 'echo 1 2>/dev/null >';
    expect(
      await inRoot(
        `for one in /etc/passwd /usr/bin/env /etc/hosts; do ( ${echo} "$one" ) 2>/dev/null && echo "$one"; done`,
      ),
    ).toBe('');
  });

  it('has an environment of three names', async () => {
    vi.stubEnv('CUVETTE_TEST_SECRET', 'the secret');
    const names = (await inRoot('env')).split('\n').map((line) => line.split('=')[0] ?? '');
    const ofTheShell = ['', 'PWD', 'SHLVL', '_', 'OLDPWD'];
    expect(names.filter((name) => !ofTheShell.includes(name)).sort()).toEqual(['HOME', 'LANG', 'PATH']);
  });

  it.skipIf(process.getuid?.() !== 0)('leaves root no right but to become another', async () => {
    const status = await inRoot("grep -E '^(CapPrm|CapEff|NoNewPrivs)' /proc/self/status");
    const setUserAndGroup = ((1 << 6) | (1 << 7)).toString(16).padStart(16, '0');
    expect(status.trim().split(/\s+/)).toEqual([
      'CapPrm:',
      setUserAndGroup,
      'CapEff:',
      setUserAndGroup,
      'NoNewPrivs:',
      '1',
    ]);
  });
});
