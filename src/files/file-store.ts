/** Stores files that belong to sessions: their bytes in one folder, their rows in one SQLite file. A row is written last and removed first, so the bytes of every row are whole. */

import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { rm, rmdir, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import Database from 'libsql';
import { nanoid } from 'nanoid';
import { CuvetteError } from '../errors.ts';
import { privateFolder } from '../paths.ts';
import { contentTypeOf } from './content-type.ts';
import { copyIntoWorkspace } from './copy-in.ts';
import { copyOutOfWorkspace } from './copy-out.ts';
import { abortable, asStorageError, etagOf, moveInto, writeStream } from './durable-write.ts';
import { safeName } from './names.ts';
import { incomingFolderName, removeOrphanedFiles } from './orphaned-files.ts';

export interface StoredFile {
  id: string;
  session: string;
  name: string;
  size: number;
  /** Milliseconds since 1970. */
  createdAt: number;
  contentType: string;
  etag: string;
  readOnly: boolean;
  origin: 'upload' | 'output';
  owner: string;
  /** What others than its owner may use it by; see sharing.ts. */
  sharedAs?: string | undefined;
}

export interface FileStore {
  /** Takes a stream to its end, or leaves nothing behind. */
  receive(input: {
    session: string;
    owner: string;
    name: string;
    contentType?: string;
    readOnly?: boolean;
    sharedAs?: string | undefined;
    /** Bytes. */
    limit: number;
    source: AsyncIterable<Uint8Array>;
    signal?: AbortSignal;
  }): Promise<StoredFile>;
  /**
   * Keeps a copy of a regular file as an output. As many of the path's last parts as the name has are taken for
   * part of a workspace: none of them may be a symlink.
   */
  keep(input: { session: string; owner: string; name: string; path: string; limit?: number }): Promise<StoredFile>;
  get(session: string, id: string): StoredFile | undefined;
  /** The file of that id, in whichever session it is. */
  find(id: string): StoredFile | undefined;
  /** Oldest first. */
  list(session: string): StoredFile[];
  /** Where the bytes are, for reading only. */
  pathOf(file: StoredFile): string;
  /** Copies the bytes into a workspace, in place of what has that name there. Read-only files get the mode 0444. */
  copyIntoWorkspace(file: StoredFile, workspace: string, name: string, owner?: number): Promise<void>;
  /** Notes that code has removed the copy of a file that had that name. The file itself stays. */
  noteRemoval(file: StoredFile, name: string): void;
  /** Whether code has removed that copy. */
  isRemoved(file: StoredFile, name: string): boolean;
  /** Forgets what code has removed of a session's files. */
  forgetRemovals(session: string): void;
  remove(session: string, id: string): boolean;
  removeSession(session: string): void;
  /** Whose files a session holds, if it holds any. */
  ownerOf(session: string): string | undefined;
  /** Removes the sessions whose newest file is older than this; says how many. */
  expire(before: number): number;
  /** Bytes that a session holds. */
  usage(session: string): number;
  close(): void;
}

const READ_ONLY = 0o444;
const WRITABLE = 0o644;

const SCHEMA = `
  CREATE TABLE IF NOT EXISTS files (session TEXT NOT NULL, id TEXT NOT NULL, owner TEXT NOT NULL, size INTEGER NOT NULL,
    created_at INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (session, id));
  CREATE INDEX IF NOT EXISTS files_by_id ON files (id);
  CREATE TABLE IF NOT EXISTS removals (session TEXT NOT NULL, id TEXT NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (session, id, name));
  CREATE TRIGGER IF NOT EXISTS forget_removals AFTER DELETE ON files BEGIN
    DELETE FROM removals WHERE session = old.session AND id = old.id;
  END;
`;

export function openFileStore({ folder }: { folder: string }): FileStore {
  privateFolder(folder);
  const objects = join(folder, 'objects');
  const incoming = join(folder, 'incoming');
  const ownIncoming = join(incoming, incomingFolderName());
  mkdirSync(objects, { recursive: true, mode: 0o700 });
  mkdirSync(ownIncoming, { recursive: true, mode: 0o700 });

  const db = new Database(join(folder, 'files.db'));
  db.pragma('busy_timeout = 10000');
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = NORMAL');
  db.exec(SCHEMA);
  let isOpen = true;

  const put = db.prepare('INSERT INTO files (session, id, owner, size, created_at, body) VALUES (?, ?, ?, ?, ?, ?)');
  const get = db.prepare('SELECT body FROM files WHERE session = ? AND id = ?');
  const getById = db.prepare('SELECT body FROM files WHERE id = ?');
  const list = db.prepare('SELECT body FROM files WHERE session = ? ORDER BY rowid');
  const remove = db.prepare('DELETE FROM files WHERE session = ? AND id = ? RETURNING body');
  const removeAll = db.prepare('DELETE FROM files WHERE session = ? RETURNING body');
  const removeOld = db.prepare(
    `DELETE FROM files WHERE session IN (SELECT session FROM files GROUP BY session HAVING max(created_at) < ?)
     RETURNING body`,
  );
  const owner = db.prepare('SELECT owner FROM files WHERE session = ? ORDER BY rowid LIMIT 1');
  const usage = db.prepare('SELECT coalesce(sum(size), 0) AS bytes FROM files WHERE session = ?');

  const putRemoval = db.prepare('INSERT OR IGNORE INTO removals (session, id, name) VALUES (?, ?, ?)');
  const getRemoval = db.prepare('SELECT 1 FROM removals WHERE session = ? AND id = ? AND name = ?');
  const forgetRemovals = db.prepare('DELETE FROM removals WHERE session = ?');

  const pathOf = (file: StoredFile) => join(objects, file.session, file.id);
  const find = (session: string, id: string) => filesIn(get.all(session, id))[0];

  // What it cannot remove now, the next server may.
  void removeOrphanedFiles({
    incoming,
    objects,
    isKnown: (session, id) => (isOpen ? find(session, id) !== undefined : undefined),
  }).catch(() => {});

  /** Checks what a new file is to be called, and says where its bytes go until they are whole. */
  function begin(session: string, name: string): { safe: string; temporary: string } {
    const safe = safeName(name);
    checkSession(session);
    return { safe, temporary: join(ownIncoming, nanoid()) };
  }

  /** Moves received bytes into their folder, then writes their row. */
  async function settle(temporary: string, received: Omit<StoredFile, 'id' | 'createdAt'>): Promise<StoredFile> {
    const file = { id: nanoid(), createdAt: Date.now(), ...received };
    try {
      await moveInto(join(objects, file.session), temporary, file.id);
      put.run(file.session, file.id, file.owner, file.size, file.createdAt, JSON.stringify(file));
      return file;
    } catch (error) {
      await rm(temporary, { force: true });
      await rm(pathOf(file), { force: true });
      throw asStorageError(error);
    }
  }

  /** Removes the bytes of rows that are gone. In the background, one by one: a large file takes the system a while. */
  function discard(rows: unknown[]): StoredFile[] {
    const files = filesIn(rows);
    void (async () => {
      for (const file of files) {
        await unlink(pathOf(file)).catch(() => {});
        await rmdir(join(objects, file.session)).catch(() => {});
      }
    })();
    return files;
  }

  return {
    async receive({ session, owner, name, contentType, readOnly = false, sharedAs, limit, source, signal }) {
      const { safe, temporary } = begin(session, name);
      const hash = createHash('sha256');
      const size = await writeStream(signal ? abortable(signal, source) : source, temporary, limit, hash);
      const about = { contentType: contentTypeOf(safe, contentType), etag: etagOf(hash), sharedAs };
      return settle(temporary, { session, owner, name: safe, size, readOnly, origin: 'upload', ...about });
    },

    async keep({ session, owner, name, path, limit = Number.POSITIVE_INFINITY }) {
      const { safe, temporary } = begin(session, name);
      const copied = await copyOutOfWorkspace(path, safe, limit, temporary);
      const about = { contentType: contentTypeOf(safe), readOnly: false };
      return settle(temporary, { session, owner, name: safe, origin: 'output', ...about, ...copied });
    },

    get: find,
    find: (id) => filesIn(getById.all(id))[0],
    list: (session) => filesIn(list.all(session)),
    pathOf,
    copyIntoWorkspace: (file, workspace, name, owner) =>
      copyIntoWorkspace(pathOf(file), workspace, name, { mode: file.readOnly ? READ_ONLY : WRITABLE, owner }).catch(
        (error: unknown) => {
          throw asStorageError(error);
        },
      ),
    noteRemoval: ({ session, id }, name) => void putRemoval.run(session, id, name),
    isRemoved: ({ session, id }, name) => getRemoval.get(session, id, name) !== undefined,
    forgetRemovals: (session) => void forgetRemovals.run(session),
    remove: (session, id) => discard(remove.all(session, id)).length > 0,
    removeSession: (session) => void discard(removeAll.all(session)),
    ownerOf: (session) => (owner.get(session) as { owner: string } | undefined)?.owner,
    expire: (before) => new Set(discard(removeOld.all(before)).map((file) => file.session)).size,
    usage: (session) => (usage.get(session) as { bytes: number }).bytes,
    close() {
      isOpen = false;
      db.close();
    },
  };
}

function filesIn(rows: unknown[]): StoredFile[] {
  return rows.map((row) => JSON.parse((row as { body: string }).body) as StoredFile);
}

/** A session's name becomes a folder's. */
function checkSession(session: string): void {
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(session)) {
    throw new CuvetteError('invalid_input', `${JSON.stringify(session)} cannot be the name of a session.`);
  }
}
