/** Removing what code has left, whatever that is. */

import { execFileSync } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { removeTree } from '../../src/files/remove-tree.ts';
import { temporaryFolder } from '../temporary-folder.ts';
import { repeat } from './hostile.ts';

const SOMEBODY = 54_321;

/** A folder to remove, and beside it one that nothing may reach. */
function open() {
  const root = temporaryFolder();
  const folder = join(root, 'folder');
  const outside = join(root, 'outside');
  for (const one of [folder, outside]) mkdirSync(one);
  writeFileSync(join(outside, 'secret'), '');
  const put = (name: string) => {
    mkdirSync(join(folder, name, '..'), { recursive: true });
    writeFileSync(join(folder, name), '');
  };
  return { root, folder, outside, put };
}

/** As a program makes it that goes down step by step: no path is long enough for all of it. */
function dig(folder: string, depth: number): void {
  const code =
    'import os, sys\nos.chdir(sys.argv[1])\nfor _ in range(int(sys.argv[2])):\n    os.mkdir("x" * 250)\n    os.chdir("x" * 250)\nopen("file", "w")';
  execFileSync('python3', ['-c', code, folder, String(depth)]);
}

describe('removing a folder tree: the folder', () => {
  it('is removed with all that is in it', async () => {
    const { root, folder, put } = open();
    for (const name of ['a', '.b', 'c/d', 'c/e/f', 'c/e/g/h/i', 'j k/l']) put(name);
    mkdirSync(join(folder, 'empty', 'empty'), { recursive: true });
    execFileSync('mkfifo', [join(folder, 'fifo'), join(folder, 'c', 'fifo')]);
    await removeTree(folder);
    expect(readdirSync(root)).toEqual(['outside']);
  });

  it('may be missing', async () => {
    const { root } = open();
    await removeTree(join(root, 'none'));
    expect(readdirSync(root).sort()).toEqual(['folder', 'outside']);
  });

  it('is removed however deep it is', async () => {
    const { root, folder } = open();
    dig(folder, 60);
    await removeTree(folder);
    expect(readdirSync(root)).toEqual(['outside']);
  });

  it('is removed without what its links lead to', async () => {
    const { root, folder, outside, put } = open();
    put('a/b');
    for (const name of ['link', 'a/link']) symlinkSync(outside, join(folder, name));
    await removeTree(folder);
    expect(readdirSync(root)).toEqual(['outside']);
    expect(readdirSync(outside)).toEqual(['secret']);
  });

  it('that is a link itself stays, and so does what it leads to', async () => {
    const { root, outside } = open();
    symlinkSync(outside, join(root, 'link'));
    await expect(removeTree(join(root, 'link'))).rejects.toThrow();
    expect(readdirSync(outside)).toEqual(['secret']);
  });

  it.runIf(process.getuid?.() === 0)('is removed also if code has taken the rights to read it away', async () => {
    const { root, folder, put } = open();
    for (const name of ['a/b/c', 'a/b/d/e', 'f/g']) put(name);
    execFileSync('chown', ['-R', `${SOMEBODY}:${SOMEBODY}`, root]);
    execFileSync('chmod', ['000', join(folder, 'a/b/d'), join(folder, 'a/b'), join(folder, 'f'), folder]);
    onTestFinished(() => chownSync(root, 0, 0));
    process.seteuid?.(SOMEBODY);
    try {
      await removeTree(folder);
    } finally {
      process.seteuid?.(0);
    }
    expect(existsSync(folder)).toBe(false);
  });

  it.runIf(process.platform === 'linux')(
    'is removed without leaving it while code swaps its folders for symlinks',
    async () => {
      const { folder, outside } = open();
      const swap = [
        'fs.mkdirSync(d + (count % 20) + "/e", { recursive: true })',
        'fs.renameSync(d + (count % 20), d + "away")',
        'fs.symlinkSync(outside, d + (count % 20))',
        'fs.unlinkSync(d + (count % 20))',
        'fs.renameSync(d + "away", d + (count % 20))',
      ];
      const swapper = await repeat(swap, { d: join(folder, 'd'), outside });
      const ended = new Promise((resolve) => swapper.once('exit', resolve));
      let refused = 0;
      // As many times as it takes to meet it in the middle of a swap.
      for (let count = 0; count < 100 || (refused === 0 && count < 5000); count++)
        await removeTree(folder).catch(() => refused++);
      expect(refused).toBeGreaterThan(0);
      swapper.kill('SIGKILL');
      await ended;
      await removeTree(folder);
      expect(existsSync(folder)).toBe(false);
      expect(readdirSync(outside)).toEqual(['secret']);
    },
  );
});
