import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { buildKey, openBuilds } from '../../../src/interpreters/process/builds.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const BLOCK = 4096;

function open(blocks = 1000) {
  const folder = temporaryFolder();
  const kept = join(folder, 'builds');
  const builds = openBuilds(kept, blocks * BLOCK);
  const program = (text: string, size = 1) => {
    const path = join(folder, `made-${text}`);
    writeFileSync(path, text.padEnd(size * BLOCK), { mode: 0o755 });
    return path;
  };
  const target = join(folder, 'target');
  return { folder, kept, builds, program, target };
}

describe('kept builds', () => {
  it('come back as they went in, and can be run', async () => {
    const { builds, program, target } = open();
    await builds.keep('a', program('one'));
    expect(await builds.find('a', target)).toBe(true);
    expect(readFileSync(target, 'utf8').trim()).toBe('one');
    expect(statSync(target).mode & 0o111).not.toBe(0);
  });

  it('are not found before they are kept', async () => {
    const { builds, target } = open();
    expect(await builds.find('a', target)).toBe(false);
    expect(existsSync(target)).toBe(false);
  });

  it('cannot be changed through what was taken out or put in', async () => {
    const { builds, program, target } = open();
    const made = program('one');
    await builds.keep('a', made);
    await builds.find('a', target);
    writeFileSync(made, 'changed');
    writeFileSync(target, 'changed');
    await builds.find('a', target);
    expect(readFileSync(target, 'utf8').trim()).toBe('one');
  });

  it('may be made by many at once', async () => {
    const { builds, program, target, kept } = open();
    const made = program('one');
    await Promise.all(Array.from({ length: 20 }, () => builds.keep('a', made)));
    expect(readdirSync(kept)).toEqual(['a']);
    expect(await builds.find('a', target)).toBe(true);
  });

  it('are evicted, the least recently used first, when they take too much room', async () => {
    const { builds, program, target, kept } = open(10);
    for (const [index, name] of ['a', 'b', 'c', 'd', 'e'].entries()) {
      await builds.keep(name, program(name, 2));
      const time = Date.now() / 1000 - 1000 + index;
      utimesSync(join(kept, name), time, time);
    }
    await builds.find('a', target);
    await builds.keep('f', program('f', 2));
    expect(readdirSync(kept).sort()).toEqual(['a', 'd', 'e', 'f']);
    expect(await builds.find('b', target)).toBe(false);
  });

  it('of other servers count towards the limit', async () => {
    const { builds, program, kept } = open(10);
    await builds.keep('a', program('a', 4));
    const other = openBuilds(kept, 10 * BLOCK);
    await other.keep('b', program('b', 4));
    await other.keep('c', program('c', 4));
    expect(readdirSync(kept)).toHaveLength(2);
  });

  it('leave nothing behind of a copy that was interrupted', async () => {
    const { builds, program, kept } = open(1);
    mkdirSync(join(kept, '.new-old'), { recursive: true });
    mkdirSync(join(kept, '.new-young'));
    utimesSync(join(kept, '.new-old'), 1, 1);
    await builds.keep('a', program('a', 1));
    expect(readdirSync(kept).sort()).toEqual(['.new-young', 'a']);
  });

  it('are regular files only', async () => {
    const { builds, folder, target } = open();
    symlinkSync('/dev/zero', join(folder, 'link'));
    await builds.keep('a', join(folder, 'link'));
    expect(await builds.find('a', target)).toBe(false);
  });

  it('have a key that depends on all their parts', () => {
    expect(buildKey(['a', 'b'])).toBe(buildKey(['a', 'b']));
    expect(buildKey(['a', 'b'])).not.toBe(buildKey(['ab']));
    expect(buildKey(['a', 'b'])).not.toBe(buildKey(['b', 'a']));
    expect(buildKey(['a'])).toMatch(/^[0-9a-f]{64}$/);
  });
});
