/** Puts a stored file into a workspace, whatever code has left there: nothing is written through a symlink, a hard link or a FIFO. */

import { constants } from 'node:fs';
import { copyFile, open, rename, unlink } from 'node:fs/promises';
import { nanoid } from 'nanoid';
import { CuvetteError } from '../errors.ts';
import { type HeldFolder, holdFolder, pathOfHandle } from './folder.ts';
import { safeName } from './names.ts';

/** How a file is called in the workspace until it is whole. */
const PLACING = '.cuvette-placing-';

const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export async function placeFile(bytes: string, workspace: string, name: string, mode: number): Promise<void> {
  const folders = safeName(name).split('/');
  const last = folders.pop() ?? '';
  const folder = await holdFolder(workspace, folders, true);
  try {
    await replace(folder, last, bytes, mode);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EISDIR' && code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error;
    throw new CuvetteError('invalid_input', `${name} is a folder in the workspace. Remove it, or rename the file.`, {
      cause: error,
    });
  } finally {
    await folder.close();
  }
}

async function replace(folder: HeldFolder, name: string, bytes: string, mode: number): Promise<void> {
  const temporary = folder.entry(PLACING + nanoid());
  const handle = await open(temporary, NEW_FILE, 0o600);
  try {
    // By its handle, since something else may stand at that name by now.
    const target = process.platform === 'linux' ? pathOfHandle(handle) : temporary;
    await copyFile(bytes, target, constants.COPYFILE_FICLONE);
    await handle.chmod(mode);
    await rename(temporary, folder.entry(name));
  } catch (error) {
    await unlink(temporary).catch(() => {});
    throw error;
  } finally {
    await handle.close();
  }
}
