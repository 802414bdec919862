/** Writes and reads the record that a running server leaves in the runtime folder, so that the shell client finds it. */

import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isRunning, type ProcessId } from '../../process-tree.ts';

export interface ServerRecord extends ProcessId {
  version: string;
  /** `agent`: started by an agent, over stdio. `service`: started by a person or by the shell client. */
  kind: 'agent' | 'service';
  /** The processes from the server's parent up to the agent that it works for. */
  lineage: ProcessId[];
  project: string;
  /** The URL at which it serves agents whose session a shell can share. */
  url?: string;
  socket: string;
}

export function writeRecord(runtime: string, record: ServerRecord): () => void {
  const path = join(runtime, 'servers', `${record.pid}.json`);
  mkdirSync(join(runtime, 'servers'), { recursive: true, mode: 0o700 });
  readRecords(runtime); // Removes the records of servers that were killed.
  writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${path}.new`, path);
  return () => rmSync(path, { force: true });
}

/** Returns the servers that run now, and removes the records and sockets of those that do not. */
export function readRecords(runtime: string): ServerRecord[] {
  const folder = join(runtime, 'servers');
  const records: ServerRecord[] = [];
  for (const name of list(folder)) {
    if (!name.endsWith('.json')) continue;
    const path = join(folder, name);
    const record = read(path);
    if (record && isRunning(record)) {
      records.push(record);
      continue;
    }
    rmSync(path, { force: true });
    if (record) rmSync(record.socket, { force: true });
  }
  return records;
}

function read(path: string): ServerRecord | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as ServerRecord;
  } catch {
    return undefined;
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
