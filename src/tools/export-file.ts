/** Where an exported session goes: wherever its user likes, or, for callers who have nothing else on this machine, into their workspace. */

import { lstat, mkdir, writeFile } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve } from 'node:path';
import { CuvetteError, messageOf } from '../errors.ts';
import { writeIntoWorkspace } from '../files/copy-in.ts';
import { asStorageError } from '../files/durable-write.ts';
import { safeName } from '../files/names.ts';
import type { Session } from '../sessions/session.ts';

type Place = Pick<Session, 'project' | 'folder' | 'limits'>;

const MODE = 0o644;

/** Says where it is: as the caller knows the place, whose project it calls `seen`. */
export async function writeExport(
  place: Place,
  seen: string,
  file: { path: string | undefined; usual: string; content: string },
): Promise<string> {
  if (place.limits.isShared)
    return join(seen, await intoWorkspace(place.project, file.path || file.usual, file.content));
  const path = file.path || join(place.folder, file.usual);
  const target = isAbsolute(path) ? path : resolve(place.project, path);
  try {
    await mkdir(dirname(target), { recursive: true });
    await writeFile(target, file.content);
  } catch (error) {
    throw refusal(target, messageOf(error), error);
  }
  return target;
}

/** Code may change the workspace meanwhile. What is made there belongs to whom the workspace does, so that code can change it. Gives the name that it has there. */
export async function intoWorkspace(workspace: string, path: string, content: string): Promise<string> {
  const name = safeName(path);
  const { uid } = await lstat(workspace);
  const owner = process.getuid?.() === 0 ? uid : undefined;
  try {
    await writeIntoWorkspace(content, workspace, name, { mode: MODE, owner });
  } catch (error) {
    const known = asStorageError(error);
    if (known instanceof CuvetteError) throw known;
    // What the system says has paths of this machine in it.
    throw refusal(name, (error as NodeJS.ErrnoException).code ?? 'it failed', error);
  }
  return name;
}

function refusal(target: string, why: string, cause: unknown): CuvetteError {
  return new CuvetteError('invalid_input', `${target} cannot be written: ${why}. Give another path.`, { cause });
}
