/**
 * The sessions of a server that works for several callers: each has an owner, a workspace of its own that code sees at /mnt/data,
 * and a place among those that may live at once. Nobody sees another's.
 */

import { mkdirSync, readdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { nanoid } from 'nanoid';
import { CuvetteError } from '../errors.ts';
import { removeTree } from '../files/remove-tree.ts';
import { createKeeperPool } from '../interpreters/process/keeper-pool.ts';
import { endKeepers } from '../interpreters/python/driver.ts';
import { createZygotes } from '../interpreters/python/zygotes.ts';
import { findProcess, isRunning, type ProcessId } from '../process-tree.ts';
import { SEEN } from '../sandbox/layout.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { rateLimited } from './admission.ts';
import { confinedVariables, harmlessVariables, withoutSecrets } from './environment-variables.ts';
import type { LabInterpreters } from './interpreter-pool.ts';
import type { ServerResources } from './server-resources.ts';
import { createSession, type Session } from './session.ts';
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
  /** Opens a session and holds it until `release`: eviction passes it by. Throws `rate_limited` where there is no room. */
  open(request: { owner: string } & SessionChoice): Promise<SharedSession>;
  /** The session of that id if it is this owner's; opened if need be, and not held. */
  find(owner: string, id: string): Promise<SharedSession | undefined>;
  /** The id of the session that an alias stands for; made if need be. */
  idOf(owner: string, alias: string): string;
  /** True if the id is free or this owner's. */
  mayUse(owner: string, id: string): boolean;
  /** Ends the hold of one `open`; a session for one call ends with it. */
  release(shared: SharedSession): Promise<void>;
  /** Ends a session, and forgets all of it. */
  remove(owner: string, id: string): Promise<boolean>;
  /** The sessions of an owner that live now. */
  liveOf(owner: string): Session[];
  readonly size: number;
  /** How many were ended by this server because they were idle, too old, or in another's way. */
  readonly cleaned: number;
  /** Ends what has been idle or alive for too long, and forgets what nobody has used. */
  endExpired(): Promise<void>;
  warmUp(): Promise<void>;
  /** Lets go of the interpreters, which wait for another server; or ends them. */
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
  /** How many may live at once. */
  most: number;
  /** Seconds: without a call, since it began, and until it is forgotten. */
  idle: number;
  age: number;
  keep: number;
  /** Interpreters of the owner's labs. */
  labInterpretersOf?(owner: string): LabInterpreters;
  /** Whose files are kept under an id, if any. */
  ownerOf?(id: string): string | undefined;
  onRemoved?(id: string): void;
}

interface Held extends SharedSession {
  usedAt: number;
  /** When its use was last noted on disk. */
  notedAt: number;
  startedAt: number;
  isForOneCall: boolean;
  /** Calls that have opened it, and not released it yet. */
  calls: number;
}

const REMOVED = '.aside-';
const NOTE_USE_EVERY_MS = 30_000;
/** When to ask again for a session while all that may live are at work. */
const RETRY_SECONDS = 5;
/** Characters: what an execution prints goes whole into its answer. */
const LARGEST_ANSWER = 32 << 20;
const WORKSPACE = '/mnt/data';
const ID = /^[A-Za-z0-9_-]{21}$/;
const ID_LENGTH = 21;

export function createSharedSessions(options: SharedSessionsOptions): SharedSessions {
  const { resources, mountsWorkspace: place, sandbox } = options;
  const { runtime, environment, limits, programs } = resources;
  const zygotes = sandbox ? createZygotes(runtime, withoutSecrets(), sandbox) : resources.zygotes;
  const runners = createKeeperPool(runtime, zygotes, resources.programZygote, sandbox);
  const held = new Map<string, Held>();
  const aliases = new Map<string, string>();
  const removals = new Set<Promise<void>>();
  /** Sessions whose interpreters are on their way out: who opens one again waits for that. */
  const endings = new Map<string, Promise<void>>();
  const me: ProcessId = { pid: process.pid, started: findProcess(process.pid)?.started ?? '' };
  let cleaned = 0;
  const folderOf = (id: string) => join(options.folder, id);

  mkdirSync(options.folder, { recursive: true, mode: 0o700 });
  for (const name of readdirSync(options.folder)) {
    // Left by a server that was killed while it removed it.
    if (name.startsWith(REMOVED)) void removeTree(join(options.folder, name)).catch(() => {});
  }

  function hold(row: SessionRow, owner: string, isNew: boolean, isForOneCall: boolean): Held {
    const folder = folderOf(row.id);
    const workspace = join(folder, 'workspace');
    const home = sandbox ? SEEN.home : join(folder, 'home');
    for (const path of sandbox ? [workspace] : [workspace, home]) mkdirSync(path, { recursive: true, mode: 0o700 });
    sandbox?.give(workspace);
    const seen = place || sandbox ? WORKSPACE : workspace;
    const store = resources.store();
    store.putSession({ ...row, usedAt: Date.now(), server: me, closed: false });
    const session = createSession({
      id: row.id,
      project: workspace,
      folder,
      mountsWorkspace: place,
      seen,
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
      ...(isForOneCall && { keeperPool: runners }),
    });
    const now = Date.now();
    const one: Held = {
      session,
      owner,
      workspace,
      codeOwner: sandbox?.owner,
      seen,
      isNew,
      isForOneCall,
      usedAt: now,
      notedAt: now,
      startedAt: now,
      calls: 0,
    };
    held.set(row.id, one);
    return one;
  }

  function create(owner: string, id: string, isForOneCall = false): Held {
    const now = Date.now();
    const row = { id, project: '', createdAt: now, usedAt: now, agent: null, server: null, closed: false, owner };
    return hold({ ...row, project: join(folderOf(id), 'workspace') }, owner, true, isForOneCall);
  }

  /** The session of that id if it is this owner's, live or on disk. Opens it without asking for room. */
  function openExisting(owner: string, id: string): Held | undefined {
    const known = held.get(id);
    if (known) return known.owner === owner ? use(known) : undefined;
    const row = rowOf(owner, id);
    return row && hold(row, owner, false, false);
  }

  function rowOf(owner: string, id: string): SessionRow | undefined {
    const row = ID.test(id) ? resources.store().session(id) : undefined;
    return row?.owner === owner && !isHeldByOther(row) ? row : undefined;
  }

  function use(one: Held): Held {
    one.usedAt = Date.now();
    if (one.usedAt - one.notedAt > NOTE_USE_EVERY_MS) {
      one.notedAt = one.usedAt;
      const row = resources.store().session(one.session.id);
      if (row) resources.store().putSession({ ...row, usedAt: one.usedAt });
    }
    return { ...one, isNew: false };
  }

  const isHeldByOther = (row: SessionRow) =>
    row.server !== null && row.server.pid !== process.pid && isRunning(row.server);

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

  const isFree = ({ session, calls }: Held) => calls === 0 && session.pending().length === 0;

  /** One that can be ended: nothing runs in it, and it was used before all others. */
  function leastRecentlyUsed(): Held | undefined {
    return [...held.values()].filter(isFree).sort((a, b) => a.usedAt - b.usedAt)[0];
  }

  function enter(shared: SharedSession): SharedSession {
    const one = held.get(shared.session.id);
    if (one) one.calls += 1;
    return shared;
  }

  /** Evicts the least recently used session until there is room for this one; no other can take that room before the caller goes on. */
  async function makeRoomFor(id: string | undefined): Promise<void> {
    for (;;) {
      if (id !== undefined) await endings.get(id);
      if (id !== undefined && held.has(id)) return;
      if (held.size < options.most) return;
      const victim = leastRecentlyUsed();
      if (!victim)
        throw rateLimited(`All ${options.most} sessions of this server are at work. Try again soon.`, RETRY_SECONDS);
      await evict(victim);
    }
  }

  async function evict(one: Held): Promise<void> {
    cleaned += 1;
    await letGo(one);
  }

  /** Ends its interpreters; its files and its history stay, unless what comes after removes them. */
  async function letGo(one: Held, after: () => Promise<void> = async () => {}): Promise<void> {
    const { id } = one.session;
    held.delete(id);
    const ending = one.session
      .stop()
      .then(after)
      .finally(() => endings.delete(id));
    endings.set(id, ending);
    await ending;
  }

  async function forget(id: string): Promise<void> {
    resources.store().removeSession(id);
    for (const [key, session] of aliases) if (session === id) aliases.delete(key);
    await removeFolder(id);
    options.onRemoved?.(id);
  }

  /** Put aside at once: the next call may open the same session again before all of it is gone. */
  async function removeFolder(id: string): Promise<void> {
    const aside = join(options.folder, `${REMOVED}${nanoid()}`);
    try {
      renameSync(folderOf(id), aside);
    } catch {
      return; // There was none.
    }
    const removal = removeTree(aside).finally(() => removals.delete(removal));
    removals.add(removal);
    await removal;
  }

  /** A socket of a session that an earlier server left, and that nobody has asked for since. */
  function isForsaken(socket: string): boolean {
    const row = resources.store().session(socket.slice(0, ID_LENGTH));
    return row?.owner !== undefined && !held.has(row.id) && !isHeldByOther(row);
  }

  async function warmUp(): Promise<void> {
    await resources.warmUp(zygotes);
    await runners.prepare();
    environment.onProgress((next) => {
      if (next.phase === 'ready') runners.prepare().catch(() => {}); // Whoever borrows next is told.
    });
  }

  return {
    async open({ owner, id, alias, mustExist = false, isForOneCall = false }) {
      const asked = alias === undefined ? id : idOf(owner, alias);
      // Somebody's files may be kept under the id already; another's id is nobody's here.
      const wanted = asked !== undefined && ID.test(asked) && mayUse(owner, asked) ? asked : undefined;
      if (mustExist && (wanted === undefined || !(held.has(wanted) || rowOf(owner, wanted)))) throw unknown(asked);
      await makeRoomFor(wanted);
      const known = wanted === undefined ? undefined : openExisting(owner, wanted);
      return enter(known ?? create(owner, wanted ?? nanoid(), isForOneCall));
    },
    async find(owner, id) {
      if (!held.has(id) && !rowOf(owner, id)) return undefined;
      await makeRoomFor(id);
      return openExisting(owner, id);
    },
    idOf,
    mayUse,
    async release(shared) {
      const one = held.get(shared.session.id);
      if (one?.session !== shared.session) return;
      one.calls -= 1;
      if (!one.isForOneCall || !isFree(one)) return;
      await letGo(one, () => removeFolder(one.session.id));
    },
    async remove(owner, id) {
      const one = openExisting(owner, id);
      if (!one) return false;
      for (const { record } of one.session.pending()) one.session.interrupt(record.number);
      await letGo(one, () => forget(id));
      return true;
    },
    liveOf: (owner) => [...held.values()].filter((one) => one.owner === owner).map(({ session }) => session),
    get size() {
      return held.size;
    },
    get cleaned() {
      return cleaned;
    },
    async endExpired() {
      const now = Date.now();
      for (const one of [...held.values()]) {
        const isIdle = now - one.usedAt > options.idle * 1000 || now - one.startedAt > options.age * 1000;
        if (isIdle && isFree(one)) await evict(one);
      }
      for (const row of resources.store().ownedUnusedSince(now - options.keep * 1000)) {
        if (!held.has(row.id) && !isHeldByOther(row)) await forget(row.id);
      }
    },
    warmUp,
    async close(isLeaving) {
      if (!isLeaving) await endKeepers(join(sandbox?.runtime ?? runtime, 'k'), isForsaken);
      for (const { session, isForOneCall } of held.values()) {
        if (isForOneCall || !isLeaving) await session.stop();
        else await session.leave(resources.linger, null);
        const row = resources.store().session(session.id);
        if (row) resources.store().putSession({ ...row, closed: true });
      }
      await runners.close();
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
