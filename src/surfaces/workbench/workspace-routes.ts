/** Routes of the files in a session's workspace, which code may change at any moment: nothing is read or written through a link, or outside. */

import { lstat, readdir } from 'node:fs/promises';
import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import { CuvetteError, codeOf } from '../../errors.ts';
import { takeSnapshot } from '../../files/changes.ts';
import { contentTypeOf } from '../../files/content-type.ts';
import { receiveIntoWorkspace } from '../../files/copy-in.ts';
import { type FolderHandle, openFolder } from '../../files/folder-handle.ts';
import { safeName, shownName } from '../../files/names.ts';
import { openRegularFile } from '../../files/open-untrusted.ts';
import type { RestEnv } from '../caller.ts';
import { downloadResponse } from '../rest/file-download.ts';
import { refuseInvalid } from '../rest/problem.ts';
import { seenSession } from './session-info.ts';
import { jsonAnswer, sessionParam } from './session-routes.ts';
import type { WorkbenchOptions } from './workbench.ts';

const MOST_ENTRIES = 2000;
const FILE_MODE = 0o644;
const longest = 4096;

const entry = z.object({
  name: z.string(),
  kind: z.enum(['file', 'folder']),
  size: z.number(),
  modified_at: z.string().openapi({ format: 'date-time' }),
});

const listing = createRoute({
  method: 'get',
  path: '/sessions/{session}/workspace',
  operationId: 'listWorkspace',
  summary: "A folder of a session's workspace",
  request: { params: sessionParam, query: z.object({ path: z.string().max(longest).default('') }) },
  responses: {
    200: jsonAnswer(
      'Its files and folders, by name; links are left out.',
      z.object({ path: z.string(), entries: z.array(entry), is_cut: z.boolean() }),
    ),
  },
});

const filePath = z.object({ path: z.string().max(longest).openapi({ description: 'Relative to the workspace.' }) });

const reading = createRoute({
  method: 'get',
  path: '/sessions/{session}/workspace/file',
  operationId: 'readWorkspaceFile',
  summary: "A file of a session's workspace",
  request: { params: sessionParam, query: filePath.extend({ download: z.string().optional() }) },
  responses: {
    200: {
      description: 'Its bytes, or the range of them that was asked for.',
      content: { '*/*': { schema: z.string() } },
    },
  },
});

const writing = createRoute({
  method: 'put',
  path: '/sessions/{session}/workspace/file',
  operationId: 'writeWorkspaceFile',
  summary: "Write a file into a session's workspace",
  request: {
    params: sessionParam,
    query: filePath,
    body: { content: { 'application/octet-stream': { schema: z.string().openapi({ format: 'binary' }) } } },
  },
  responses: { 201: jsonAnswer('It is there.', z.object({ path: z.string(), size: z.number() })) },
});

export function workspaceRoutes({ sessionsOf, uploads }: WorkbenchOptions): OpenAPIHono<RestEnv> {
  const app = new OpenAPIHono<RestEnv>({ defaultHook: refuseInvalid });
  app.openapi(listing, async (c) => {
    const { workspace } = seenSession(sessionsOf(c), c.req.valid('param').session);
    const path = c.req.valid('query').path.replace(/\/+$/, '');
    const name = path === '' || path === '.' ? '' : safeName(path);
    const folder = await openBelow(workspace.folder, name === '' ? [] : name.split('/'), path);
    try {
      return c.json({ path: name, ...(await entriesOf(folder)) }, 200);
    } finally {
      await folder.close();
    }
  });
  app.openapi(reading, async (c) => {
    const { workspace } = seenSession(sessionsOf(c), c.req.valid('param').session);
    const { path, download } = c.req.valid('query');
    const name = safeName(path);
    const parts = name.split('/');
    const last = parts.pop() ?? '';
    const folder = await openBelow(workspace.folder, parts, path);
    try {
      const handle = await openRegularFile(folder.entry(last)).catch(missing(path));
      if (!handle) throw new CuvetteError('invalid_input', `${shownName(path)} is not a regular file.`);
      const { size, mtimeMs } = await handle.stat();
      const file = {
        name,
        contentType: contentTypeOf(name),
        etag: `${size.toString(16)}-${Math.trunc(mtimeMs).toString(16)}`,
        createdAt: mtimeMs,
        isShown: download === undefined,
      };
      return await downloadResponse(c.req.raw, file, handle);
    } finally {
      await folder.close();
    }
  });
  app.openapi(writing, async (c) => {
    const sessions = sessionsOf(c);
    const { id, workspace } = seenSession(sessions, c.req.valid('param').session);
    const path = safeName(c.req.valid('query').path);
    const room = uploads.quota > 0 ? uploads.quota - (await sizeOf(workspace.folder)) : Number.POSITIVE_INFINITY;
    if (room <= 0)
      throw new CuvetteError(
        'storage_full',
        `The files of a session may have ${uploads.quota} bytes in all. Remove some.`,
      );
    const limit = Math.min(uploads.largest > 0 ? uploads.largest : Number.POSITIVE_INFINITY, room);
    const body: AsyncIterable<Uint8Array> = c.req.raw.body ?? (async function* () {})();
    const how = { mode: FILE_MODE, owner: workspace.codeOwner, limit };
    const size = await receiveIntoWorkspace(body, workspace.folder, path, how).catch(missing(path));
    sessions.noteFiles(id);
    return c.json({ path, size }, 201);
  });
  return app;
}

async function entriesOf(folder: FolderHandle): Promise<{ entries: z.infer<typeof entry>[]; is_cut: boolean }> {
  const all = (await readdir(folder.path, { withFileTypes: true }))
    .filter((one) => one.isFile() || one.isDirectory())
    .sort((a, b) => (a.name < b.name ? -1 : 1));
  const entries: z.infer<typeof entry>[] = [];
  for (const one of all.slice(0, MOST_ENTRIES)) {
    const about = await lstat(folder.entry(one.name)).catch(() => undefined);
    if (!about?.isFile() && !about?.isDirectory()) continue; // It has gone meanwhile.
    const kind = about.isFile() ? 'file' : 'folder';
    entries.push({ name: one.name, kind, size: about.size, modified_at: about.mtime.toISOString() });
  }
  return { entries, is_cut: all.length > MOST_ENTRIES };
}

function openBelow(root: string, parts: string[], path: string): Promise<FolderHandle> {
  return openFolder(root, parts).catch(missing(path));
}

function missing(path: string) {
  return (error: unknown): never => {
    if (codeOf(error) !== 'ENOENT') throw error;
    throw new CuvetteError('unknown_file', `There is no ${shownName(path)} in the workspace.`, { cause: error });
  };
}

/** Bytes of the files, as far as a snapshot has them. */
async function sizeOf(workspace: string): Promise<number> {
  const marks = await takeSnapshot(workspace);
  return [...marks.values()].reduce((sum, mark) => sum + Number.parseInt(mark, 10), 0);
}
