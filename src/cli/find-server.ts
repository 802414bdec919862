/** Finds the server that this shell shares with its agent, or starts one in the background. */

import { CuvetteError } from '../errors.ts';
import { findPaths } from '../paths.ts';
import { ancestorsOf } from '../process-tree.ts';
import { type Caller, chooseServer, chooseService, isInsideAgent, sessionIn } from '../surfaces/bridge/discovery.ts';
import type { BridgeRequest } from '../surfaces/bridge/protocol.ts';
import { readRecords, type ServerRecord } from '../surfaces/bridge/server-record.ts';
import { shellCommand } from './this-program.ts';

export interface FindOptions {
  /** Start a server where there is none, even inside an agent. */
  start: boolean;
  /** The pid of the server to use, where several fit. */
  server: string | undefined;
}

export interface FoundServer extends ServerRecord {
  /** Whose sessions to ask it for. */
  of: BridgeRequest['of'];
}

export function callerHere(): Caller {
  return { ancestors: ancestorsOf(process.pid), cwd: process.cwd(), env: process.env };
}

export async function findServer({ start, server }: FindOptions): Promise<FoundServer> {
  const paths = findPaths();
  const caller = callerHere();
  const find = () => {
    const records = readRecords(paths.runtime);
    if (server !== undefined) return records.find(({ pid }) => String(pid) === server);
    return chooseServer(records, caller) ?? (start ? undefined : chooseService(records, caller));
  };
  const found = find();
  if (found) return { ...found, of: sessionIn(found, caller) };
  if (server !== undefined) {
    throw new CuvetteError('no_server', `There is no server with pid ${server}. Run: cuvette doctor`);
  }
  if (!start && isInsideAgent(caller)) {
    const command = shellCommand();
    throw new CuvetteError(
      'no_server',
      "This agent has no Cuvette server, and no cuvette serve of yours runs on this machine. Add one once, then restart the agent's session:\n" +
        `  claude mcp add cuvette -- ${command} mcp\n` +
        `If the agent is connected to a service over HTTP, start that service again: ${command} serve\n` +
        `Or start a server for this shell alone: ${command} run --start`,
    );
  }
  const { startServer } = await import('./start-server.ts');
  return { ...(await startServer(paths, find)), of: undefined };
}
