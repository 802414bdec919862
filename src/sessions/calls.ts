/**
 * One call of the service, from its request to its answer: finds the session, brings its files into the workspace, runs the code,
 * and keeps what the code has written. Calls to one session take turns, so each knows what it changed.
 */

import { lstatSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../errors.ts';
import { type Changes, compare, type Snapshot, takeSnapshot } from '../files/changes.ts';
import { safeName, shownName } from '../files/names.ts';
import type { FileStore, StoredFile } from '../files/store.ts';
import { checkRuntime } from '../interpreters/process/languages.ts';
import { type CollectedOutput, collectOutput } from './collected-output.ts';
import type { Execution } from './execution.ts';
import { BUILTIN } from './interpreter-pool.ts';
import type { ExecutionRecord } from './record.ts';
import type { Session } from './session.ts';
import type { SharedSession, SharedSessions } from './shared-sessions.ts';

export interface FileReference {
  id: string;
  /** Where it is kept; the session of the call if not given. */
  session?: string | undefined;
  /** Where it belongs in the workspace; its own name if not given. */
  name?: string | undefined;
}

export interface CallRequest {
  owner: string;
  /** The name of an interpreter: `builtin`, or that of a language. */
  interpreter: string;
  code: string;
  args?: string[] | undefined;
  stdin?: string | undefined;
  timeout?: number | undefined;
  sessionId?: string | undefined;
  entityId?: string | undefined;
  /** Asks for a session in which bash, too, keeps its state. */
  hint?: string | undefined;
  isStateful?: boolean | undefined;
  files: FileReference[];
  signal?: AbortSignal | undefined;
  /** What is to be run in the code's place, and before it, once it is known where. */
  wrap?(code: string, place: SharedSession): { before?: string; code: string };
}

export interface OutputFile {
  file: StoredFile;
  name: string;
  /** It came with the call, and is as it was. */
  isInherited: boolean;
}

export interface CallResult {
  record: ExecutionRecord;
  stdout: string;
  stderr: string;
  files: OutputFile[];
  /** Names of files that came with the call, and that the code has removed. */
  deleted: string[];
  /** What went wrong beside the code: a file that is no longer there, an output that could not be kept. */
  problems: string[];
}

export interface RunningCall {
  shared: SharedSession;
  execution: Execution;
  finished: Promise<CallResult>;
}

export interface Calls {
  /** Resolves when the code is on its way; `finished`, when its files are kept too. */
  start(request: CallRequest): Promise<RunningCall>;
}

/** What is known of a session's workspace between two calls. */
interface Known {
  turn: Promise<unknown>;
  snapshot: Snapshot | undefined;
  /** By name: which stored file it is a copy of, as long as the mark is the same. */
  copies: Map<string, { id: string; mark: string }>;
  /** The files of the session that earlier calls have seen to; undefined before the first. */
  seen: Set<string> | undefined;
}

const MOST_OUTPUTS = 200;
const VIRTUAL = '/mnt/data';

export function createCalls(options: {
  shared: SharedSessions;
  files: FileStore;
  largestOutput: number;
  quota: number;
}): Calls {
  const { shared: sessions, files } = options;
  const known = new WeakMap<Session, Known>();

  const knownOf = (session: Session): Known => {
    const found = known.get(session);
    if (found) return found;
    const fresh: Known = { turn: Promise.resolve(), snapshot: undefined, copies: new Map(), seen: undefined };
    known.set(session, fresh);
    return fresh;
  };

  async function start(request: CallRequest): Promise<RunningCall> {
    const { owner, sessionId, entityId, hint } = request;
    const alias = hint ? `hint:${hint}` : entityId ? `entity:${entityId}` : undefined;
    const isPassing = request.interpreter !== BUILTIN && !alias && !sessionId;
    await checkRuntime(request.interpreter);
    const wanted = request.files.map(({ name }) => (name === undefined ? undefined : safeName(name)));
    const shared = await sessions.open({ owner, id: sessionId, alias, isPassing });
    const state = knownOf(shared.session);
    const turn = state.turn;
    let pass: () => void = () => {};
    state.turn = new Promise<void>((resolve) => {
      pass = resolve;
    });
    await turn;
    const end = () => {
      pass();
      sessions.release(shared).catch(() => {});
    };
    try {
      const inputs = await bringIn(request, wanted, shared, state);
      const before = state.snapshot ?? (await takeSnapshot(shared.workspace));
      const wrapped = request.wrap?.(request.code, shared);
      if (wrapped?.before) shared.session.execute({ code: wrapped.before, interpreter: request.interpreter });
      const code = wrapped?.code ?? request.code;
      const execution = shared.session.execute({
        code: localised(code, shared),
        interpreter: request.interpreter,
        args: request.args?.map((one) => localised(one, shared)),
        stdin: request.stdin,
        timeout: request.timeout,
        isStateful: request.isStateful ?? hint !== undefined,
        signal: request.signal,
      });
      const output = collectOutput(execution);
      const finished = execution.done
        .then(() => conclude(execution, output, { shared, owner, inputs, before, state }))
        .finally(end);
      finished.catch(() => {});
      return { shared, execution, finished };
    } catch (error) {
      end();
      throw error;
    }
  }

  /** Puts the files that the call names, and those uploaded to its session, where the code expects them. */
  async function bringIn(request: CallRequest, names: (string | undefined)[], shared: SharedSession, state: Known) {
    const problems: string[] = [];
    const inputs = new Map<string, StoredFile>();
    const { id } = shared.session;
    const stored = files.list(id);
    for (const file of stored) {
      const isNews = state.seen === undefined || (file.origin === 'upload' && !state.seen.has(file.id));
      if (file.owner === request.owner && isNews) inputs.set(file.name, file);
    }
    state.seen = new Set(stored.map((file) => file.id));
    const own = new Set(inputs.keys());
    request.files.forEach((reference, index) => {
      const file = files.get(reference.session ?? id, reference.id);
      const name = names[index] ?? file?.name;
      if (!file || file.owner !== request.owner || name === undefined) {
        problems.push(`The file ${names[index] ?? reference.id} is no longer kept here; upload it again.`);
        return;
      }
      inputs.set(name, file);
      own.delete(name);
    });
    const present = state.snapshot ?? (shared.isNew ? new Map<string, string>() : await takeSnapshot(shared.workspace));
    let isChanged = false;
    for (const [name, file] of inputs) {
      const copy = state.copies.get(name);
      const mark = present.get(name);
      if (
        mark !== undefined &&
        (own.has(name)
          ? !isFresher(file, copy, join(shared.workspace, name))
          : copy?.id === file.id && copy.mark === mark)
      )
        continue;
      try {
        await files.place(file, shared.workspace, name, shared.codeOwner);
        isChanged = true;
        state.copies.delete(name);
      } catch (error) {
        state.seen.delete(file.id); // To be tried again with the next call.
        problems.push(`The file ${shownName(name)} could not be put into the workspace: ${messageOf(error)}`);
      }
    }
    state.snapshot = isChanged ? await takeSnapshot(shared.workspace) : present;
    for (const [name, file] of inputs) {
      const mark = state.snapshot.get(name);
      if (mark !== undefined && !state.copies.has(name)) state.copies.set(name, { id: file.id, mark });
    }
    for (const name of own) inputs.delete(name);
    return { files: inputs, problems };
  }

  /** Newer than what stands in the workspace: another upload than the one it was copied from, or, if that is not known, by its time. */
  const isFresher = (file: StoredFile, copy: { id: string } | undefined, path: string) =>
    file.origin === 'upload' && (copy ? copy.id !== file.id : file.createdAt > lstatSync(path).mtimeMs);

  async function conclude(
    execution: Execution,
    output: CollectedOutput,
    call: {
      shared: SharedSession;
      owner: string;
      inputs: { files: Map<string, StoredFile>; problems: string[] };
      before: Snapshot;
      state: Known;
    },
  ): Promise<CallResult> {
    const { shared, owner, inputs, before, state } = call;
    const { record } = execution;
    await savePictures(output, record.number, shared);
    const after = await takeSnapshot(shared.workspace);
    const changes = compare(before, after);
    const kept = await keepOutputs(changes, shared, owner, inputs);
    for (const { file, name } of kept) {
      const mark = after.get(name);
      if (mark !== undefined) state.copies.set(name, { id: file.id, mark });
    }
    state.snapshot = after;
    const unchanged = [...inputs.files].filter(([name]) => after.has(name) && !changes.written.includes(name));
    return {
      record,
      stdout: output.stdout,
      stderr: output.stderr,
      files: [
        ...kept.map((one) => ({ ...one, isInherited: false })),
        ...unchanged.map(([name, file]) => ({ file, name, isInherited: true })),
      ],
      deleted: changes.gone.filter((name) => inputs.files.has(name)),
      problems: inputs.problems,
    };
  }

  async function keepOutputs(
    changes: Changes,
    shared: SharedSession,
    owner: string,
    inputs: { files: Map<string, StoredFile>; problems: string[] },
  ): Promise<{ file: StoredFile; name: string }[]> {
    const kept: { file: StoredFile; name: string }[] = [];
    const written = changes.written.filter((name) => !inputs.files.get(name)?.readOnly);
    if (written.length > MOST_OUTPUTS)
      inputs.problems.push(
        `Of ${written.length} files that the code wrote, the first ${MOST_OUTPUTS} are kept for download.`,
      );
    for (const name of written.slice(0, MOST_OUTPUTS)) {
      try {
        kept.push({ file: await keep(name, shared, owner), name });
      } catch (error) {
        inputs.problems.push(`The file ${shownName(name)} could not be kept: ${messageOf(error)}`);
      }
    }
    return kept;
  }

  async function keep(name: string, { session, workspace }: SharedSession, owner: string): Promise<StoredFile> {
    const { largestOutput, quota } = options;
    const room = quota > 0 ? quota - files.usage(session.id) : Number.POSITIVE_INFINITY;
    const path = join(workspace, name);
    if (lstatSync(path).size > room) throw new Error(`the files of a session may have ${quota} bytes in all.`);
    const limit = Math.min(largestOutput > 0 ? largestOutput : Number.POSITIVE_INFINITY, room);
    return files.keep({ session: session.id, owner, name, path, ...(Number.isFinite(limit) && { limit }) });
  }

  return { start };
}

/** Code that speaks of /mnt/data, on a machine where the workspace cannot be mounted there. */
function localised(code: string, { seen }: SharedSession): string {
  return seen === VIRTUAL ? code : code.replaceAll(VIRTUAL, seen);
}

/** Figures that were shown and not saved become files: there is no other way to a reader who only gets files. */
async function savePictures(
  { pictures }: CollectedOutput,
  execution: number,
  { workspace, codeOwner }: SharedSession,
): Promise<void> {
  await Promise.all(
    pictures.map(async ({ mimeType, base64 }, index) => {
      const extension = mimeType === 'image/jpeg' ? 'jpg' : mimeType === 'image/svg+xml' ? 'svg' : 'png';
      const data = mimeType === 'image/svg+xml' ? base64 : Buffer.from(base64, 'base64');
      const path = join(workspace, `figure-${execution}-${index + 1}.${extension}`);
      try {
        const file = await open(path, 'wx');
        try {
          await file.writeFile(data);
          if (codeOwner !== undefined) await file.chown(codeOwner, codeOwner);
        } finally {
          await file.close();
        }
      } catch {} // A file of that name is there already.
    }),
  );
}
