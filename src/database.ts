/** Opens an SQLite file that several servers may use at once, and brings its schema up to this version of Cuvette. */

import Database from 'libsql';
import { CuvetteError } from './errors.ts';

/** The schema is the sum of its migrations, each run once, in order. One that was released is never changed: another is added. */
export function openDatabase(path: string, migrations: readonly string[]): Database.Database {
  const db = new Database(path);
  db.pragma('busy_timeout = 10000');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  try {
    if (versionOf(db) !== migrations.length) createTransactions(db)(() => migrate(db, path, migrations));
  } catch (error) {
    db.close();
    throw error;
  }
  return db;
}

/** Runs the work that it is given as a whole or not at all; other servers wait for it. */
export function createTransactions(db: Database.Database): (work: () => void) => void {
  const [begin, commit, rollback] = ['BEGIN IMMEDIATE', 'COMMIT', 'ROLLBACK'].map((sql) => db.prepare(sql));
  return (work) => {
    begin?.run();
    try {
      work();
      commit?.run();
    } catch (error) {
      rollback?.run();
      throw error;
    }
  };
}

function migrate(db: Database.Database, path: string, migrations: readonly string[]): void {
  // Another server may have done it in the meantime.
  const version = versionOf(db);
  if (version > migrations.length)
    throw new CuvetteError(
      'newer_data',
      `${path} was written by a newer Cuvette (its schema is version ${version}, this one knows ${migrations.length}). Nothing was changed. Start that version again, or give this one a folder of its own by CUVETTE_HOME.`,
    );
  for (const migration of migrations.slice(version)) db.exec(migration);
  db.exec(`PRAGMA user_version = ${migrations.length}`);
}

function versionOf(db: Database.Database): number {
  const row: unknown = db.prepare('PRAGMA user_version').get();
  if (typeof row === 'object' && row !== null && 'user_version' in row) return Number(row.user_version);
  throw new Error('SQLite did not tell the version of a schema.');
}
