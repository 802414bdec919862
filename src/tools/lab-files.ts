/** The files that the lab's tools read and write on this side: those of the user's project, or, for callers who have nothing else here, of their workspace. */

import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { CuvetteError, messageOf } from '../errors.ts';
import { openFolder } from '../files/folder-handle.ts';
import { safeName } from '../files/names.ts';
import { openRegularFile } from '../files/open-untrusted.ts';
import type { ToolContext } from './define-tool.ts';
import { intoWorkspace } from './export-file.ts';

export interface LabFiles {
  /** Its text, and its path as the caller knows it. */
  read(path: string, context: ToolContext): Promise<{ path: string; text: string }>;
  /** The path as the caller knows it. */
  write(path: string, text: string, context: ToolContext): Promise<string>;
}

/** Bytes of a file of prompts in a workspace. */
const LARGEST = 64 << 20;

/** Any file that the user can name; relative paths are meant from the project. */
export function projectFiles(project: string): LabFiles {
  return {
    async read(file) {
      const path = resolve(project, file);
      const text = await readFile(path, 'utf8').catch((error: unknown) => {
        throw unreadable(path, messageOf(error), error);
      });
      return { path, text };
    },
    async write(file, text) {
      const path = resolve(project, file);
      try {
        await mkdir(dirname(path), { recursive: true });
        await writeFile(path, text);
      } catch (error) {
        throw new CuvetteError('invalid_input', `${path} cannot be written: ${messageOf(error)}. Give another path.`, {
          cause: error,
        });
      }
      return path;
    },
  };
}

/** Those of the caller's default session, and no others: code may have put anything in their place. */
export const WORKSPACE_FILES: LabFiles = {
  async read(file, { sessions }) {
    const name = safeName(file);
    const path = join(sessions.project, name);
    return { path, text: await sessions.use(undefined, ({ project }) => readWorkspace(project, name, path)) };
  },
  async write(file, text, { sessions }) {
    return join(sessions.project, await sessions.use(undefined, ({ project }) => intoWorkspace(project, file, text)));
  },
};

async function readWorkspace(workspace: string, name: string, path: string): Promise<string> {
  const folders = name.split('/');
  const last = folders.pop() ?? '';
  const missing = (error?: unknown) => unreadable(path, 'there is no such file in the workspace', error);
  const folder = await openFolder(workspace, folders).catch((error: unknown) => {
    throw error instanceof CuvetteError ? error : missing(error);
  });
  try {
    const handle = await openRegularFile(folder.entry(last)).catch((error: unknown) => {
      throw missing(error);
    });
    if (!handle) throw unreadable(path, 'it is not a regular file');
    try {
      const { size } = await handle.stat();
      if (size > LARGEST) throw unreadable(path, `it has more than ${LARGEST >> 20} MiB`);
      return await handle.readFile('utf8');
    } finally {
      await handle.close();
    }
  } finally {
    await folder.close();
  }
}

function unreadable(path: string, why: string, cause?: unknown): CuvetteError {
  return new CuvetteError('unknown_file', `${path} cannot be read: ${why}.`, { cause });
}
