/**
 * Brings the files of a service call into the session's workspace before its code runs, and keeps what the code has written there. It works
 * between two executions of the session's queue, so whatever changes in the workspace meanwhile is credited to that call.
 */

import { lstatSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../errors.ts';
import { compareSnapshots, type Snapshot, takeSnapshot, type WorkspaceChanges } from '../files/changes.ts';
import type { FileStore, StoredFile } from '../files/file-store.ts';
import { shownName } from '../files/names.ts';
import type { ShownImage } from './collected-output.ts';
import type { ExecutionRecord } from './execution-record.ts';
import { createFileReferences, type FileReference, type ReferredFile } from './file-references.ts';
import type { Session } from './session.ts';
import type { SharedSession } from './shared-sessions.ts';
import { saveUnsavedImages } from './unsaved-images.ts';

/** A call as far as its files go. */
export interface CallWithFiles {
  sharedSession: SharedSession;
  owner: string;
  tenant?: string | undefined;
  /** The files that the call refers to, with names that are safe. */
  files: FileReference[];
}

export interface OutputFile {
  file: StoredFile;
  name: string;
  /** Set if it came with the call, and is as it was. */
  inherited?: FileReference;
}

export interface FilesOfCall {
  files: OutputFile[];
  /** Names of files that came with the call and that the code has removed; none unless all that it wrote is kept. */
  deleted: string[];
  /** What went wrong beside the code: a file that is no longer there, an output that could not be kept. */
  problems: string[];
}

export interface WorkspaceFiles {
  /** Brings the call's files in, runs its code, and keeps what the code has written. */
  runWith(
    call: CallWithFiles,
    run: () => Promise<{ record: ExecutionRecord; images: ShownImage[] }>,
  ): Promise<FilesOfCall>;
}

/** What is known of a session's workspace between two calls. */
interface KnownWorkspace {
  snapshot: Snapshot | undefined;
  /** By name: which stored file it is a copy of, as long as its mark in the snapshot is the same. */
  copies: Map<string, { id: string; mark: string }>;
  /** Ids of the session's files that earlier calls have brought in; undefined before the first call. */
  seen: Set<string> | undefined;
}

interface Inputs {
  /** By name: the files that the call refers to. */
  files: Map<string, ReferredFile>;
  /** The same, with those that another of the same name has replaced. */
  all: ReferredFile[];
  problems: string[];
}

const MOST_OUTPUTS = 200;

export function createWorkspaceFiles(options: {
  files: FileStore;
  /** Bytes; 0 is no limit. */
  largestOutput: number;
  /** Bytes that the files of a session may have in all; 0 is no limit. */
  quota: number;
}): WorkspaceFiles {
  const { files } = options;
  const references = createFileReferences(files);
  const known = new WeakMap<Session, KnownWorkspace>();

  const knownOf = (session: Session): KnownWorkspace => {
    const found = known.get(session);
    if (found) return found;
    const fresh: KnownWorkspace = { snapshot: undefined, copies: new Map(), seen: undefined };
    known.set(session, fresh);
    return fresh;
  };

  /** Puts the files that the call names, and those uploaded to its session, where the code expects them. */
  async function bringIn(call: CallWithFiles, state: KnownWorkspace): Promise<Inputs> {
    const { sharedSession } = call;
    const inputs = new Map<string, StoredFile>();
    const stored = files.list(sharedSession.session.id);
    for (const file of stored) {
      const isNews = state.seen === undefined || (file.origin === 'upload' && !state.seen.has(file.id));
      if (file.owner === call.owner && isNews && !files.isRemoved(file, file.name)) inputs.set(file.name, file);
    }
    state.seen = new Set(stored.map((file) => file.id));
    const own = new Set(inputs.keys());
    const { found, problems } = references.find(call.files, call);
    for (const { name, file } of found) {
      inputs.set(name, file);
      own.delete(name);
    }
    const { workspace, isNew, codeOwner } = sharedSession;
    const present = state.snapshot ?? (isNew ? new Map<string, string>() : await takeSnapshot(workspace));
    let isChanged = false;
    for (const [name, file] of inputs) {
      const copy = state.copies.get(name);
      const mark = present.get(name);
      const isThere = own.has(name)
        ? () => !isFresher(file, copy, join(workspace, name))
        : () => copy?.id === file.id && copy.mark === mark;
      if (mark !== undefined && isThere()) continue;
      try {
        await files.copyIntoWorkspace(file, workspace, name, codeOwner);
        isChanged = true;
        state.copies.delete(name);
      } catch (error) {
        state.seen.delete(file.id); // The next call tries it again.
        problems.push(`The file ${shownName(name)} could not be put into the workspace: ${messageOf(error)}`);
      }
    }
    state.snapshot = isChanged ? await takeSnapshot(workspace) : present;
    for (const [name, file] of inputs) {
      const mark = state.snapshot.get(name);
      if (mark !== undefined && !state.copies.has(name)) state.copies.set(name, { id: file.id, mark });
    }
    return { files: new Map(found.map((one) => [one.name, one])), all: found, problems };
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
    sharedSession: SharedSession,
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
        kept.push({ file: await keep(name, sharedSession, owner), name });
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

  return {
    async runWith(call, run) {
      const { sharedSession, owner } = call;
      const state = knownOf(sharedSession.session);
      const inputs = await bringIn(call, state);
      const before = state.snapshot ?? (await takeSnapshot(sharedSession.workspace));
      const { record, images } = await run();
      const after = await saveUnsavedImages(images, record.number, sharedSession, before);
      const changes = compareSnapshots(before, after);
      const problems = inputs.problems.length;
      const kept = await keepOutputs(changes, sharedSession, owner, inputs);
      // A client that has not got all that was written still needs what it may have been made of.
      const isWhole = record.outcome !== 'cancelled' && inputs.problems.length === problems;
      for (const { file, name } of kept) {
        const mark = after.get(name);
        if (mark !== undefined) state.copies.set(name, { id: file.id, mark });
      }
      state.snapshot = after;
      noteRemovals(changes.gone, sharedSession, isWhole ? inputs.all : []);
      const unchanged = [...inputs.files.values()].filter(
        ({ name, reference }) => reference.isCarried && after.has(name) && !changes.written.includes(name),
      );
      return {
        files: [...kept, ...unchanged.map(({ file, name, reference }) => ({ file, name, inherited: reference }))],
        deleted: isWhole ? changes.gone.filter((name) => inputs.files.has(name)) : [],
        problems: inputs.problems,
      };
    },
  };
}

/** Whether it is newer than what stands in the workspace: another upload than the one that was copied there, or, if that is not known, a later one. */
function isFresher(file: StoredFile, copy: { id: string } | undefined, path: string): boolean {
  return file.origin === 'upload' && (copy ? copy.id !== file.id : file.createdAt > lstatSync(path).mtimeMs);
}

/** A snapshot of a very large workspace does not have all of it. */
function isGone(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) === undefined;
  } catch {
    return true; // A file stands where a folder of its path was.
  }
}
