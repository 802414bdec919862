import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { withLock } from '../src/file-lock.ts';
import { temporaryFolder } from './temporary-folder.ts';

const ROOT = join(import.meta.dirname, '..');
const lockPath = () => join(temporaryFolder(), 'below', 'one.lock');

/** Another process that takes the lock, says so, and holds it until it is killed. */
async function holdElsewhere(path: string) {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const code = `
    const db = new (require('libsql'))(${JSON.stringify(path)});
    db.exec('BEGIN EXCLUSIVE');
    console.log('held');
    setInterval(() => {}, 1000);`;
  const holder = spawn(process.execPath, ['-e', code], { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  onTestFinished(() => void holder.kill('SIGKILL'));
  await once(holder.stdout, 'data');
  return holder;
}

describe('a lock', () => {
  it('returns what the work returned, and is free again', async () => {
    const path = lockPath();
    expect(await withLock(path, undefined, async () => 42)).toBe(42);
    expect(await withLock(path, undefined, async () => 43)).toBe(43);
  });

  it('is closed to others than its owner while it is held, and leaves nothing', async () => {
    const path = lockPath();
    await withLock(path, undefined, async () => {
      expect(statSync(path).mode & 0o777).toBe(0o600);
      expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
    });
    expect(readdirSync(dirname(path))).toEqual([]);
  });

  it('is free again after work that failed', async () => {
    const path = lockPath();
    await expect(withLock(path, undefined, () => Promise.reject(new Error('no luck')))).rejects.toThrow('no luck');
    expect(await withLock(path, undefined, async () => 'in')).toBe('in');
  });

  it('lets in one at a time', async () => {
    const path = lockPath();
    let inside = 0;
    const work = async () => {
      inside += 1;
      expect(inside).toBe(1);
      await sleep(5);
      inside -= 1;
      return 'done';
    };
    expect(await Promise.all([1, 2, 3].map(() => withLock(path, undefined, work)))).toEqual(['done', 'done', 'done']);
  });

  it('that another process holds is waited for until that process is killed, and says so once', async () => {
    const path = lockPath();
    const holder = await holdElsewhere(path);
    let isIn = false;
    let waits = 0;
    const waiting = withLock(
      path,
      undefined,
      async () => {
        isIn = true;
      },
      () => {
        waits += 1;
      },
    );
    await sleep(300);
    expect([isIn, waits]).toEqual([false, 1]);
    holder.kill('SIGKILL');
    await waiting;
    expect([isIn, waits]).toEqual([true, 1]);
  });

  it('goes to exactly one of many processes when its holder is killed', async () => {
    const path = lockPath();
    const holder = await holdElsewhere(path);
    let inside = 0;
    const contenders = Array.from({ length: 8 }, () =>
      withLock(path, undefined, async () => {
        inside += 1;
        expect(inside).toBe(1);
        await sleep(10);
        inside -= 1;
      }),
    );
    holder.kill('SIGKILL');
    await Promise.all(contenders);
  });

  it('is free where a file is in its place that is no lock', async () => {
    const path = lockPath();
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(path, JSON.stringify({ pid: process.pid, started: '1' }));
    expect(await withLock(path, undefined, async () => 'in')).toBe('in');
  });

  it('is not waited for after the caller gave up, and stays with its holder', async () => {
    const path = lockPath();
    await withLock(path, undefined, async () => {
      await expect(withLock(path, AbortSignal.timeout(20), async () => 'never')).rejects.toThrow();
      await expect(withLock(path, AbortSignal.timeout(20), async () => 'never')).rejects.toThrow();
    });
  });
});
