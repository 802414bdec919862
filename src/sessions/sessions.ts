/**
 * Defines `Sessions`, through which every tool and the bridge reach sessions, and implements it for the sessions of a project: those of one
 * agent or shell, which run in the project's folder. `service-calls.ts` implements it for callers of the service.
 */

import { join } from 'node:path';
import { nanoid } from 'nanoid';
import type { Config } from '../config.ts';
import { CuvetteError } from '../errors.ts';
import { removeTree } from '../files/remove-tree.ts';
import type { Environment } from '../interpreters/python/environment.ts';
import { createZygotes } from '../interpreters/python/zygotes.ts';
import type { Paths } from '../paths.ts';
import { isOtherRunning, isRunning, type ProcessId, thisProcess } from '../process-tree.ts';
import { SEEN } from '../sandbox/layout.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { type Admission, createAdmission } from './admission.ts';
import { confinedVariables, harmlessVariables, ownVariables, withoutSecrets } from './environment-variables.ts';
import type { Execution } from './execution.ts';
import type { ExecutionRecord } from './execution-record.ts';
import { ancestorsUpToAgent } from './find-agent.ts';
import type { LabInterpreters } from './interpreter-catalog.ts';
import { createLiveSessions, type LiveSession } from './live-sessions.ts';
import { type SeenSession, seeSession } from './seen-session.ts';
import { createServerResources, type ServerResources } from './server-resources.ts';
import { createSession, type ExecuteRequest, type Session } from './session.ts';
import { type ChangeListener, createSessionChanges } from './session-changes.ts';
import type { SessionRow } from './session-store.ts';

export interface Sessions {
  readonly project: string;
  readonly environment: Environment;
  /** A sentence on what keeps code from harm. */
  readonly sandbox: string;
  readonly startedAt: number;
  readonly agent: ProcessId | null;
  /** The socket on which the shell client reaches this server. */
  socketPath: Promise<string | null>;
  /** Runs code: the one way in for every surface. Resolves when the code is in its session's queue. */
  start(request: StartRequest): Promise<StartedExecution>;
  /** Holds a session open for as long as the work takes. Without an id, it is this caller's default session. */
  use<Result>(id: string | undefined, work: (session: Session) => Result | Promise<Result>): Promise<Result>;
  all(): Session[];
  /** The caller's sessions, open or stored, the last used first. */
  list(): SeenSession[];
  /** What is known of a session, without opening it, if the caller has one of that id. Without an id, it is the default session. */
  look(id: string | undefined): SeenSession | undefined;
  /** Ends a session and forgets its history; false if the caller has none of that id. */
  remove(id: string): Promise<boolean>;
  /** Calls back with what happens in the caller's sessions, until the returned function is called. */
  watch(listener: ChangeListener): () => void;
  /** Tells watchers that somebody has changed files of a session's workspace. */
  noteFiles(id: string): void;
  /** Makes the builtin interpreter ready ahead of the first call. */
  warmUp(): Promise<void>;
  /** Ends in good order: the interpreters wait for the agent's next server, as long as the agent lives. */
  close(): Promise<void>;
}

export interface StartRequest extends Omit<ExecuteRequest, 'around'> {
  /** A session's id, or `new`; without it, the caller's default session. */
  session?: string | undefined;
}

export interface StartedExecution {
  session: Session;
  execution: Execution;
  /** Resolves when nothing of it is left to be done. */
  finished: Promise<{ record: ExecutionRecord }>;
}

const UNCONFINED = 'none: code runs as you, with your files and your network';
/** In place of an id: a session that is not there yet. */
export const NEW = 'new';
/** How many sessions are listed. */
export const MOST_LISTED = 500;
/** The caller whose limits count here: all who reach this server are one person. */
const OWNER = 'owner';

export function createSessions(options: {
  config: Config;
  paths: Paths;
  project: string;
  resources?: ServerResources;
  /** Shared with the other surfaces of this server; made from the settings if there are none. */
  admission?: Admission;
  /** How code is confined to the project, if it is. */
  confinement?: { sandbox: Sandbox | undefined; description: string };
  /** Interpreters of labs. */
  labInterpreters?: LabInterpreters;
}): Sessions {
  const { config, paths, project } = options;
  const resources = options.resources ?? createServerResources({ config, paths });
  const { environment, runtime, store } = resources;
  const admission = options.admission ?? createAdmission(config);
  const sandbox = options.confinement?.sandbox;
  const zygotes = sandbox ? createZygotes(runtime, withoutSecrets(), sandbox) : resources.zygotes;
  const env = sandbox ? { ...harmlessVariables(SEEN.home), ...confinedVariables(sandbox) } : ownVariables();
  const changes = createSessionChanges();
  const live = createLiveSessions<LiveSession>(config.maxSessions, ({ session: { id } }, reason) =>
    changes.tell(OWNER, { session: id, ...(reason ? { type: 'closed', reason } : { type: 'opened' }) }),
  );
  const folderOf = (id: string) => join(paths.data, 'sessions', id);
  const agent = ancestorsUpToAgent(process.pid).at(-1) ?? null;
  const me = thisProcess();
  let defaultRow: SessionRow | undefined;

  function openRow(row: SessionRow): LiveSession {
    const now = Date.now();
    store().putSession({
      ...row,
      usedAt: now,
      server: me,
      agent: agent && { pid: agent.pid, started: agent.started },
      closed: false,
    });
    const session = createSession({
      id: row.id,
      project: row.project,
      folder: folderOf(row.id),
      mountsWorkspace: false,
      seen: row.project,
      env,
      sandbox,
      labInterpreters: options.labInterpreters,
      runtime,
      linger: resources.linger,
      limits: resources.limits,
      programs: resources.programs,
      store: store(),
      environment,
      zygotes,
      onChange: (change) => changes.tell(OWNER, { ...change, session: row.id }),
    });
    return { session, startedAt: now, usedAt: now, users: 0 };
  }

  function newRow(): SessionRow {
    const now = Date.now();
    return { id: nanoid(), project, createdAt: now, usedAt: now, agent: null, server: null, closed: false };
  }

  function rowOf(id: string): SessionRow {
    const row = store().session(id);
    if (!row) {
      throw new CuvetteError(
        'unknown_session',
        `There is no session ${id}. Leave the session out for the default one, or see get_session_info for its id.`,
      );
    }
    if (isOtherRunning(row.server)) {
      throw new CuvetteError(
        'unknown_session',
        `Session ${id} belongs to another server that is running (pid ${row.server?.pid}). Leave the session out for this agent's own.`,
      );
    }
    return row;
  }

  /** The session that this agent had, or one in this project whose server died under it; else a new one. */
  function findDefault(): SessionRow {
    const rows = store().sessionsOf(project);
    const free = rows.filter(({ server }) => !isOtherRunning(server));
    const mine = free.find((row) => agent && row.agent?.pid === agent.pid && row.agent.started === agent.started);
    const orphan = free.find((row) => !row.closed && row.server && !(row.agent && isRunning(row.agent)));
    return mine ?? orphan ?? newRow();
  }

  function acquire(id: string | undefined): Promise<LiveSession> {
    if (id === NEW) return live.acquire(undefined, () => openRow(newRow()));
    if (id !== undefined && id !== defaultRow?.id) return live.acquire(id, () => openRow(rowOf(id)));
    const row = ownDefault();
    return live.acquire(row.id, () => openRow(store().session(row.id) ? rowOf(row.id) : row));
  }

  function ownDefault(): SessionRow {
    defaultRow ??= findDefault();
    return defaultRow;
  }

  function see(row: SessionRow): SeenSession {
    const open = live.get(row.id);
    return seeSession({
      row: { ...row, usedAt: open?.usedAt ?? row.usedAt },
      store: store(),
      live: open?.session,
      folder: folderOf(row.id),
      outputLimit: resources.limits.outputLimit,
      names: [],
      isDefault: row.id === ownDefault().id,
      workspace: { folder: row.project, seen: row.project, codeOwner: sandbox?.owner },
    });
  }

  /** The sessions of this project that no other server has open; the default one, too, if nothing has run in it yet. */
  function list(): SeenSession[] {
    const rows = store()
      .sessionsOf(project)
      .filter(({ server }) => !isOtherRunning(server));
    const first = ownDefault();
    return [...(rows.some(({ id }) => id === first.id) ? [] : [first]), ...rows].map(see);
  }

  function look(id: string | undefined): SeenSession | undefined {
    const row = ownDefault();
    const known = store().session(id ?? row.id) ?? (id === undefined || id === row.id ? row : undefined);
    return known && known.owner === undefined && !isOtherRunning(known.server) ? see(known) : undefined;
  }

  async function remove(id: string): Promise<boolean> {
    const row = live.get(id) ? undefined : store().session(id);
    const open = live.get(id) ?? (row && !isOtherRunning(row.server) ? openRow(row) : undefined);
    if (!open) return false;
    for (const { record } of open.session.pending()) open.session.interrupt(record.number);
    await live.end(open, 'removed', async () => {
      store().removeSession(id);
      if (defaultRow?.id === id) defaultRow = undefined;
      await removeTree(folderOf(id));
    });
    return true;
  }

  async function use<Result>(id: string | undefined, work: (session: Session) => Result | Promise<Result>) {
    const acquired = await acquire(id);
    try {
      return await work(acquired.session);
    } finally {
      live.release(acquired);
    }
  }

  return {
    project,
    environment,
    sandbox: options.confinement?.description ?? UNCONFINED,
    startedAt: Date.now(),
    agent,
    socketPath: Promise.resolve(null),
    start: ({ session: id, ...request }) =>
      admission.admit(OWNER, () =>
        use(id, (session) => {
          const execution = session.execute(request);
          return { session, execution, finished: execution.done.then((record) => ({ record })) };
        }),
      ),
    use,
    all: () => live.all().map(({ session }) => session),
    list,
    look,
    remove,
    watch: (listener) => changes.watch(OWNER, listener),
    noteFiles: (id) => changes.tell(OWNER, { session: id, type: 'files' }),
    warmUp: () => resources.warmUp(zygotes),
    async close() {
      for (const { session } of live.all()) {
        await session.leave(config.linger, agent && { pid: agent.pid, started: agent.started });
        const row = store().session(session.id);
        if (row) store().putSession({ ...row, closed: true });
      }
      if (sandbox) await zygotes.dismiss(false);
      if (!options.resources) resources.close();
    },
  };
}
