/**
 * Runs one call of the service, whichever surface it came by: admits it, opens the session, brings its files into the workspace, runs the
 * code, and keeps what the code has written. All of that happens in the session's own queue, so each call knows what it changed.
 */

import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../errors.ts';
import { compareSnapshots, type Snapshot, takeSnapshot, type WorkspaceChanges } from '../files/changes.ts';
import type { FileStore, StoredFile } from '../files/file-store.ts';
import { safeName, shownName } from '../files/names.ts';
import type { Spills } from '../files/spill.ts';
import { checkRuntime } from '../interpreters/process/languages.ts';
import type { Admission } from './admission.ts';
import { type CollectedOutput, collectOutput } from './collected-output.ts';
import type { Execution } from './execution.ts';
import type { ExecutionRecord } from './execution-record.ts';
import { createFileReferences, type FileReference, type ReferredFile } from './file-references.ts';
import type { Text } from './long-text.ts';
import type { Session } from './session.ts';
import type { SessionChoice, SharedSession, SharedSessions } from './shared-sessions.ts';
import { saveUnsavedImages } from './unsaved-images.ts';

export interface ServiceCallRequest {
  owner: string;
  tenant?: string | undefined;
  /** The name of an interpreter: `builtin`, or that of a language. */
  interpreter: string;
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
  /** What is to be run in the code's place, and before it, once the session is known. */
  wrap?(code: string, shared: SharedSession): { before?: string; code: string };
}

export interface OutputFile {
  file: StoredFile;
  name: string;
  /** Set if it came with the call, and is as it was. */
  inherited?: FileReference;
}

export interface ServiceCallResult {
  record: ExecutionRecord;
  stdout: Text;
  stderr: Text;
  files: OutputFile[];
  /** Names of files that came with the call, and that the code has removed; none unless all that it wrote is kept. */
  deleted: string[];
  /** What went wrong beside the code: a file that is no longer there, an output that could not be kept. */
  problems: string[];
}

export interface RunningServiceCall {
  shared: SharedSession;
  execution: Execution;
  finished: Promise<ServiceCallResult>;
  /** What it printed, as far as that is on the disk. Whoever has read the result releases it. */
  printed: Pick<CollectedOutput, 'size' | 'release'>;
}

export interface ServiceCalls {
  /** Resolves when the code is in its session's queue; `finished`, when it has run and its files are kept. */
  start(request: ServiceCallRequest): Promise<RunningServiceCall>;
}

/** What is known of a session's workspace between two calls. */
interface Known {
  snapshot: Snapshot | undefined;
  /** By name: which stored file it is a copy of, as long as the mark is the same. */
  copies: Map<string, { id: string; mark: string }>;
  /** The files of the session that earlier calls have seen to; undefined before the first. */
  seen: Set<string> | undefined;
}

interface Inputs {
  /** By name: what the call refers to. */
  files: Map<string, ReferredFile>;
  /** The same, with those that another of the same name has taken the place of. */
  all: ReferredFile[];
  problems: string[];
}

const MOST_OUTPUTS = 200;
const VIRTUAL = '/mnt/data';

export function createServiceCalls(options: {
  shared: SharedSessions;
  files: FileStore;
  spills: Spills;
  admission: Admission;
  largestOutput: number;
  quota: number;
}): ServiceCalls {
  const { shared: sessions, files } = options;
  const references = createFileReferences(files);
  const known = new WeakMap<Session, Known>();

  const knownOf = (session: Session): Known => {
    const found = known.get(session);
    if (found) return found;
    const fresh: Known = { snapshot: undefined, copies: new Map(), seen: undefined };
    known.set(session, fresh);
    return fresh;
  };

  async function start(request: ServiceCallRequest): Promise<RunningServiceCall> {
    await checkRuntime(request.interpreter);
    const wanted = request.files.map(({ name }) => (name === undefined ? undefined : safeName(name)));
    const shared = await sessions.open({ owner: request.owner, ...request.session });
    try {
      const call = enqueue(request, wanted, shared);
      call.finished.finally(() => sessions.release(shared)).catch(() => {});
      return call;
    } catch (error) {
      await sessions.release(shared);
      throw error;
    }
  }

  function enqueue(
    request: ServiceCallRequest,
    wanted: (string | undefined)[],
    shared: SharedSession,
  ): RunningServiceCall {
    const { interpreter, stdin, timeout, isStateful, isAnnounced, signal } = request;
    const wrapped = request.wrap?.(request.code, shared);
    if (wrapped?.before) shared.session.execute({ code: wrapped.before, interpreter });
    let work: Promise<ServiceCallResult> | undefined;
    const execution = shared.session.execute({
      code: localised(wrapped?.code ?? request.code, shared),
      interpreter,
      args: request.args?.map((one) => localised(one, shared)),
      stdin,
      timeout,
      isStateful,
      isAnnounced: isAnnounced ?? false,
      signal,
      around: async (run) => {
        work = withFiles(run);
        await work;
      },
    });
    const output = collectOutput(execution, options.spills);

    async function withFiles(run: () => Promise<void>): Promise<ServiceCallResult> {
      const state = knownOf(shared.session);
      const inputs = await bringIn(request, wanted, shared, state);
      const before = state.snapshot ?? (await takeSnapshot(shared.workspace));
      await run();
      return conclude(execution, output, { shared, owner: request.owner, inputs, before, state });
    }

    // One that is cancelled before its turn has no files to bring or to keep.
    const finished = execution.done.then((record) => work ?? withoutFiles(record));
    finished.catch(() => {});
    return { shared, execution, finished, printed: output };
  }

  /** Puts the files that the call names, and those uploaded to its session, where the code expects them. */
  async function bringIn(
    request: ServiceCallRequest,
    names: (string | undefined)[],
    shared: SharedSession,
    state: Known,
  ): Promise<Inputs> {
    const inputs = new Map<string, StoredFile>();
    const stored = files.list(shared.session.id);
    for (const file of stored) {
      const isNews = state.seen === undefined || (file.origin === 'upload' && !state.seen.has(file.id));
      if (file.owner === request.owner && isNews && !files.isRemoved(file, file.name)) inputs.set(file.name, file);
    }
    state.seen = new Set(stored.map((file) => file.id));
    const own = new Set(inputs.keys());
    const { found, problems } = references.find(request.files, names, request);
    for (const { name, file } of found) {
      inputs.set(name, file);
      own.delete(name);
    }
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
        await files.copyIntoWorkspace(file, shared.workspace, name, shared.codeOwner);
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
    return { files: new Map(found.map((one) => [one.name, one])), all: found, problems };
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
      inputs: Inputs;
      before: Snapshot;
      state: Known;
    },
  ): Promise<ServiceCallResult> {
    const { shared, owner, inputs, before, state } = call;
    const { record } = execution;
    const after = await saveUnsavedImages(output.images, record.number, shared, before);
    const changes = compareSnapshots(before, after);
    const problems = inputs.problems.length;
    const kept = await keepOutputs(changes, shared, owner, inputs);
    // A client that has not got all that was written still needs what it may have been made of.
    const isWhole = record.outcome !== 'cancelled' && inputs.problems.length === problems;
    for (const { file, name } of kept) {
      const mark = after.get(name);
      if (mark !== undefined) state.copies.set(name, { id: file.id, mark });
    }
    state.snapshot = after;
    output.stop();
    noteRemovals(changes.gone, shared, isWhole ? inputs.all : []);
    const unchanged = [...inputs.files.values()].filter(
      ({ name, reference }) => reference.isCarried && after.has(name) && !changes.written.includes(name),
    );
    return {
      record,
      stdout: output.text('stdout'),
      stderr: output.text('stderr'),
      files: [...kept, ...unchanged.map(({ file, name, reference }) => ({ file, name, inherited: reference }))],
      deleted: isWhole ? changes.gone.filter((name) => inputs.files.has(name)) : [],
      problems: inputs.problems,
    };
  }

  /** What code has removed does not come back: not by a reference that the client sends again, nor when the session is next opened. */
  function noteRemovals(names: string[], { session, workspace }: SharedSession, referred: ReferredFile[]): void {
    const gone = names.filter((name) => isGone(join(workspace, name)));
    if (gone.length === 0) return;
    references.noteRemovals(referred, gone);
    for (const file of files.list(session.id)) if (gone.includes(file.name)) files.noteRemoval(file, file.name);
  }

  async function keepOutputs(
    changes: WorkspaceChanges,
    shared: SharedSession,
    owner: string,
    inputs: Inputs,
  ): Promise<{ file: StoredFile; name: string }[]> {
    const kept: { file: StoredFile; name: string }[] = [];
    const written = changes.written.filter((name) => !inputs.files.get(name)?.file.readOnly);
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

  return { start: (request) => options.admission.admit(request.owner, () => start(request)) };
}

function withoutFiles(record: ExecutionRecord): ServiceCallResult {
  return { record, stdout: '', stderr: '', files: [], deleted: [], problems: [] };
}

/** Code that speaks of /mnt/data, on a machine where the workspace cannot be mounted there. */
function localised(code: string, { seen }: SharedSession): string {
  return seen === VIRTUAL ? code : code.replaceAll(VIRTUAL, seen);
}

/** A snapshot of a very large workspace does not have all of it. */
function isGone(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return true; // A file stands where a folder of its path was.
  }
}
