/**
 * Runs one call of the service, whichever surface it came by: admits it, opens its session, and queues its code there with its files.
 * REST calls `start`; tools reach it through the `Sessions` of their caller.
 */

import { safeName } from '../files/names.ts';
import type { Spills } from '../files/spill.ts';
import { checkRuntime } from '../interpreters/process/languages.ts';
import { SEEN } from '../sandbox/layout.ts';
import type { Admission } from './admission.ts';
import { type CollectedOutput, collectOutput } from './collected-output.ts';
import type { Execution } from './execution.ts';
import type { ExecutionOrigin, ExecutionRecord } from './execution-record.ts';
import type { FileReference } from './file-references.ts';
import { BUILTIN } from './interpreter-catalog.ts';
import type { Text } from './long-text.ts';
import { MOST_LISTED, NEW, type Sessions } from './sessions.ts';
import { DEFAULT_ALIAS, type SessionChoice, type SharedSession, type SharedSessions } from './shared-sessions.ts';
import type { FilesOfCall, WorkspaceFiles } from './workspace-files.ts';

export interface ServiceCallRequest {
  owner: string;
  tenant?: string | undefined;
  /** The name of an interpreter: `builtin`, or that of a language. */
  interpreter: string;
  /** By which way it came in; kept in its record. */
  origin?: ExecutionOrigin | undefined;
  code: string;
  args?: string[] | undefined;
  stdin?: string | undefined;
  timeout?: number | undefined;
  session: SessionChoice;
  /** Bash, too, keeps its state. */
  isStateful?: boolean | undefined;
  /** The caller is told its number before it runs, so it is on disk before that. */
  isAnnounced?: boolean;
  files: FileReference[];
  signal?: AbortSignal | undefined;
  /** Says what to run instead of the code, and before it, once the session is known. */
  wrap?(code: string, sharedSession: SharedSession): { before?: string; code: string };
}

export interface ServiceCallResult extends FilesOfCall {
  record: ExecutionRecord;
  stdout: Text;
  stderr: Text;
}

export interface RunningServiceCall {
  sharedSession: SharedSession;
  execution: Execution;
  finished: Promise<ServiceCallResult>;
  /** What it printed, as far as that is on the disk. Whoever has read the result releases it. */
  printed: Pick<CollectedOutput, 'size' | 'release'>;
}

export interface ServiceCalls {
  /** Resolves when the code is in its session's queue; `finished`, when it has run and its files are kept. */
  start(request: ServiceCallRequest): Promise<RunningServiceCall>;
  /** The sessions of one caller, for tools. */
  sessionsOf(owner: string): Sessions;
  /** Whether the default session of a caller is open. */
  hasDefault(owner: string): boolean;
}

/** The session of a tool's call that names none. */
const DEFAULT = { alias: DEFAULT_ALIAS };
const NO_FILES: FilesOfCall = { files: [], deleted: [], problems: [] };

export function createServiceCalls(options: {
  sharedSessions: SharedSessions;
  workspaceFiles: WorkspaceFiles;
  spills: Spills;
  admission: Admission;
  /** What tools tell of their sessions. */
  about: Pick<Sessions, 'environment' | 'sandbox' | 'startedAt'>;
}): ServiceCalls {
  const { sharedSessions, workspaceFiles } = options;

  const start = (request: ServiceCallRequest) => options.admission.admit(request.owner, () => open(request));

  async function open(request: ServiceCallRequest): Promise<RunningServiceCall> {
    await checkRuntime(request.interpreter);
    const files = request.files.map((file) =>
      file.name === undefined ? file : { ...file, name: safeName(file.name) },
    );
    const sharedSession = await sharedSessions.open({ owner: request.owner, ...request.session });
    try {
      const call = enqueue({ ...request, files }, sharedSession);
      call.finished.finally(() => sharedSessions.release(sharedSession)).catch(() => {});
      return call;
    } catch (error) {
      await sharedSessions.release(sharedSession);
      throw error;
    }
  }

  function enqueue(request: ServiceCallRequest, sharedSession: SharedSession): RunningServiceCall {
    const { owner, tenant, files, interpreter, origin, stdin, timeout, isStateful, isAnnounced, signal } = request;
    const wrapped = request.wrap?.(request.code, sharedSession);
    if (wrapped?.before) sharedSession.session.execute({ code: wrapped.before, interpreter, origin });
    let filesOfCall: Promise<FilesOfCall> | undefined;
    const execution = sharedSession.session.execute({
      code: localised(wrapped?.code ?? request.code, sharedSession),
      interpreter,
      origin,
      args: request.args?.map((one) => localised(one, sharedSession)),
      stdin,
      timeout,
      isStateful,
      isAnnounced: isAnnounced ?? false,
      signal,
      around: async (run) => {
        filesOfCall = workspaceFiles.runWith({ sharedSession, owner, tenant, files }, async () => {
          await run();
          return { record: execution.record, images: output.images };
        });
        await filesOfCall;
      },
    });
    const output = collectOutput(execution, options.spills);

    const finished = execution.done.then(async (record) => {
      // A call that was cancelled before its turn has no files to bring or to keep.
      const kept = (await filesOfCall) ?? NO_FILES;
      output.stop();
      return { record, stdout: output.text('stdout'), stderr: output.text('stderr'), ...kept };
    });
    finished.catch(() => {});
    return { sharedSession, execution, finished, printed: output };
  }

  function sessionsOf(owner: string): Sessions {
    return {
      project: SEEN.workspace,
      ...options.about,
      agent: null,
      socketPath: Promise.resolve(null),
      async start({ session: id, interpreter = BUILTIN, ...request }) {
        const call = await start({ ...request, owner, interpreter, session: choiceOf(id), files: [] });
        // Tools read the transcript.
        call.finished.finally(() => call.printed.release()).catch(() => {});
        return { session: call.sharedSession.session, execution: call.execution, finished: call.finished };
      },
      async use(id, work) {
        const sharedSession = await sharedSessions.open({ owner, ...choiceOf(id) });
        try {
          return await work(sharedSession.session);
        } finally {
          await sharedSessions.release(sharedSession);
        }
      },
      all: () => sharedSessions.liveOf(owner),
      list: () => sharedSessions.list(owner, MOST_LISTED),
      look: (id) => sharedSessions.look(owner, id ?? sharedSessions.idOf(owner, DEFAULT.alias)),
      remove: (id) => sharedSessions.remove(owner, id),
      watch: (listener) => sharedSessions.watch(owner, listener),
      noteFiles: (id) => sharedSessions.noteFiles(owner, id),
      warmUp: sharedSessions.warmUp,
      close: async () => {},
    };
  }

  function hasDefault(owner: string): boolean {
    const id = sharedSessions.idOf(owner, DEFAULT.alias);
    return sharedSessions.liveOf(owner).some((session) => session.id === id);
  }

  return { start, sessionsOf, hasDefault };
}

function choiceOf(id: string | undefined): SessionChoice {
  if (id === undefined) return DEFAULT;
  return id === NEW ? {} : { id, mustExist: true };
}

/** Code that names /mnt/data, for a machine on which the workspace cannot be mounted there. */
function localised(code: string, { seen }: SharedSession): string {
  return seen === SEEN.workspace ? code : code.replaceAll(SEEN.workspace, seen);
}
