/** Writes files and folders so that a crash cannot leave half of one: they appear under their names complete, or not at all. */

import { mkdir, open, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nanoid } from 'nanoid';
import { codeOf } from '../../errors.ts';
import { asStorageError, moveInto } from '../../files/durable-write.ts';
import { removeStaleFiles } from '../../stale-files.ts';

/** The prefix of temporary names. */
const INCOMING = '.incoming-';

export async function writeDurably(path: string, content: string | Uint8Array): Promise<void> {
  const folder = dirname(path);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const temporary = join(folder, INCOMING + nanoid());
  try {
    const handle = await open(temporary, 'wx', 0o600);
    await handle
      .writeFile(content)
      .then(() => handle.sync())
      .finally(() => handle.close());
    await moveInto(folder, temporary, path.slice(folder.length + 1));
  } catch (error) {
    await rm(temporary, { force: true });
    throw asStorageError(error);
  }
}

/** Appends a line. A part of a line that a crash left stays a line of its own. */
export async function appendDurably(path: string, line: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const handle = await open(path, 'a+', 0o600);
  try {
    const { size } = await handle.stat();
    const last = Buffer.alloc(1);
    if (size > 0) await handle.read(last, 0, 1, size - 1);
    await handle.appendFile(`${size > 0 && last[0] !== 10 ? '\n' : ''}${line}\n`);
    await handle.sync();
  } catch (error) {
    throw asStorageError(error);
  } finally {
    await handle.close();
  }
}

/** A temporary folder: `keep` renames it, unless the name is taken; `discard` removes it. */
export interface IncomingFolder {
  path: string;
  keep(name: string): Promise<void>;
  discard(): Promise<void>;
}

export async function createIncomingFolder(parent: string): Promise<IncomingFolder> {
  await mkdir(parent, { recursive: true, mode: 0o700 });
  await removeStaleFiles(parent, isIncoming);
  const path = join(parent, INCOMING + nanoid());
  await mkdir(path, { mode: 0o700 });
  const discard = () => rm(path, { recursive: true, force: true });
  return {
    path,
    discard,
    async keep(name) {
      try {
        await moveInto(parent, path, name);
      } catch (error) {
        await discard();
        const code = codeOf(error);
        if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw asStorageError(error);
      }
    },
  };
}

export function isIncoming(name: string): boolean {
  return name.startsWith(INCOMING);
}
