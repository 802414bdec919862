/** What sessions leave on disk, in one SQLite file that several servers may use at once. Every write is there before it is acknowledged. */

import { join } from 'node:path';
import Database from 'libsql';
import { privateFolder } from '../paths.ts';
import type { ProcessId } from '../process-tree.ts';
import type { ExecutionRecord } from './record.ts';

export interface SessionRow {
  id: string;
  project: string;
  createdAt: number;
  usedAt: number;
  /** The agent that the session belongs to. */
  agent: ProcessId | null;
  /** The server that holds it now, or held it last. */
  server: ProcessId | null;
  /** True once its server let go of it in good order. */
  closed: boolean;
  /** For each interpreter that was reset, the last execution before that. */
  cleared?: Record<string, number>;
  /** Whose it is, where a server works for several. */
  owner?: string;
}

export interface SavedInterpreter {
  name: string;
  python: string;
  cwd: string | null;
  env: Record<string, string>;
  startup: string | null;
  description: string | null;
  saved: boolean;
}

export interface Store {
  putSession(row: SessionRow): void;
  session(id: string): SessionRow | undefined;
  sessionsOf(project: string): SessionRow[];
  /** Sessions that have an owner, and that nobody has used since. */
  ownedUnusedSince(time: number): SessionRow[];
  /** Forgets a session, its history and its names. */
  removeSession(id: string): void;
  /** A name by which its owner calls a session. */
  putAlias(owner: string, alias: string, session: string): void;
  alias(owner: string, alias: string): string | undefined;
  putExecution(record: ExecutionRecord, acknowledged: number): void;
  execution(session: string, number: number): ExecutionRecord | undefined;
  executions(session: string): ExecutionRecord[];
  /** The highest sequence number of its interpreter that is on disk. */
  acknowledged(session: string, number: number): number;
  lastNumber(session: string): number;
  /** Interpreters saved for the project, and those that the session added for itself. */
  interpreters(project: string, session: string): SavedInterpreter[];
  putInterpreter(project: string, session: string, interpreter: SavedInterpreter): void;
  removeInterpreter(project: string, session: string, name: string): void;
  close(): void;
}

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, project TEXT NOT NULL, used_at INTEGER NOT NULL, body TEXT NOT NULL);
  CREATE INDEX IF NOT EXISTS sessions_by_project ON sessions (project, used_at);
  CREATE TABLE IF NOT EXISTS executions (session TEXT NOT NULL, number INTEGER NOT NULL, acknowledged INTEGER NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (session, number));
  CREATE TABLE IF NOT EXISTS aliases (owner TEXT NOT NULL, alias TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (owner, alias));
  CREATE INDEX IF NOT EXISTS aliases_by_session ON aliases (session);
  CREATE TABLE IF NOT EXISTS interpreters (project TEXT NOT NULL, session TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
    PRIMARY KEY (project, session, name));
`;

export function openStore(folder: string): Store {
  privateFolder(folder);
  const db = new Database(join(folder, 'cuvette.db'));
  db.pragma('busy_timeout = 10000');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.exec(SCHEMA);

  const putSession = db.prepare('INSERT OR REPLACE INTO sessions (id, project, used_at, body) VALUES (?, ?, ?, ?)');
  const getSession = db.prepare('SELECT body FROM sessions WHERE id = ?');
  const getSessions = db.prepare('SELECT body FROM sessions WHERE project = ? ORDER BY used_at DESC LIMIT 50');
  const getUnused = db.prepare(
    "SELECT body FROM sessions WHERE used_at < ? AND json_extract(body, '$.owner') IS NOT NULL LIMIT 500",
  );
  const removals = [
    'DELETE FROM sessions WHERE id = ?',
    'DELETE FROM executions WHERE session = ?',
    'DELETE FROM aliases WHERE session = ?',
  ].map((sql) => db.prepare(sql));
  const putAlias = db.prepare('INSERT OR REPLACE INTO aliases (owner, alias, session) VALUES (?, ?, ?)');
  const getAlias = db.prepare('SELECT session FROM aliases WHERE owner = ? AND alias = ?');
  // In place, where a row is there already: a replaced row would move, and cost twice the writing.
  const putExecution = db.prepare(
    `INSERT INTO executions (session, number, acknowledged, body) VALUES (?, ?, ?, ?)
     ON CONFLICT (session, number) DO UPDATE SET acknowledged = excluded.acknowledged, body = excluded.body`,
  );
  const getExecution = db.prepare('SELECT body, acknowledged FROM executions WHERE session = ? AND number = ?');
  const getExecutions = db.prepare('SELECT body FROM executions WHERE session = ? ORDER BY number');
  const getLast = db.prepare('SELECT max(number) AS last FROM executions WHERE session = ?');
  const getInterpreters = db.prepare(
    "SELECT body FROM interpreters WHERE project = ? AND session IN ('', ?) ORDER BY name",
  );
  const putInterpreter = db.prepare(
    'INSERT OR REPLACE INTO interpreters (project, session, name, body) VALUES (?, ?, ?, ?)',
  );
  const removeInterpreter = db.prepare(
    "DELETE FROM interpreters WHERE project = ? AND session IN ('', ?) AND name = ?",
  );

  return {
    putSession: (row) => void putSession.run(row.id, row.project, row.usedAt, JSON.stringify(row)),
    session: (id) => body<SessionRow>(getSession.get(id)),
    sessionsOf: (project) => bodies<SessionRow>(getSessions.all(project)),
    ownedUnusedSince: (time) => bodies<SessionRow>(getUnused.all(time)),
    removeSession(id) {
      for (const removal of removals) removal.run(id);
    },
    putAlias: (owner, alias, session) => void putAlias.run(owner, alias, session),
    alias: (owner, alias) => (getAlias.get(owner, alias) as { session: string } | undefined)?.session,
    putExecution: (record, acknowledged) =>
      void putExecution.run(record.session, record.number, acknowledged, JSON.stringify(record)),
    execution: (session, number) => body<ExecutionRecord>(getExecution.get(session, number)),
    executions: (session) => bodies<ExecutionRecord>(getExecutions.all(session)),
    acknowledged: (session, number) =>
      (getExecution.get(session, number) as { acknowledged: number } | undefined)?.acknowledged ?? 0,
    lastNumber: (session) => (getLast.get(session) as { last: number | null }).last ?? 0,
    interpreters: (project, session) => bodies<SavedInterpreter>(getInterpreters.all(project, session)),
    putInterpreter(project, session, interpreter) {
      removeInterpreter.run(project, session, interpreter.name);
      putInterpreter.run(project, interpreter.saved ? '' : session, interpreter.name, JSON.stringify(interpreter));
    },
    removeInterpreter: (project, session, name) => void removeInterpreter.run(project, session, name),
    close: () => void db.close(),
  };
}

function body<T>(row: unknown): T | undefined {
  return row ? (JSON.parse((row as { body: string }).body) as T) : undefined;
}

function bodies<T>(rows: unknown[]): T[] {
  return rows.map((row) => JSON.parse((row as { body: string }).body) as T);
}
