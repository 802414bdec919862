/** Stores sessions, their history and their interpreters in one SQLite file that several servers may use at once. */

import { join } from 'node:path';
import { createTransactions, openDatabase } from '../database.ts';
import type { MimeBundle, Output } from '../interpreters/interpreter.ts';
import { privateFolder } from '../paths.ts';
import type { ProcessId } from '../process-tree.ts';
import type { ExecutionRecord } from './execution-record.ts';

export interface SessionRow {
  id: string;
  project: string;
  createdAt: number;
  usedAt: number;
  /** The agent that the session belongs to. */
  agent: ProcessId | null;
  /** The server that holds it now, or held it last. */
  server: ProcessId | null;
  /** True once its server has ended in good order. */
  closed: boolean;
  /** For each interpreter that was reset, the last execution before that. */
  cleared?: Record<string, number>;
  /** Who it belongs to, in a server that works for several callers. */
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

/** A large output without its content: how many characters it has of each type. */
export interface LargeOutput {
  type: 'display' | 'result';
  displayId: string | null;
  metadata: MimeBundle;
  sizes: Record<string, number>;
}

/** An execution as a page of the history has it. */
export type PagedExecution = Omit<ExecutionRecord, 'outputs'> & { outputs: (Output | LargeOutput)[] };

export interface SessionStore {
  putSession(row: SessionRow): void;
  session(id: string): SessionRow | undefined;
  sessionsOf(project: string): SessionRow[];
  /** An owner's sessions, the last used first; at most so many. */
  sessionsOfOwner(owner: string, most: number): SessionRow[];
  /** Sessions that have an owner, and that nobody has used since. */
  ownedUnusedSince(time: number): SessionRow[];
  /** Forgets a session, its history and its names. */
  removeSession(id: string): void;
  /** Stores a name that its owner has for a session. */
  putAlias(owner: string, alias: string, session: string): void;
  alias(owner: string, alias: string): string | undefined;
  /** All names of a session. */
  aliasesOf(session: string): string[];
  /** Of the outputs, only those at the changed positions are written; all, where none are given. */
  putExecution(record: ExecutionRecord, acknowledged: number, changed?: Iterable<number>): void;
  execution(session: string, number: number): ExecutionRecord | undefined;
  /** The whole history, with all outputs. */
  executions(session: string): ExecutionRecord[];
  /** The last executions before that number, at most so many, the oldest first. What is large in them is not read. */
  page(session: string, before: number, most: number): PagedExecution[];
  unfinished(session: string): ExecutionRecord[];
  hasUnfinished(session: string): boolean;
  /** By interpreter: the last execution that may have left variables in it. */
  lastWithVariables(session: string): Map<string, number>;
  /** The highest sequence number of its interpreter that is on disk. */
  acknowledged(session: string, number: number): number;
  lastNumber(session: string): number;
  /** Interpreters saved for the project, and those that the session added for itself. */
  interpreters(project: string, session: string): SavedInterpreter[];
  putInterpreter(project: string, session: string, interpreter: SavedInterpreter): void;
  removeInterpreter(project: string, session: string, name: string): void;
  close(): void;
}

/** Characters of an output, and number of such outputs, up to which they are stored in the row of their execution. */
const SMALL = 2000;
const FEW = 8;

const MIGRATIONS = [
  `CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, project TEXT NOT NULL, used_at INTEGER NOT NULL, body TEXT NOT NULL);
   CREATE INDEX IF NOT EXISTS sessions_by_project ON sessions (project, used_at);
   CREATE TABLE IF NOT EXISTS executions (session TEXT NOT NULL, number INTEGER NOT NULL, acknowledged INTEGER NOT NULL, body TEXT NOT NULL,
     PRIMARY KEY (session, number));
   CREATE TABLE IF NOT EXISTS aliases (owner TEXT NOT NULL, alias TEXT NOT NULL, session TEXT NOT NULL, PRIMARY KEY (owner, alias));
   CREATE INDEX IF NOT EXISTS aliases_by_session ON aliases (session);
   CREATE TABLE IF NOT EXISTS interpreters (project TEXT NOT NULL, session TEXT NOT NULL, name TEXT NOT NULL, body TEXT NOT NULL,
     PRIMARY KEY (project, session, name));`,
  // Columns for what a session needs when it is opened, and rows for large outputs, which are then read and written only when needed.
  `ALTER TABLE executions RENAME TO whole_executions;
   CREATE TABLE executions (session TEXT NOT NULL, number INTEGER NOT NULL, acknowledged INTEGER NOT NULL, interpreter TEXT NOT NULL,
     state TEXT NOT NULL, has_variables INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session, number));
   CREATE TABLE outputs (session TEXT NOT NULL, number INTEGER NOT NULL, position INTEGER NOT NULL, body TEXT NOT NULL,
     PRIMARY KEY (session, number, position));
   INSERT INTO executions SELECT session, number, acknowledged, json_extract(body, '$.interpreter'), json_extract(body, '$.state'),
     json_extract(body, '$.variablesSurvived') AND json_extract(body, '$.state') != 'queued'
       AND coalesce(json_extract(body, '$.reason.code'), '') != 'not-started',
     body FROM whole_executions;
   DROP TABLE whole_executions;
   CREATE INDEX interpreters_by_session ON interpreters (session);`,
  `CREATE INDEX sessions_by_owner ON sessions (json_extract(body, '$.owner'), used_at);`,
];

/** Characters of an output as JSON up to which it stands in a page of the history; texts that were printed are never longer. */
const LARGE = 512 << 10;

/** Characters of an execution's code that the history keeps: each change of its record writes them again. */
const MOST_CODE = 250_000;

export function openSessionStore(folder: string): SessionStore {
  privateFolder(folder);
  const db = openDatabase(join(folder, 'cuvette.db'), MIGRATIONS);

  /** Executions that have not ended, and whose outputs are all in rows of their own. */
  const apart = new Set<string>();
  const writeTogether = createTransactions(db);
  const putSession = db.prepare('INSERT OR REPLACE INTO sessions (id, project, used_at, body) VALUES (?, ?, ?, ?)');
  const getSession = db.prepare('SELECT body FROM sessions WHERE id = ?');
  const getSessions = db.prepare('SELECT body FROM sessions WHERE project = ? ORDER BY used_at DESC LIMIT 50');
  const getOwned = db.prepare(
    "SELECT body FROM sessions WHERE json_extract(body, '$.owner') = ? ORDER BY used_at DESC LIMIT ?",
  );
  const getUnused = db.prepare(
    "SELECT body FROM sessions WHERE used_at < ? AND json_extract(body, '$.owner') IS NOT NULL LIMIT 500",
  );
  const removals = [
    'DELETE FROM sessions WHERE id = ?',
    'DELETE FROM executions WHERE session = ?',
    'DELETE FROM outputs WHERE session = ?',
    'DELETE FROM aliases WHERE session = ?',
    'DELETE FROM interpreters WHERE session = ?',
  ].map((sql) => db.prepare(sql));
  const putAlias = db.prepare('INSERT OR REPLACE INTO aliases (owner, alias, session) VALUES (?, ?, ?)');
  const getAlias = db.prepare('SELECT session FROM aliases WHERE owner = ? AND alias = ?');
  const getAliases = db.prepare('SELECT alias FROM aliases WHERE session = ? ORDER BY alias');
  // In place, where a row is there already: a replaced row would move, and cost twice the writing.
  const putExecution = db.prepare(
    `INSERT INTO executions (session, number, acknowledged, interpreter, state, has_variables, body) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (session, number) DO UPDATE SET acknowledged = excluded.acknowledged, state = excluded.state,
       has_variables = excluded.has_variables, body = excluded.body`,
  );
  const putOutput = db.prepare(
    `INSERT INTO outputs (session, number, position, body) VALUES (?, ?, ?, ?)
     ON CONFLICT (session, number, position) DO UPDATE SET body = excluded.body`,
  );
  const getExecution = db.prepare('SELECT body, acknowledged FROM executions WHERE session = ? AND number = ?');
  const getOutputs = db.prepare('SELECT body FROM outputs WHERE session = ? AND number = ? ORDER BY position');
  const getSizedOutputs = db.prepare(
    `SELECT CASE WHEN length(body) <= ${LARGE} OR json_extract(body, '$.type') NOT IN ('display', 'result') THEN body
       ELSE json_object('type', json_extract(body, '$.type'), 'displayId', json_extract(body, '$.displayId'),
         'metadata', json_extract(body, '$.metadata'),
         'sizes', (SELECT json_group_object(key, length(value)) FROM json_each(outputs.body, '$.data'))) END AS body
     FROM outputs WHERE session = ? AND number = ? ORDER BY position`,
  );
  const getPage = db.prepare(
    'SELECT number, body FROM executions WHERE session = ? AND number < ? ORDER BY number DESC LIMIT ?',
  );
  const getNumbers = db.prepare('SELECT number FROM executions WHERE session = ? ORDER BY number');
  const getUnfinished = db.prepare(
    "SELECT number FROM executions WHERE session = ? AND state != 'done' ORDER BY number",
  );
  const getLastKept = db.prepare(
    'SELECT interpreter, max(number) AS last FROM executions WHERE session = ? AND has_variables = 1 GROUP BY interpreter',
  );
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

  function execution(session: string, number: number): ExecutionRecord | undefined {
    const found = body<StoredExecution>(getExecution.get(session, number));
    if (!found) return undefined;
    if (!found.outputs && found.state !== 'done') apart.add(`${session}.${number}`);
    const outputs = found.outputs ?? bodies<Output>(getOutputs.all(session, number));
    return { ...found, origin: found.origin ?? null, outputs };
  }

  return {
    putSession: (row) => void putSession.run(row.id, row.project, row.usedAt, JSON.stringify(row)),
    session: (id) => body<SessionRow>(getSession.get(id)),
    sessionsOf: (project) => bodies<SessionRow>(getSessions.all(project)),
    sessionsOfOwner: (owner, most) => bodies<SessionRow>(getOwned.all(owner, most)),
    ownedUnusedSince: (time) => bodies<SessionRow>(getUnused.all(time)),
    removeSession: (id) =>
      writeTogether(() => {
        for (const removal of removals) removal.run(id);
      }),
    putAlias: (owner, alias, session) => void putAlias.run(owner, alias, session),
    alias: (owner, alias) => (getAlias.get(owner, alias) as { session: string } | undefined)?.session,
    aliasesOf: (session) => (getAliases.all(session) as { alias: string }[]).map(({ alias }) => alias),
    putExecution(record, acknowledged, changed = record.outputs.keys()) {
      const kept = { ...record, code: beginningOf(record.code) };
      const { outputs, ...rest } = kept;
      const { session, number, interpreter, state } = record;
      const key = `${session}.${number}`;
      const put = (content: object) =>
        putExecution.run(
          ...[session, number, acknowledged, interpreter, state, Number(hasVariables(record)), JSON.stringify(content)],
        );
      if (!apart.has(key) && outputs.length <= FEW && outputs.every(isSmall)) return void put(kept);
      const positions = apart.has(key) ? changed : outputs.keys();
      writeTogether(() => {
        put(rest);
        for (const position of positions) putOutput.run(session, number, position, JSON.stringify(outputs[position]));
      });
      if (state === 'done') apart.delete(key);
      else apart.add(key);
    },
    execution,
    executions: (session) => numbers(getNumbers.all(session)).flatMap((number) => execution(session, number) ?? []),
    page: (session, before, most) =>
      bodies<StoredExecution>(getPage.all(session, before, most).reverse()).map((found) => ({
        ...found,
        origin: found.origin ?? null,
        outputs: found.outputs ?? bodies<Output | LargeOutput>(getSizedOutputs.all(session, found.number)),
      })),
    hasUnfinished: (session) => getUnfinished.get(session) !== undefined,
    unfinished: (session) => numbers(getUnfinished.all(session)).flatMap((number) => execution(session, number) ?? []),
    lastWithVariables: (session) =>
      new Map(
        (getLastKept.all(session) as { interpreter: string; last: number }[]).map((row) => [row.interpreter, row.last]),
      ),
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

/** The row of an execution has its outputs only if they are few and small. */
type StoredExecution = Omit<ExecutionRecord, 'outputs'> & { outputs?: Output[] };

/** Small outputs are written with their execution: one row costs less than two. */
function isSmall(output: Output): boolean {
  if (output.type === 'stream') return output.text.length <= SMALL;
  if (output.type === 'error') return output.evalue.length + output.traceback.join('').length <= SMALL;
  return Object.values(output.data).every((value) => typeof value === 'string' && value.length <= SMALL);
}

/** Whether the interpreter may hold variables of this execution. */
function hasVariables({ state, reason, variablesSurvived }: ExecutionRecord): boolean {
  return state !== 'queued' && reason?.code !== 'not-started' && variablesSurvived;
}

function numbers(rows: unknown[]): number[] {
  return rows.map((row) => (row as { number: number }).number);
}

function beginningOf(code: string): string {
  const rest = code.length - MOST_CODE;
  return rest <= 0 ? code : `${code.slice(0, MOST_CODE)}\n[${rest} more characters of code were not kept]\n`;
}

function body<T>(row: unknown): T | undefined {
  return row ? (JSON.parse((row as { body: string }).body) as T) : undefined;
}

function bodies<T>(rows: unknown[]): T[] {
  return rows.map((row) => JSON.parse((row as { body: string }).body) as T);
}
