/** The server that this shell shares with its agent; starts one in the background where that is wanted. */

import { CuvetteError } from '../errors.ts';
import { findPaths } from '../paths.ts';
import { ancestorsOf } from '../process-tree.ts';
import { type Caller, chooseServer, isInsideAgent } from '../surfaces/bridge/discovery.ts';
import { readRecords, type ServerRecord } from '../surfaces/bridge/server-record.ts';

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
  if (server !== undefined) {
    throw new CuvetteError('no_server', `There is no server with pid ${server}. Run: cuvette doctor`);
  }
  if (!start && isInsideAgent(caller)) {
    throw new CuvetteError(
      'no_server',
      "This agent has no Cuvette server. Add it once, then restart the agent's session:\n" +
        '  claude mcp add cuvette -- npx -y cuvette mcp\n' +
        'Or start one for this shell alone: cuvette run --start',
    );
  }
  const { startServer } = await import('./start-server.ts');
  return startServer(paths, find);
}
