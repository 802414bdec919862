import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  foldersAbove,
  INSIDE,
  isAbove,
  type Mount,
  SEEN,
  same,
  systemMounts,
  toolMounts,
  withoutNested,
} from '../../src/sandbox/layout.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { script } from './script.ts';

/** Few names, so that paths often lie below one another. */
const path = fc
  .array(fc.constantFrom('a', 'b', 'ab', 'c'), { minLength: 1, maxLength: 4 })
  .map((parts) => `/${parts.join('/')}`);
const mount = fc.oneof(path.map(same), fc.record({ source: path, target: path }));

function link(target: string, ...parts: string[]): string {
  const file = join(...parts);
  mkdirSync(dirname(file), { recursive: true });
  symlinkSync(target, file);
  return file;
}

/** What stands at a path once all is mounted, one after the other. */
function shownAt(mounts: Mount[], target: string): string | undefined {
  const found = mounts.filter((one) => isAbove(one.target, target)).at(-1);
  return found && join(found.source, target.slice(found.target.length));
}

describe.skipIf(process.platform !== 'linux')('the part of the system that confined code sees', () => {
  const SECRETS = [
    ...['shadow', 'shadow-', 'gshadow', 'gshadow-', 'sudoers', 'sudoers.d', 'ssh', 'security', 'pam.d', 'machine-id'],
    ...['passwd', 'passwd-', 'group', 'hostname', 'environment', 'fstab', 'crontab', 'cron.d', 'krb5.keytab', 'docker'],
    ...[
      'NetworkManager',
      'wireguard',
      'letsencrypt',
      'mysql',
      'postgresql',
      'systemd',
      'profile',
      'init.d',
      'opt',
      'ssl/private',
      'pki/tls/private',
      'pki/CA/private',
    ],
  ].map((name) => join('/etc', name));
  const OTHERS = [
    '/root',
    '/home',
    '/var',
    '/run',
    '/srv',
    '/sys',
    '/proc',
    '/dev',
    '/boot',
    '/mnt',
    '/media',
    '/opt',
    '/tmp',
  ];

  it.each([false, true])('has no secret of the machine, and no home (network: %s)', (hasNetwork) => {
    const targets = systemMounts(hasNetwork).mounts.map(({ target }) => target);
    for (const secret of [...SECRETS, ...OTHERS]) {
      expect(
        targets.filter((target) => isAbove(target, secret) || isAbove(secret, target)),
        secret,
      ).toEqual([]);
    }
  });

  it('has /usr, and of /etc single entries that are there', () => {
    const { mounts } = systemMounts(true);
    expect(mounts).toContainEqual(same('/usr'));
    for (const { source, target, isWritable } of mounts) {
      expect([source, isWritable]).toEqual([target, undefined]);
      expect(existsSync(source), source).toBe(true);
    }
    expect(mounts.length).toBeLessThan(readdirSync('/etc').length);
  });

  it('has the names of servers only where there is a network', () => {
    const settings = (hasNetwork: boolean) => systemMounts(hasNetwork).mounts.map(({ target }) => target);
    const more = settings(true).filter((target) => !settings(false).includes(target));
    expect(more).toEqual(['/etc/resolv.conf', '/etc/hosts'].filter((file) => existsSync(file)));
  });

  it('has each folder of programs and libraries once: as a link, or mounted', () => {
    const { mounts, links } = systemMounts(false);
    for (const folder of ['/bin', '/sbin', '/lib', '/lib64'].filter((one) => existsSync(one))) {
      const isMounted = mounts.some(({ target }) => target === folder);
      expect(
        links.some(([, place]) => place === folder),
        folder,
      ).toBe(!isMounted);
    }
    for (const [target] of links) expect(target, 'a link leads to /usr').toMatch(/^\/?usr\//);
  });
});

describe('what confined code must see of a tool', () => {
  it("is nothing more, if it is the system's own", () => {
    expect(toolMounts('/usr/bin/env', [])).toEqual([]);
  });

  it('is the whole installation that it stands in', () => {
    const prefix = join(temporaryFolder(), 'node-20');
    const node = script(join(prefix, 'bin'), 'node');
    expect(toolMounts(node, ['/root'])).toEqual([same(prefix)]);
  });

  it('is the file alone, if it stands in none', () => {
    const tool = script(join(temporaryFolder(), 'tools'), 'node');
    expect(toolMounts(tool, [])).toEqual([same(tool)]);
  });

  it('is seen where it was found, too, if that is a link', () => {
    const folder = temporaryFolder();
    const real = script(join(folder, 'opt', 'node', 'bin'), 'node');
    const found = link(real, folder, 'links', 'node');
    expect(toolMounts(found, [])).toEqual([same(join(folder, 'opt', 'node')), { source: real, target: found }]);
  });

  it.each(['', 'share/cuvette', 'bin/below'])(
    'never brings along what is secret: %j below its installation',
    (below) => {
      const prefix = temporaryFolder();
      const tool = script(join(prefix, 'bin'), 'node');
      const secret = join(prefix, below);
      expect(toolMounts(tool, ['/no/such', secret])).toEqual([same(tool)]);
      expect(toolMounts(tool, [`${prefix}-other`])).toEqual([same(prefix)]);
    },
  );
});

describe('mounts without those that others include', () => {
  it('drop what is seen at the same place already, and keep what would be seen elsewhere', () => {
    const moved = { source: '/opt/node/bin/node', target: '/usr/local/bin/node' };
    const mounts = [moved, same('/usr/lib/python3'), same('/usr'), same('/usr'), same('/usrlocal')];
    expect(withoutNested(mounts)).toEqual([same('/usr'), same('/usrlocal'), moved]);
  });

  it('show everything that was to be shown, at its place', () => {
    fc.assert(
      fc.property(fc.uniqueArray(mount, { selector: ({ target }) => target, maxLength: 8 }), (mounts) => {
        const kept = withoutNested(mounts);
        for (const { source, target } of mounts) expect(shownAt(kept, target)).toBe(source);
      }),
      { numRuns: 2000 },
    );
  });

  it('have a folder before what is mounted in it, and nothing to drop a second time', () => {
    fc.assert(
      fc.property(fc.array(mount, { maxLength: 8 }), (mounts) => {
        const kept = withoutNested(mounts);
        for (const [index, { target }] of kept.entries()) {
          const later = kept.slice(index + 1);
          expect(later.filter((one) => one.target !== target && isAbove(one.target, target))).toEqual([]);
        }
        expect(withoutNested(kept)).toEqual(kept);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('paths of the layout', () => {
  it('are above themselves and what is below, not above what only begins alike', () => {
    expect(isAbove('/a', '/a')).toBe(true);
    expect(isAbove('/a', '/a/b')).toBe(true);
    expect(isAbove('/', '/a')).toBe(true);
    expect(isAbove('/a', '/ab')).toBe(false);
    expect(isAbove('/a/b', '/a')).toBe(false);
  });

  it('have every folder above them, from the top, and not the root', () => {
    expect(foldersAbove(['/a/b/c', '/a/d', '/e'])).toEqual(['/a', '/a/b']);
    fc.assert(
      fc.property(fc.array(path, { maxLength: 6 }), (targets) => {
        const found = foldersAbove(targets);
        expect(new Set(found).size).toBe(found.length);
        for (const [index, folder] of found.entries()) {
          const above = dirname(folder);
          if (above !== '/') expect(found.slice(0, index)).toContain(above);
        }
        for (const target of targets) if (dirname(target) !== '/') expect(found).toContain(dirname(target));
      }),
    );
  });

  it("that are hidden all lie in one folder, in which nothing of the session's own lies", () => {
    for (const hidden of Object.values(INSIDE)) {
      expect(isAbove('/cuvette', hidden)).toBe(true);
      for (const seen of Object.values(SEEN)) {
        expect([isAbove(hidden, seen), isAbove(seen, hidden)]).toEqual([false, false]);
      }
    }
  });
});
