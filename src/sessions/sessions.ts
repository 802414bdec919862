/** All the sessions that this server holds, and which of them is the default one for its agent. */

import { join } from 'node:path';
import { nanoid } from 'nanoid';
import type { Config } from '../config.ts';
import { CuvetteError } from '../errors.ts';
import type { Environment } from '../interpreters/python/environment.ts';
import { createZygotes } from '../interpreters/python/zygotes.ts';
import type { Paths } from '../paths.ts';
import { findProcess, isRunning, type ProcessId } from '../process-tree.ts';
import { SEEN } from '../sandbox/layout.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { type Admission, createAdmission } from './admission.ts';
import { confinedVariables, harmlessVariables, ownVariables, withoutSecrets } from './environment-variables.ts';
import type { Execution } from './execution.ts';
import type { ExecutionRecord } from './execution-record.ts';
import { ancestorsUpToAgent } from './find-agent.ts';
import type { LabInterpreters } from './interpreter-pool.ts';
import { createServerResources, type ServerResources } from './server-resources.ts';
import { createSession, type ExecuteRequest, type Session } from './session.ts';
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
  const variables = sandbox ? { ...harmlessVariables(SEEN.home), ...confinedVariables(sandbox) } : ownVariables();
  const open = new Map<string, Session>();
  const agent = ancestorsUpToAgent(process.pid).at(-1) ?? null;
  const me: ProcessId = { pid: process.pid, started: findProcess(process.pid)?.started ?? '' };
  let defaultId: string | undefined;

  function hold(row: SessionRow): Session {
    store().putSession({
      ...row,
      usedAt: Date.now(),
      server: me,
      agent: agent && { pid: agent.pid, started: agent.started },
      closed: false,
    });
    const session = createSession({
      id: row.id,
      project: row.project,
      folder: join(paths.data, 'sessions', row.id),
      mountsWorkspace: false,
      seen: row.project,
      env: variables,
      sandbox,
      labInterpreters: options.labInterpreters,
      runtime,
      linger: resources.linger,
      limits: resources.limits,
      programs: resources.programs,
      store: store(),
      environment,
      zygotes,
    });
    open.set(row.id, session);
    return session;
  }

  function create(): Session {
    const now = Date.now();
    return hold({ id: nanoid(), project, createdAt: now, usedAt: now, agent: null, server: null, closed: false });
  }

  function byId(id: string): Session {
    const known = open.get(id);
    if (known) return known;
    const row = store().session(id);
    if (!row) {
      throw new CuvetteError(
        'unknown_session',
        `There is no session ${id}. Leave the session out for the default one, or see get_session_info for its id.`,
      );
    }
    if (isHeld(row)) {
      throw new CuvetteError(
        'unknown_session',
        `Session ${id} belongs to another server that is running (pid ${row.server?.pid}). Leave the session out for this agent's own.`,
      );
    }
    return hold(row);
  }

  const isHeld = (row: SessionRow) => row.server !== null && row.server.pid !== process.pid && isRunning(row.server);

  /** The session that this agent had, or one in this project whose server died under it; else a new one. */
  function findDefault(): Session {
    const free = store()
      .sessionsOf(project)
      .filter((row) => !isHeld(row));
    const mine = free.find((row) => agent && row.agent?.pid === agent.pid && row.agent.started === agent.started);
    const orphan = free.find((row) => !row.closed && row.server && !(row.agent && isRunning(row.agent)));
    const row = mine ?? orphan;
    return row ? hold(row) : create();
  }

  function get(id: string | undefined): Session {
    if (id === NEW) return create();
    if (id !== undefined) return byId(id);
    defaultId ??= findDefault().id;
    return byId(defaultId);
  }

  return {
    project,
    environment,
    sandbox: options.confinement?.description ?? UNCONFINED,
    startedAt: Date.now(),
    agent,
    socketPath: Promise.resolve(null),
    start: ({ session: id, ...request }) =>
      admission.admit(OWNER, async () => {
        const session = get(id);
        const execution = session.execute(request);
        return { session, execution, finished: execution.done.then((record) => ({ record })) };
      }),
    use: async (id, work) => work(get(id)),
    all: () => [...open.values()],
    warmUp: () => resources.warmUp(zygotes),
    async close() {
      for (const session of open.values()) {
        await session.leave(config.linger, agent && { pid: agent.pid, started: agent.started });
        const row = store().session(session.id);
        if (row) store().putSession({ ...row, closed: true });
      }
      if (sandbox) await zygotes.dismiss(false);
      if (!options.resources) resources.close();
    },
  };
}
