/** Starts a server in the background for the project around this folder; it ends by itself when nobody uses it. */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../errors.ts';
import { withLock } from '../file-lock.ts';
import { type Paths, runtimeFolder } from '../paths.ts';
import type { ServerRecord } from '../surfaces/bridge/server-record.ts';

const IDLE_SECONDS = 1800;
const START_TIME = 15_000;

/** Holds a lock, so that two shells that start together share one server. */
export async function startServer(paths: Paths, find: () => ServerRecord | undefined): Promise<ServerRecord> {
  runtimeFolder(paths.runtime);
  const project = projectAround(process.cwd());
  const mark = createHash('sha256').update(project).digest('hex').slice(0, 12);
  return withLock(join(paths.runtime, `start-${mark}.lock`), AbortSignal.timeout(START_TIME), async () => {
    const already = find();
    if (already) return already;
    const program = process.argv[1] ?? '';
    const child = spawn(process.execPath, [program, 'serve', '--idle', String(IDLE_SECONDS), '--project', project], {
      detached: true,
      stdio: 'ignore',
    });
    child.unref();
    const deadline = Date.now() + START_TIME;
    while (Date.now() < deadline && child.exitCode === null) {
      const found = find();
      if (found) return found;
      await sleep(10);
    }
    throw new CuvetteError('no_server', 'A background server could not be started. Run: cuvette serve, to see why.');
  });
}

/** Returns the innermost folder around this one that is under version control, else the folder itself. */
function projectAround(folder: string): string {
  for (let current = folder; ; current = dirname(current)) {
    if (existsSync(join(current, '.git'))) return current;
    if (current === dirname(current)) return folder;
  }
}
