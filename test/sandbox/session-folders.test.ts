import { existsSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { sessionMounts } from '../../src/sandbox/session-folders.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { optionsIn, sandboxFor } from './open-sandbox.ts';

function start() {
  const options = optionsIn(temporaryFolder());
  const sandbox = sandboxFor(options);
  const folder = join(options.sessions, 'abc');
  return { sandbox, folder, workspace: join(folder, 'workspace') };
}

describe.skipIf(process.platform !== 'linux')('the folders of a confined session', () => {
  it('are seen by the driver below what is hidden, and by code where it looks for them', () => {
    const { sandbox, folder, workspace } = start();
    expect(sessionMounts(sandbox, { folder, workspace, seen: '/mnt/data' }, true)).toEqual([
      ['/cuvette/sessions/abc/home', '/home/user'],
      ['/cuvette/sessions/abc/tmp', '/tmp'],
      ['/cuvette/sessions/abc/programs', '/mnt/programs'],
      ['/cuvette/sessions/abc/workspace', '/mnt/data'],
    ]);
  });

  it('have no sources of programs for a session that runs none', () => {
    const { sandbox, folder, workspace } = start();
    const mounts = sessionMounts(sandbox, { folder, workspace, seen: '/mnt/data' }, false);
    expect(mounts.map(([, seen]) => seen)).toEqual(['/home/user', '/tmp', '/mnt/data']);
    expect(existsSync(join(folder, 'programs'))).toBe(false);
  });

  it('are closed to others, and belong to whom code runs as', () => {
    const { sandbox, folder, workspace } = start();
    sessionMounts(sandbox, { folder, workspace, seen: '/mnt/data' }, true);
    for (const path of [folder, ...['home', 'tmp', 'programs'].map((name) => join(folder, name))]) {
      const { mode, uid } = statSync(path);
      expect([path, mode & 0o777, uid]).toEqual([path, 0o700, sandbox.owner ?? process.getuid?.()]);
    }
  });

  it('may be there already, with what is in them', () => {
    const { sandbox, folder, workspace } = start();
    mkdirSync(join(folder, 'home'), { recursive: true });
    writeFileSync(join(folder, 'home', 'kept'), '');
    const once = sessionMounts(sandbox, { folder, workspace, seen: '/mnt/data' }, true);
    expect(sessionMounts(sandbox, { folder, workspace, seen: '/mnt/data' }, true)).toEqual(once);
    expect(existsSync(join(folder, 'home', 'kept'))).toBe(true);
  });

  it('may have their workspace at its own path, as a project', () => {
    const options = optionsIn(temporaryFolder());
    const project = temporaryFolder();
    const sandbox = sandboxFor({ ...options, project });
    const folder = join(options.sessions, 'abc');
    const mounts = sessionMounts(sandbox, { folder, workspace: project, seen: project }, false);
    expect(mounts.at(-1)).toEqual(['/cuvette/project', project]);
  });

  it('give nobody a file that a link of theirs leads to', () => {
    const { sandbox, folder, workspace } = start();
    const outside = temporaryFolder();
    mkdirSync(folder, { recursive: true });
    symlinkSync(outside, join(folder, 'home'));
    const before = statSync(outside).uid;
    try {
      sessionMounts(sandbox, { folder, workspace, seen: '/mnt/data' }, false);
    } catch {
      // To refuse it is as good.
    }
    expect(statSync(outside).uid).toBe(before);
  });

  it('must be below the folder of all sessions', () => {
    const { sandbox, folder } = start();
    expect(() => sessionMounts(sandbox, { folder, workspace: '/etc', seen: '/mnt/data' }, false)).toThrow(
      '/etc is not seen from inside',
    );
  });
});
