/** A lock between processes: a file that names its holder. A holder that is gone is nobody. */

import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findProcess, isRunning, type ProcessId } from './process-tree.ts';

const WRITING = 2000;

/** Runs the work while no other process holds the lock. */
export async function withLock<T>(path: string, signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  while (!take(path)) await sleep(50, undefined, signal ? { signal } : undefined);
  try {
    return await work();
  } finally {
    rmSync(path, { force: true });
  }
}

function take(path: string): boolean {
  const me: ProcessId = { pid: process.pid, started: findProcess(process.pid)?.started ?? '' };
  try {
    writeFileSync(path, JSON.stringify(me), { flag: 'wx', mode: 0o600 });
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  const holder = readHolder(path);
  if (holder ? !isRunning(holder) : isOld(path)) rmSync(path, { force: true });
  return false;
}

/** A file that names nobody is one whose maker is about to write to it, or died just before. */
function isOld(path: string): boolean {
  try {
    return Date.now() - statSync(path).mtimeMs > WRITING;
  } catch {
    return false;
  }
}

function readHolder(path: string): ProcessId | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ProcessId;
  } catch {
    return undefined;
  }
}
