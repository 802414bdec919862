import { readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { openSpills, type Spill } from '../../src/files/spill.ts';
import { temporaryFolder } from '../temporary-folder.ts';

async function readAll(spill: Spill, most = 1000): Promise<string> {
  const pieces: Uint8Array[] = [];
  for (let offset = 0; offset < spill.size; ) {
    const piece = await spill.read(offset, most);
    expect(piece.length).toBeGreaterThan(0);
    expect(piece.length).toBeLessThanOrEqual(most);
    pieces.push(piece);
    offset += piece.length;
  }
  return Buffer.concat(pieces).toString();
}

function openIn(folder: string): string[] {
  return readdirSync('/proc/self/fd').flatMap((number) => {
    try {
      const path = readlinkSync(`/proc/self/fd/${number}`);
      return path.startsWith(folder) ? [path] : [];
    } catch {
      return [];
    }
  });
}

describe('bytes that are added to a spill', () => {
  it('stay in memory while they are few', async () => {
    const folder = temporaryFolder();
    const spill = (await openSpills(folder)).create(100);
    spill.add('ünï ');
    spill.add('🎉\n');
    expect([spill.size, spill.isOnDisk, await readAll(spill, 3)]).toEqual([11, false, 'ünï 🎉\n']);
    expect(openIn(folder)).toEqual([]);
  });

  it('go to a file without a name once they are many, and are the same', async () => {
    const folder = temporaryFolder();
    const spill = (await openSpills(folder)).create(100);
    let expected = '';
    for (let number = 0; number < 3000; number += 1) {
      const text = `${number}: ${'é'.repeat(number % 200)}\n`;
      expected += text;
      spill.add(text);
      // Now and then from the middle of what is being written.
      if (number % 500 === 0) expect((await readAll(spill, 10_000)) === expected).toBe(true);
    }
    await spill.room();
    expect(spill.isOnDisk).toBe(true);
    expect(readdirSync(folder)).toEqual([]);
    expect(openIn(folder)).toHaveLength(1);
    expect((await readAll(spill, 7777)) === expected).toBe(true);
    spill.close();
    await expect.poll(() => openIn(folder)).toEqual([]);
  });

  it('apply backpressure to their writer while many are not on the disk', async () => {
    const spill = (await openSpills(temporaryFolder())).create(0);
    spill.add('x'.repeat(1000));
    expect(spill.room()).toBeUndefined();
    spill.add('x'.repeat(1 << 20));
    const room = spill.room();
    expect(room).toBeInstanceOf(Promise);
    await room;
    expect(spill.room()).toBeUndefined();
    spill.close();
  });

  it('that cannot be written are told as a failure to who reads, and block nobody', async () => {
    const folder = join(temporaryFolder(), 'spill');
    const spills = await openSpills(folder);
    const spill = spills.create(0);
    rmSync(folder, { recursive: true });
    spill.add('x'.repeat(1 << 20));
    await spill.room();
    await expect(spill.read(0, 10)).rejects.toThrow(/ENOENT/);
  });

  it('after close can be read no more', async () => {
    const spill = (await openSpills(temporaryFolder())).create(10);
    spill.add('x'.repeat(100));
    spill.close();
    spill.add('y');
    await expect(spill.read(0, 10)).rejects.toThrow(/removed/);
  });
});

it('opening a folder of spills removes what a killed process left in it', async () => {
  const folder = temporaryFolder();
  writeFileSync(join(folder, 'left'), 'x');
  await openSpills(folder);
  expect(readdirSync(folder)).toEqual([]);
});
