/** Writes images that code has shown and not saved to files of the workspace, for callers who only get files. */

import { realpathSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { compareSnapshots, type Snapshot, takeSnapshot } from '../files/changes.ts';
import { openFolder } from '../files/folder-handle.ts';
import { openRegularFile } from '../files/open-untrusted.ts';
import type { ShownImage } from './collected-output.ts';
import type { SharedSession } from './shared-sessions.ts';

/** Gives back what is in the workspace after it, given what was there before the code ran. */
export async function saveUnsavedImages(
  pictures: ShownImage[],
  execution: number,
  shared: SharedSession,
  before: Snapshot,
): Promise<Snapshot> {
  const after = await takeSnapshot(shared.workspace);
  const unsaved: Shown[] = [];
  for (const picture of pictures) {
    const shown = { mimeType: picture.mimeType, bytes: Buffer.from(picture.base64, 'base64') };
    if (!isSaved(picture, shared, before, after) && !(await isFile(shown, shared.workspace, after)))
      unsaved.push(shown);
  }
  if (unsaved.length === 0) return after;
  let number = 0;
  for (const shown of unsaved) {
    // Figures of earlier calls may have come with this one.
    do number += 1;
    while (!(await save(shown, `figure-${execution}-${number}`, shared)));
  }
  return takeSnapshot(shared.workspace);
}

interface Shown {
  mimeType: string;
  bytes: Buffer;
}

/** Whether the code has saved the figure itself, to a file that its caller gets. */
function isSaved(
  { savedAs }: ShownImage,
  { seen, workspace }: SharedSession,
  before: Snapshot,
  after: Snapshot,
): boolean {
  if (savedAs.length === 0) return false;
  const { written } = compareSnapshots(before, after);
  const roots = [seen, ...(seen === workspace ? [realpathSync(workspace)] : [])];
  return savedAs.some((path) => roots.some((root) => written.some((name) => path === join(root, name))));
}

/** Whether the picture is a file of the workspace, byte for byte: one that was shown from there, or saved by other means. */
async function isFile({ bytes }: Shown, workspace: string, files: Snapshot): Promise<boolean> {
  for (const [name, mark] of files) {
    if (!mark.startsWith(`${bytes.length} `)) continue;
    const content = await contentOf(workspace, name, bytes.length).catch(() => undefined);
    if (content?.equals(bytes)) return true;
  }
  return false;
}

async function contentOf(workspace: string, name: string, size: number): Promise<Buffer | undefined> {
  const folders = name.split('/');
  const last = folders.pop() ?? '';
  const folder = await openFolder(workspace, folders);
  try {
    const file = await openRegularFile(folder.entry(last));
    if (!file) return undefined;
    try {
      const content = Buffer.alloc(size);
      const { bytesRead } = await file.read(content, 0, size, 0);
      return content.subarray(0, bytesRead);
    } finally {
      await file.close();
    }
  } finally {
    await folder.close();
  }
}

/** False if a file of that name is there already. */
async function save(
  { mimeType, bytes }: Shown,
  name: string,
  { workspace, codeOwner }: SharedSession,
): Promise<boolean> {
  const path = join(workspace, `${name}.${mimeType === 'image/jpeg' ? 'jpg' : 'png'}`);
  try {
    const file = await open(path, 'wx');
    try {
      await file.writeFile(bytes);
      if (codeOwner !== undefined) await file.chown(codeOwner, codeOwner);
    } finally {
      await file.close();
    }
    return true;
  } catch (error) {
    // Anything else, a full disk or a workspace that is gone, is no reason to fail the call, nor to try again.
    return (error as NodeJS.ErrnoException).code !== 'EEXIST';
  }
}
