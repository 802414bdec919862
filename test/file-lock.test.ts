import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { withLock } from '../src/file-lock.ts';
import { findProcess } from '../src/process-tree.ts';
import { temporaryFolder } from './temporary-folder.ts';

const lockPath = () => join(temporaryFolder(), 'below', 'one.lock');

describe('a lock', () => {
  it('gives back what the work gave, and is free again', async () => {
    const path = lockPath();
    expect(await withLock(path, undefined, async () => 42)).toBe(42);
    expect(existsSync(path)).toBe(false);
  });

  it('names its holder, to its owner only', async () => {
    const path = lockPath();
    await withLock(path, undefined, async () => {
      expect(JSON.parse(readFileSync(path, 'utf8'))).toEqual({
        pid: process.pid,
        started: findProcess(process.pid)?.started,
      });
      expect(statSync(path).mode & 0o777).toBe(0o600);
    });
  });

  it('is free again after work that failed', async () => {
    const path = lockPath();
    await expect(withLock(path, undefined, () => Promise.reject(new Error('no luck')))).rejects.toThrow('no luck');
    expect(existsSync(path)).toBe(false);
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

  it('that another process holds is waited for until that process ends', async () => {
    const folder = temporaryFolder();
    const path = join(folder, 'one.lock');
    const holder = spawn('sleep', ['60'], { stdio: 'ignore' });
    onTestFinished(() => void holder.kill('SIGKILL'));
    await once(holder, 'spawn');
    writeFileSync(path, JSON.stringify({ pid: holder.pid, started: findProcess(holder.pid ?? 0)?.started }));

    let isIn = false;
    const waiting = withLock(path, undefined, async () => {
      isIn = true;
    });
    await sleep(200);
    expect(isIn).toBe(false);

    holder.kill('SIGKILL');
    await waiting;
    expect(isIn).toBe(true);
  });

  it('whose holder has only the pid of a running process is held by nobody', async () => {
    const path = join(temporaryFolder(), 'one.lock');
    writeFileSync(path, JSON.stringify({ pid: process.pid, started: 'at another time' }));
    expect(await withLock(path, undefined, async () => 'in')).toBe('in');
  });

  it('is not waited for after the caller gave up, and stays with its holder', async () => {
    const path = lockPath();
    await withLock(path, undefined, async () => {
      const giveUp = AbortSignal.timeout(20);
      await expect(withLock(path, giveUp, async () => 'never')).rejects.toThrow();
      expect(existsSync(path)).toBe(true);
    });
  });
});
