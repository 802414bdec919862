/**
 * Finds a folder's server again and again for a program that outlives servers: an agent's own comes first, then the one that was found
 * last. One that has ended is given time to come back before another is started in its place.
 */

import { CuvetteError } from '../errors.ts';
import { findPaths } from '../paths.ts';
import { chooseServer, sessionIn } from '../surfaces/bridge/discovery.ts';
import { readRecords, type ServerRecord } from '../surfaces/bridge/server-record.ts';
import { callerHere, type FindOptions, type FoundServer, findServer } from './find-server.ts';

const COMES_BACK_MS = 10_000;

/** The first is found, or started, at once, as `cuvette run` does. */
export async function followServer(options: FindOptions): Promise<() => Promise<FoundServer>> {
  const { runtime } = findPaths();
  const caller = callerHere();
  let last = await findServer(options);
  let seenAt = Date.now();

  function look(): ServerRecord | undefined {
    const records = readRecords(runtime);
    const chosen = options.server === undefined ? undefined : records.find(({ pid }) => pid === last.pid);
    const agents = records.filter(({ kind }) => kind === 'agent');
    return chosen ?? choose(agents) ?? records.find(({ pid }) => pid === last.pid) ?? choose(records);
  }

  /** Of several that fit equally well, the one that was found last. */
  function choose(records: ServerRecord[]): ServerRecord | undefined {
    try {
      return chooseServer(records, caller);
    } catch {
      return records.find(({ pid }) => pid === last.pid);
    }
  }

  return async () => {
    const found = look();
    if (!found && Date.now() - seenAt < COMES_BACK_MS)
      throw new CuvetteError(
        'no_server',
        'The server of this folder has ended. This goes on when it is started again.',
      );
    last = found ? { ...found, of: sessionIn(found, caller) } : await findServer({ start: true, server: undefined });
    seenAt = Date.now();
    return last;
  };
}
