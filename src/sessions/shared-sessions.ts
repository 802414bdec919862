/**
 * Owns the sessions of a server that works for several callers: each session has an owner, who alone can see it, and a workspace of its
 * own, which code sees at /mnt/data. How many may be open at once is `live-sessions.ts`'s.
 */

import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { nanoid } from 'nanoid';
import { CuvetteError } from '../errors.ts';
import { removeTree } from '../files/remove-tree.ts';
import { createKeeperPool } from '../interpreters/process/keeper-pool.ts';
import { endKeepers } from '../interpreters/python/driver.ts';
import { createZygotes } from '../interpreters/python/zygotes.ts';
import { isOtherRunning, thisProcess } from '../process-tree.ts';
import { SEEN } from '../sandbox/layout.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { confinedVariables, harmlessVariables, withoutSecrets } from './environment-variables.ts';
import type { LabInterpreters } from './interpreter-catalog.ts';
import { createLiveSessions, type LiveSession } from './live-sessions.ts';
import { type SeenSession, seeSession } from './seen-session.ts';
import type { ServerResources } from './server-resources.ts';
import { createSession, type Session } from './session.ts';
import { type ChangeListener, createSessionChanges } from './session-changes.ts';
import type { SessionRow } from './session-store.ts';

export interface SharedSession {
  readonly session: Session;
  readonly owner: string;
  readonly workspace: string;
  /** Whom files must belong to for the session's code to change them, if not to this process's user. */
  readonly codeOwner: number | undefined;
  /** The workspace as code sees it. */
  readonly seen: string;
  /** True if there was nothing of it before, or only its files. */
  readonly isNew: boolean;
}

/** Which session a caller asks for; a new one, if nothing here says which. */
export interface SessionChoice {
  /** A session's id, if the caller has one. */
  id?: string | undefined;
  /** A name that the owner has for it; made if need be. */
  alias?: string | undefined;
  /** Throws `unknown_session` where there is none of that id, instead of making it. */
  mustExist?: boolean;
  /** For one call, of a language that keeps nothing: ends with `release`. */
  isForOneCall?: boolean;
}

export interface SharedSessions {
  /** Opens a session, which is not evicted before `release`. Throws `rate_limited` if there is no room. */
  open(request: { owner: string } & SessionChoice): Promise<SharedSession>;
  /** The session of that id if it is this owner's, opened if need be. It may be evicted at any time. */
  find(owner: string, id: string): Promise<SharedSession | undefined>;
  /** The id of the session that an alias stands for; made if need be. */
  idOf(owner: string, alias: string): string;
  /** True if the id is free or this owner's. */
  mayUse(owner: string, id: string): boolean;
  /** Undoes one `open`; a session for one call ends with it. */
  release(sharedSession: SharedSession): Promise<void>;
  /** Ends a session and removes its files and its history; false if the owner has none of that id. */
  remove(owner: string, id: string): Promise<boolean>;
  /** The sessions of an owner that are open now. */
  liveOf(owner: string): Session[];
  /** The sessions of an owner, open or stored, the last used first; at most so many. */
  list(owner: string, most: number): SeenSession[];
  /** What is known of a session, if it is this owner's, without opening it. */
  look(owner: string, id: string): SeenSession | undefined;
  /** Calls back with what happens in the owner's sessions. */
  watch(owner: string, listener: ChangeListener): () => void;
  /** Tells watchers that somebody has changed files of a session's workspace. */
  noteFiles(owner: string, id: string): void;
  readonly size: number;
  /** How many sessions were evicted: for being idle or open for too long, or to make room. */
  readonly evicted: number;
  /** Evicts sessions that were idle or open for too long, and removes those that nobody has used for long. */
  endExpired(): Promise<void>;
  warmUp(): Promise<void>;
  /** Disconnects from the interpreters, which then wait for another server; or ends them, unless `isLeaving`. */
  close(isLeaving: boolean): Promise<void>;
}

export interface SharedSessionsOptions {
  resources: ServerResources;
  /** Where sessions have their folders. */
  folder: string;
  /** Whether workspaces can be mounted at /mnt/data. */
  mountsWorkspace: boolean;
  /** How sessions are confined, if they are. */
  sandbox?: Sandbox | undefined;
  /** How many sessions may be open at once. */
  most: number;
  /** Seconds after which a session is evicted: without a call, and since it was opened; and after which an unused one is removed. */
  idle: number;
  age: number;
  keep: number;
  /** Interpreters of the owner's labs. */
  labInterpretersOf?(owner: string): LabInterpreters;
  /** Whose files are kept under an id, if any. */
  ownerOf?(id: string): string | undefined;
  onRemoved?(id: string): void;
}

interface OpenSession extends LiveSession {
  readonly owner: string;
  readonly isForOneCall: boolean;
  /** When its use was last noted in the store. */
  notedAt: number;
}

/** How folders are called whose sessions are removed, until they are gone. */
const REMOVED = '.aside-';
/** The name of the session of calls that name none. */
export const DEFAULT_ALIAS = 'default';
const NOTE_USE_EVERY_MS = 30_000;
/** Characters: what an execution prints goes whole into its answer. */
const LARGEST_ANSWER = 32 << 20;
const ID = /^[A-Za-z0-9_-]{21}$/;
const ID_LENGTH = 21;

export function createSharedSessions(options: SharedSessionsOptions): SharedSessions {
  const { resources, mountsWorkspace, sandbox } = options;
  const { runtime, environment, limits, programs } = resources;
  const zygotes = sandbox ? createZygotes(runtime, withoutSecrets(), sandbox) : resources.zygotes;
  const keeperPool = createKeeperPool(runtime, zygotes, resources.programZygote, sandbox);
  const changes = createSessionChanges();
  const live = createLiveSessions<OpenSession>(options.most, ({ owner, session: { id } }, reason) =>
    changes.tell(owner, { session: id, ...(reason ? { type: 'closed', reason } : { type: 'opened' }) }),
  );
  const aliases = new Map<string, string>();
  const removals = new Set<Promise<void>>();
  const me = thisProcess();
  const folderOf = (id: string) => join(options.folder, id);
  const workspaceOf = (id: string) => join(folderOf(id), 'workspace');
  const seenAt = (workspace: string) => (mountsWorkspace || sandbox ? SEEN.workspace : workspace);

  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(options.folder)) {
    // A server was killed while it removed this folder.
    if (name.startsWith(REMOVED)) void removeTree(join(options.folder, name)).catch(() => {});
  }

  function openRow(row: SessionRow, owner: string, isForOneCall = false): OpenSession {
    const folder = folderOf(row.id);
    const workspace = workspaceOf(row.id);
    const home = sandbox ? SEEN.home : join(folder, 'home');
    for (const path of sandbox ? [workspace] : [workspace, home]) mkdirSync(path, { recursive: true, mode: 0o700 });
    sandbox?.give(workspace);
    const store = resources.store();
    const now = Date.now();
    store.putSession({ ...row, usedAt: now, server: me, closed: false });
    const session = createSession({
      id: row.id,
      project: workspace,
      folder,
      mountsWorkspace,
      seen: seenAt(workspace),
      env: { ...harmlessVariables(home), ...(sandbox && confinedVariables(sandbox)) },
      sandbox,
      labInterpreters: options.labInterpretersOf?.(owner),
      runtime,
      linger: resources.linger,
      limits: { ...limits, isShared: true, maxOutput: Math.min(limits.maxOutput, LARGEST_ANSWER) },
      programs,
      store,
      environment,
      zygotes,
      onChange: (change) => changes.tell(owner, { ...change, session: row.id }),
      ...(isForOneCall && { keeperPool }),
    });
    return { session, owner, isForOneCall, usedAt: now, notedAt: now, startedAt: now, users: 0 };
  }

  function newRow(owner: string, id: string): SessionRow {
    const now = Date.now();
    const project = workspaceOf(id);
    return { id, project, createdAt: now, usedAt: now, agent: null, server: null, closed: false, owner };
  }

  /** What the store knows of a session, if it is this owner's and no other server has it open. */
  function rowOf(owner: string, id: string): SessionRow | undefined {
    const row = ID.test(id) ? resources.store().session(id) : undefined;
    return row?.owner === owner && !isOtherRunning(row.server) ? row : undefined;
  }

  function ownLive(owner: string, id: string): OpenSession | undefined {
    const known = live.get(id);
    return known?.owner === owner ? known : undefined;
  }

  function noteUse(open: OpenSession): void {
    if (open.usedAt - open.notedAt <= NOTE_USE_EVERY_MS) return;
    open.notedAt = open.usedAt;
    const row = resources.store().session(open.session.id);
    if (row) resources.store().putSession({ ...row, usedAt: open.usedAt });
  }

  function toShared({ session, owner }: OpenSession, isNew: boolean): SharedSession {
    const workspace = session.project;
    return { session, owner, workspace, codeOwner: sandbox?.owner, seen: seenAt(workspace), isNew };
  }

  function idOf(owner: string, alias: string): string {
    const key = JSON.stringify([owner, alias]);
    const store = resources.store();
    const id = aliases.get(key) ?? store.alias(owner, alias) ?? nanoid();
    if (!aliases.has(key)) store.putAlias(owner, alias, id);
    aliases.set(key, id);
    return id;
  }

  function mayUse(owner: string, id: string): boolean {
    const holder = resources.store().session(id)?.owner ?? options.ownerOf?.(id);
    return holder === undefined || holder === owner;
  }

  function see(row: SessionRow, owner: string): SeenSession {
    const { id } = row;
    const open = ownLive(owner, id);
    const names = resources.store().aliasesOf(id);
    const workspace = workspaceOf(id);
    return seeSession({
      row: { ...row, usedAt: open?.usedAt ?? row.usedAt },
      store: resources.store(),
      live: open?.session,
      folder: folderOf(id),
      outputLimit: limits.outputLimit,
      names: names.filter((name) => name !== DEFAULT_ALIAS).map((name) => name.replace(/^(entity|hint):/, '')),
      isDefault: names.includes(DEFAULT_ALIAS),
      workspace: { folder: workspace, seen: seenAt(workspace), codeOwner: sandbox?.owner },
    });
  }

  async function forget(id: string): Promise<void> {
    resources.store().removeSession(id);
    for (const [key, session] of aliases) if (session === id) aliases.delete(key);
    await removeFolder(id);
    options.onRemoved?.(id);
  }

  /** Renames the folder first: the next call may open a session of the same id before all of it is removed. */
  async function removeFolder(id: string): Promise<void> {
    const removed = join(options.folder, `${REMOVED}${nanoid()}`);
    try {
      renameSync(folderOf(id), removed);
    } catch {
      return; // There was none.
    }
    const removal = removeTree(removed).finally(() => removals.delete(removal));
    removals.add(removal);
    await removal;
  }

  /** True for the socket of a session that an earlier server has left and that no server has open. */
  function isOrphaned(socket: string): boolean {
    const row = resources.store().session(socket.slice(0, ID_LENGTH));
    return row?.owner !== undefined && !live.get(row.id) && !isOtherRunning(row.server);
  }

  async function open(request: { owner: string } & SessionChoice): Promise<SharedSession> {
    const { owner, id, alias, mustExist = false, isForOneCall = false } = request;
    const asked = alias === undefined ? id : idOf(owner, alias);
    // Somebody's files may be kept under the id already; another owner's id is treated as unknown.
    const wanted = asked !== undefined && ID.test(asked) && mayUse(owner, asked) ? asked : undefined;
    if (mustExist && (wanted === undefined || !(live.get(wanted) || rowOf(owner, wanted)))) throw unknown(asked);
    let isNew = false;
    const opened = await live.acquire(wanted, () => {
      const row = wanted === undefined ? undefined : rowOf(owner, wanted);
      isNew = row === undefined;
      if (isNew && mustExist) throw unknown(asked); // It was removed while this call waited.
      if (row) return openRow(row, owner);
      const isFree = wanted !== undefined && mayUse(owner, wanted); // Another owner may have taken the id meanwhile.
      return openRow(newRow(owner, isFree ? wanted : nanoid()), owner, isForOneCall);
    });
    if (opened.owner !== owner) {
      // Another owner has taken the id while this call waited for room.
      live.release(opened);
      if (mustExist) throw unknown(asked);
      return open({ owner, isForOneCall });
    }
    noteUse(opened);
    return toShared(opened, isNew);
  }

  return {
    open,
    async find(owner, id) {
      if (!ownLive(owner, id) && !rowOf(owner, id)) return undefined;
      const found = await live.acquire(id, () => {
        const row = rowOf(owner, id);
        return row && openRow(row, owner);
      });
      if (!found) return undefined;
      live.release(found);
      if (found.owner !== owner) return undefined;
      noteUse(found);
      return toShared(found, false);
    },
    idOf,
    mayUse,
    async release({ session }) {
      const open = live.get(session.id);
      if (open?.session !== session) return;
      live.release(open);
      if (open.isForOneCall && live.isIdle(open)) await live.end(open, 'evicted', () => removeFolder(session.id));
    },
    async remove(owner, id) {
      const row = rowOf(owner, id);
      const open = ownLive(owner, id) ?? (row && openRow(row, owner));
      if (!open) return false;
      for (const { record } of open.session.pending()) open.session.interrupt(record.number);
      await live.end(open, 'removed', () => forget(id));
      return true;
    },
    liveOf: (owner) => live.all().flatMap((open) => (open.owner === owner ? [open.session] : [])),
    list: (owner, most) =>
      resources
        .store()
        .sessionsOfOwner(owner, most)
        .filter(({ server }) => !isOtherRunning(server))
        .map((row) => see(row, owner)),
    look(owner, id) {
      const row = rowOf(owner, id);
      return row && see(row, owner);
    },
    watch: changes.watch,
    noteFiles: (owner, session) => changes.tell(owner, { session, type: 'files' }),
    get size() {
      return live.size;
    },
    get evicted() {
      return live.evicted;
    },
    async endExpired() {
      const now = Date.now();
      for (const open of live.all()) {
        const isExpired = now - open.usedAt > options.idle * 1000 || now - open.startedAt > options.age * 1000;
        if (isExpired && live.isIdle(open)) await live.evict(open);
      }
      for (const row of resources.store().ownedUnusedSince(now - options.keep * 1000)) {
        if (live.get(row.id) || isOtherRunning(row.server)) continue;
        await forget(row.id);
        if (row.owner !== undefined) changes.tell(row.owner, { session: row.id, type: 'closed', reason: 'removed' });
      }
    },
    async warmUp() {
      await resources.warmUp(zygotes);
      await keeperPool.prepare();
      environment.onProgress((next) => {
        if (next.phase === 'ready') keeperPool.prepare().catch(() => {}); // Whoever borrows next is told.
      });
    },
    async close(isLeaving) {
      if (!isLeaving) await endKeepers(join(sandbox?.runtime ?? runtime, 'k'), isOrphaned);
      for (const { session, isForOneCall } of live.all()) {
        if (isForOneCall || !isLeaving) await session.stop();
        else await session.leave(resources.linger, null);
        const row = resources.store().session(session.id);
        if (row) resources.store().putSession({ ...row, closed: true });
      }
      await keeperPool.close();
      await Promise.allSettled(removals);
      if (sandbox) await zygotes.dismiss(!isLeaving);
    },
  };
}

function unknown(id: string | undefined): CuvetteError {
  return new CuvetteError(
    'unknown_session',
    `There is no session ${id}. Leave the session out for the default one, or give "new" for another.`,
  );
}
