/** The server that this shell shares with its agent; starts one in the background where that is wanted. */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { CuvetteError } from '../errors.ts';
import { findPaths, type Paths, privateFolder } from '../paths.ts';
import { ancestorsOf } from '../process-tree.ts';
import { type Caller, chooseServer, isInsideAgent } from '../surfaces/bridge/discovery.ts';
import { readRecords, type ServerRecord } from '../surfaces/bridge/server-record.ts';

const IDLE_SECONDS = 1800;
const START_TIME = 15_000;

export interface FindOptions {
  /** Start a server where there is none, even inside an agent. */
  start: boolean;
  /** The pid of the server to use, where several fit. */
  server: string | undefined;
}

export async function findServer({ start, server }: FindOptions): Promise<ServerRecord> {
  const paths = findPaths();
  const caller: Caller = { ancestors: ancestorsOf(process.pid), cwd: process.cwd(), env: process.env };
  const find = () => {
    const records = readRecords(paths.runtime);
    if (server !== undefined) return records.find(({ pid }) => String(pid) === server);
    return chooseServer(records, caller);
  };
  const found = find();
  if (found) return found;
  if (server !== undefined)
    throw new CuvetteError('no_server', `There is no server with pid ${server}. Run: cuvette doctor`);
  if (!start && isInsideAgent(caller)) {
    throw new CuvetteError(
      'no_server',
      "This agent has no Cuvette server. Add it once, then restart the agent's session:\n  claude mcp add cuvette -- npx -y cuvette mcp\nOr start one for this shell alone: cuvette run --start",
    );
  }
  return startServer(paths, find);
}

/** One shell at a time: two that start together share one server. */
async function startServer(paths: Paths, find: () => ServerRecord | undefined): Promise<ServerRecord> {
  privateFolder(paths.runtime);
  const { withLock } = await import('../file-lock.ts');
  const project = projectAround(process.cwd());
  const mark = createHash('sha256').update(project).digest('hex').slice(0, 12);
  return withLock(join(paths.runtime, `start-${mark}.lock`), AbortSignal.timeout(START_TIME), async () => {
    const already = find();
    if (already) return already;
    const child = spawn(
      process.execPath,
      [process.argv[1] ?? '', 'serve', '--idle', String(IDLE_SECONDS), '--project', project],
      {
        detached: true,
        stdio: 'ignore',
      },
    );
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

/** The innermost folder around this one that is under version control; else the folder itself. */
function projectAround(folder: string): string {
  for (let current = folder; ; current = dirname(current)) {
    if (existsSync(join(current, '.git'))) return current;
    if (current === dirname(current)) return folder;
  }
}
