/** Defines a language: how its tool is found, and how source becomes a plan of steps. Running the plan is left to `program-interpreter.ts`. */

import { isAbsolute, normalize, sep } from 'node:path';
import { CuvetteError } from '../../errors.ts';
import { openFolder } from '../../files/folder-handle.ts';
import { openRegularFile } from '../../files/open-untrusted.ts';

export interface Language {
  /** The interpreter's name in a session. */
  name: 'bash' | 'node' | 'typescript' | 'go' | 'cpp';
  title: string;
  /** What callers may write for it. */
  aliases: string[];
  extension: string;
  /** How to install what is missing. */
  install: string;
  probe(): Promise<LanguageInfo>;
  plan(source: Source): Promise<ProgramPlan>;
  /** Makes what later builds are faster with, once; may take half a minute of one core. */
  prepare?(cache: string, signal?: AbortSignal, options?: { isBackground: boolean }): Promise<void>;
}

export type LanguageInfo = LanguageTool | { missing: string[] };

export interface LanguageTool {
  version: string;
  path: string;
}

/** A folder, and where the program sees it. */
export interface MappedFolder {
  folder: string;
  seen: string;
}

export interface Source {
  code: string;
  args: string[];
  /** A new empty folder of this run. Removed after the run. */
  program: MappedFolder;
  /** The session's workspace. */
  workspace: MappedFolder;
  /** A private folder that all sessions share: builds, precompiled headers. */
  cache: string;
  /** Whether the steps can only read it: what it lacks, each build makes for itself. */
  isCacheReadOnly: boolean;
  /** bash: `set -euo pipefail`. */
  strict: boolean;
  /** bash only: a file that holds the shell's state between calls; given for stateful sessions. */
  state?: { file: string; seen: string };
}

export interface ProgramStep {
  kind: 'build' | 'run';
  argv: string[];
  env?: Record<string, string>;
}

export interface ProgramPlan {
  steps: ProgramStep[];
  /** Files put into the workspace only for this run: removed afterwards, never reported as outputs. Names relative to the workspace. */
  own: string[];
  /** Called when the build steps have succeeded and before the program runs, to keep what they made. */
  built?(): Promise<void>;
  /** Text for stderr, and no steps: the source cannot be run. Exit code 1. */
  refused?: string;
}

/** The language's tool, or an error that says how to get it. */
export async function toolOf(language: Language): Promise<LanguageTool> {
  const info = await language.probe();
  if ('path' in info) return info;
  throw new CuvetteError(
    'runtime_missing',
    `${language.title} cannot be run here: ${info.missing.join(' or ')} was not found. ${language.install}`,
  );
}

export type UserFile = { kind: 'file'; bytes: Buffer; stamp: string } | { kind: 'absent' } | { kind: 'other' };

/**
 * A file of a workspace, as user code may have left it: it waits on no pipe or device, and reads no more than the limit.
 * A link is not followed: where it leads may be another place in the program's eyes.
 */
export async function readUserFile(folder: string, name: string, limit: number): Promise<UserFile> {
  const parts = normalize(name).split(sep);
  if (isAbsolute(name) || parts[0] === '..') return { kind: 'other' };
  const last = parts.pop() ?? '';
  try {
    const held = await openFolder(folder, parts);
    const file = await openRegularFile(held.entry(last)).finally(() => held.close());
    if (!file) return { kind: 'other' };
    try {
      const about = await file.stat();
      if (about.size > limit) return { kind: 'other' };
      const stamp = `${about.ino} ${about.ctimeMs} ${about.size}`;
      const { buffer, bytesRead } = await file.read(Buffer.alloc(about.size), 0, about.size, 0);
      return { kind: 'file', bytes: buffer.subarray(0, bytesRead), stamp };
    } finally {
      await file.close();
    }
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return { kind: code === 'ENOENT' ? 'absent' : 'other' };
  }
}
