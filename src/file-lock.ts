/** Locks between processes with an exclusive transaction on an SQLite file, which the kernel ends when its holder dies. */

import { closeSync, fstatSync, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from 'libsql';
import { codeOf } from './errors.ts';

/** Milliseconds between two tries. */
const RETRY = 50;
/** Paths that this process has open: to close a file a second time would end the kernel's locks of the first. */
const open = new Set<string>();

/** Runs the work while no other process, and no other work of this one, holds the lock. Calls `onWait` once if another holds it now. */
export async function withLock<T>(
  path: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
  onWait: () => void = () => {},
): Promise<T> {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  let hasWaited = false;
  const wait = async () => {
    if (!hasWaited) onWait();
    hasWaited = true;
    await sleep(RETRY, undefined, signal ? { signal } : undefined);
  };
  while (open.has(path)) await wait();
  open.add(path);
  try {
    const release = await take(path, wait);
    try {
      return await work();
    } finally {
      release();
    }
  } finally {
    open.delete(path);
  }
}

/** The holder removes the file; who has waited for one that is gone begins again with the one that is there. */
async function take(path: string, wait: () => Promise<void>): Promise<() => void> {
  // Loaded here, since commands that never lock anything start faster without it.
  const { default: Sqlite } = await import('libsql');
  for (;;) {
    // Held open before and after the database opens the same path: if the file is there at the end, it is the one that is locked.
    const fd = openSync(path, 'a', 0o600);
    const db = new Sqlite(path);
    const isThere = () => statSync(path, { throwIfNoEntry: false })?.ino === fstatSync(fd).ino;
    const close = () => {
      db.close();
      closeSync(fd);
    };
    try {
      while (!begin(db)) await wait();
      if (isThere())
        return () => {
          rmSync(path, { force: true });
          close();
        };
    } catch (error) {
      const code = codeOf(error);
      // Something else is there, which can be nobody's lock: what an earlier version left, or a disk that was full.
      if (code === 'SQLITE_NOTADB') rmSync(path, { force: true });
      // SQLite has errors of its own for a file that is gone.
      else if (isThere() || !String(code).startsWith('SQLITE')) {
        close();
        throw error;
      }
    }
    close();
  }
}

function begin(db: Database): boolean {
  try {
    db.exec('BEGIN EXCLUSIVE');
    return true;
  } catch (error) {
    if (codeOf(error) === 'SQLITE_BUSY') return false;
    throw error;
  }
}
