/** What a call has done to its workspace, also where code changes it while it is looked at. */

import { mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { compareSnapshots, takeSnapshot } from '../../src/files/changes.ts';
import { repeat } from './hostile.ts';
import { createWorkspace } from './workspace.ts';

/** A workspace with as many files, and beside it a folder that nothing may reach. */
function open(count: number) {
  const workspace = createWorkspace();
  for (let index = 0; index < count; index++) workspace.put(`many/file-${index}`);
  return workspace;
}

const namesIn = async (root: string) =>
  [...(await takeSnapshot(root)).keys()].filter((name) => !name.startsWith('many/')).sort();

describe.each([
  ['small', 0],
  ['large', 400],
])('a snapshot of a %s workspace', (_, count) => {
  it('tells what is new, changed and gone, at any depth', async () => {
    const { root, put } = open(count);
    for (const name of ['same', 'changed', 'a/b/changed', 'gone', 'a/gone']) put(name, 'before');
    const before = await takeSnapshot(root);
    put('changed', 'after');
    put('a/b/changed', 'after, and longer');
    put('a/new/new', 'new');
    for (const name of ['gone', 'a/gone']) rmSync(join(root, name));
    const { written, gone } = compareSnapshots(before, await takeSnapshot(root));
    expect(written).toEqual(['a/b/changed', 'a/new/new', 'changed']);
    expect(gone.sort()).toEqual(['a/gone', 'gone']);
  });

  it('has regular files only, without the caches that tools leave', async () => {
    const { root, outside, put } = open(count);
    for (const name of ['own', 'a/__pycache__/x', '.git/x', '.cuvette-tools-1/x', 'a/.cuvette-x.js']) put(name);
    symlinkSync(outside, join(root, 'linked'));
    symlinkSync(join(outside, 'secret.txt'), join(root, 'link'));
    expect(await namesIn(root)).toEqual(['own']);
  });

  it('goes no more than 100 folders deep', async () => {
    const { root, put } = open(count);
    put(`${'d/'.repeat(100)}deep`);
    let deepest = join(root, 'deeper');
    mkdirSync(deepest);
    writeFileSync(join(deepest, 'too-deep'), '');
    for (let depth = 0; depth < 1500; depth++) {
      // From the inside out, since no path is long enough for the whole.
      const outer = join(root, `outer-${depth}`);
      mkdirSync(outer);
      renameSync(deepest, join(outer, 'd'));
      deepest = outer;
    }
    expect(await namesIn(root)).toEqual([`${'d/'.repeat(100)}deep`]);
  });

  it.runIf(process.platform === 'linux')('sees nothing outside while code swaps a folder for a symlink', async () => {
    const { root, outside } = open(count);
    for (let index = 0; index < 50; index++) mkdirSync(join(root, `between-${index}`));
    const swap = [
      'fs.renameSync(d + (count % 50), d + "away")',
      'fs.symlinkSync(outside, d + (count % 50))',
      'fs.unlinkSync(d + (count % 50))',
      'fs.renameSync(d + "away", d + (count % 50))',
    ];
    await repeat(swap, { d: join(root, 'between-'), outside });
    const seen = new Set<string>();
    for (let round = 0; round < 150; round++) for (const name of await namesIn(root)) seen.add(name);
    expect([...seen]).toEqual([]);
    expect(readdirSync(outside)).toEqual(['secret.txt']);
  });
});
