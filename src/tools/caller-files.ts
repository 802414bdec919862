/** Reads and writes files for a caller: anywhere for the user of this machine, or, for a caller of the service, in its workspace alone. */

import { lstat, mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { CuvetteError, messageOf } from '../errors.ts';
import { writeIntoWorkspace } from '../files/copy-in.ts';
import { asStorageError } from '../files/durable-write.ts';
import { openFolder } from '../files/folder-handle.ts';
import { safeName } from '../files/names.ts';
import { openRegularFile } from '../files/open-untrusted.ts';
import type { Session } from '../sessions/session.ts';
import type { ToolContext } from './define-tool.ts';

/** The files of a tool's caller; paths are returned as the caller knows them. */
export interface CallerFiles {
  read(path: string, context: ToolContext): Promise<{ path: string; text: string }>;
  write(path: string, text: string, context: ToolContext): Promise<string>;
}

const MODE = 0o644;
/** Bytes of a file that is read from a workspace. */
const LARGEST = 64 << 20;

/** Gives access to any file that the user can name; relative paths are resolved from the project. */
export function projectFiles(project: string): CallerFiles {
  return {
    async read(file) {
      const path = resolve(project, file);
      const text = await readFile(path, 'utf8').catch((error: unknown) => {
        throw unreadable(path, messageOf(error), error);
      });
      return { path, text };
    },
    write: (file, text) => writeAnywhere(resolve(project, file), text),
  };
}

/** Gives access to the workspace of the caller's default session, in which code may have replaced any file or folder. */
export const WORKSPACE_FILES: CallerFiles = {
  async read(file, { sessions }) {
    const name = safeName(file);
    const path = join(sessions.project, name);
    return { path, text: await sessions.use(undefined, ({ project }) => readWorkspace(project, name, path)) };
  },
  async write(file, text, { sessions }) {
    return join(sessions.project, await sessions.use(undefined, ({ project }) => writeWorkspace(project, file, text)));
  },
};

/** Writes an exported session and returns its path; `seen` is the project's path as the caller knows it. */
export async function writeExport(
  session: Pick<Session, 'project' | 'folder' | 'limits'>,
  seen: string,
  file: { path: string | undefined; usual: string; content: string },
): Promise<string> {
  if (session.limits.isShared)
    return join(seen, await writeWorkspace(session.project, file.path || file.usual, file.content));
  return writeAnywhere(resolve(session.project, file.path || join(session.folder, file.usual)), file.content);
}

async function writeAnywhere(path: string, text: string): Promise<string> {
  try {
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  } catch (error) {
    throw unwritable(path, messageOf(error), error);
  }
  return path;
}

/** Writes safely although code may change the workspace meanwhile; the file belongs to the owner of the workspace. Returns its name there. */
async function writeWorkspace(workspace: string, path: string, content: string): Promise<string> {
  const name = safeName(path);
  const { uid } = await lstat(workspace);
  const owner = process.getuid?.() === 0 ? uid : undefined;
  try {
    await writeIntoWorkspace(content, workspace, name, { mode: MODE, owner });
  } catch (error) {
    const known = asStorageError(error);
    if (known instanceof CuvetteError) throw known;
    // The message of the system would show paths of this machine.
    throw unwritable(name, (error as NodeJS.ErrnoException).code ?? 'it failed', error);
  }
  return name;
}

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

function unwritable(path: string, why: string, cause: unknown): CuvetteError {
  return new CuvetteError('invalid_input', `${path} cannot be written: ${why}. Give another path.`, { cause });
}
