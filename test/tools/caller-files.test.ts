/** Where exported sessions go: anywhere for the user of this machine, and into the workspace for callers of a service. */

import { chownSync, lstatSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { writeExport } from '../../src/tools/caller-files.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const isRoot = process.getuid?.() === 0;
const SOMEBODY = 54_321;

function open(isShared: boolean) {
  const root = temporaryFolder();
  const project = join(root, 'workspace');
  const outside = join(root, 'outside');
  for (const folder of [project, outside]) mkdirSync(folder);
  writeFileSync(join(outside, 'secret'), 'secret');
  const limits = { timeout: 1, outputLimit: 1, maxOutput: 1, autoInstall: false, isShared };
  const place = { project, folder: join(root, 'own'), limits };
  return {
    root,
    project,
    outside,
    write: (path?: string, content = 'exported') =>
      writeExport(place, isShared ? '/mnt/data' : project, { path, usual: 'session.ipynb', content }),
  };
}

describe('an export for the user of this machine', () => {
  it('goes wherever the path says, else to the output folder', async () => {
    const { root, project, write } = open(false);
    const elsewhere = join(root, 'new', 'a.ipynb');
    expect(await write(elsewhere)).toBe(elsewhere);
    expect(await write('sub/b.ipynb')).toBe(join(project, 'sub/b.ipynb'));
    expect(await write('../c.ipynb')).toBe(join(root, 'c.ipynb'));
    for (const none of [undefined, '']) expect(await write(none)).toBe(join(root, 'own', 'session.ipynb'));
    for (const name of ['new/a.ipynb', 'workspace/sub/b.ipynb', 'c.ipynb', 'own/session.ipynb'])
      expect(readFileSync(join(root, name), 'utf8')).toBe('exported');
  });
});

describe('an export for a caller of the service', () => {
  it.each([
    ['/mnt/data/out/a.ipynb', '/mnt/data/out/a.ipynb'],
    ['out/./a.ipynb', '/mnt/data/out/a.ipynb'],
    ['a.ipynb', '/mnt/data/a.ipynb'],
    ['', '/mnt/data/session.ipynb'],
    [undefined, '/mnt/data/session.ipynb'],
  ])('goes into the workspace: %s', async (path, seen) => {
    const { project, write } = open(true);
    expect(await write(path)).toBe(seen);
    expect(readFileSync(seen.replace('/mnt/data', project), 'utf8')).toBe('exported');
  });

  it('is refused outside of the workspace', async () => {
    const { root, project, outside, write } = open(true);
    const paths = [join(outside, 'a'), '../outside/a', '/mnt/data/../a', 'sub/../../outside/a', '/mnt/data', '/a', '.'];
    for (const path of paths) await expect(write(path), path).rejects.toMatchObject({ code: 'invalid_input' });
    expect(readdirSync(root).sort()).toEqual(['outside', 'workspace']);
    expect(readdirSync(outside)).toEqual(['secret']);
    expect(readdirSync(project)).toEqual([]);
  });

  it('follows no link that code has made', async () => {
    const { project, outside, write } = open(true);
    symlinkSync(outside, join(project, 'folder'));
    symlinkSync(join(outside, 'secret'), join(project, 'file'));
    await expect(write('folder/a')).rejects.toThrow('folder is a symlink in the workspace');
    expect(await write('file')).toBe('/mnt/data/file');
    expect(lstatSync(join(project, 'file')).isFile()).toBe(true);
    expect(readdirSync(outside)).toEqual(['secret']);
    expect(readFileSync(join(outside, 'secret'), 'utf8')).toBe('secret');
  });

  it('shows no path of this machine when it cannot be written', async () => {
    const { root, project, write } = open(true);
    mkdirSync(join(project, 'folder'));
    writeFileSync(join(project, 'file'), '');
    for (const path of ['folder', 'file/a', 'x'.repeat(256)]) {
      const error = await write(path).catch((caught: unknown) => caught);
      expect(String(error)).not.toMatch(new RegExp(`${root}|/proc/`));
      expect(error).toMatchObject({ code: 'invalid_input' });
    }
  });

  it.runIf(isRoot)('has the owner of the workspace', async () => {
    const { project, write } = open(true);
    chownSync(project, SOMEBODY, SOMEBODY);
    await write('sub/a');
    for (const name of ['sub', 'sub/a']) {
      const { uid, gid } = lstatSync(join(project, name));
      expect([uid, gid]).toEqual([SOMEBODY, SOMEBODY]);
    }
  });
});
