/** The routes of files: upload, list, look up, download, delete. Whoever may not use a file is told the same as if it were not there. */

import { open } from 'node:fs/promises';
import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { CuvetteError } from '../../errors.ts';
import type { StoredFile } from '../../files/file-store.ts';
import { mayUse, resourceOf } from '../../files/sharing.ts';
import { bytesOf } from './file-bytes.ts';
import {
  batchAnswer,
  fileList,
  id,
  objectAnswer,
  toBatchFile,
  toFull,
  toNormalized,
  toObject,
  toSummary,
  toUploaded,
  uploadAnswer,
} from './file-shapes.ts';
import { type RestEnv, userOf } from './principal.ts';
import { refuseInvalid } from './problem.ts';
import { takeUpload, type UploadOptions } from './upload.ts';

export interface FileRouteOptions extends UploadOptions {
  onRemoved?(file: StoredFile): void;
}

const fileParams = z.object({ session: id, file: id });

const word = (description: string) => z.unknown().optional().openapi({ type: 'string', description });
/** What a file belongs to, as LibreChat says with every call. */
const resourceQuery = z.object({
  kind: word('`agent` or `skill`: what the file was uploaded for, by whichever user of the tenant.'),
  id: word('Of the agent or the skill.'),
  version: word('Of the skill.'),
  entity_id: word('Accepted, and not looked at.'),
});

const deleted = z.object({ status: z.literal('deleted') }).openapi('Deleted');

/** Not a zod schema, which would have the whole form read for its sake. */
const uploadForm = {
  type: 'object' as const,
  properties: {
    entity_id: {
      type: 'string' as const,
      pattern: '^[A-Za-z0-9_-]{1,40}$',
      description: 'The same one means the same session.',
    },
    read_only: { type: 'string' as const, enum: ['true', 'false'] },
    kind: { type: 'string' as const },
    id: { type: 'string' as const },
    version: { type: 'string' as const },
    file: {
      type: 'array' as const,
      items: { type: 'string' as const, format: 'binary' },
      description: 'One or several. Their names may have folders.',
    },
  },
  required: ['file'],
};
const uploadRequest = { body: { required: true, content: { 'multipart/form-data': { schema: uploadForm } } } };

const json = <T extends z.ZodType>(schema: T, description: string) => ({
  description,
  content: { 'application/json': { schema } },
});
const NO_FILE = { description: 'There is no such file.' };
const REFUSED = {
  400: { description: 'The form or the name of a file is wrong.' },
  413: { description: 'A file is too large.' },
  422: { description: 'The entity_id is wrong.' },
  507: { description: 'The session, or the disk, is full.' },
};

const upload = createRoute({
  method: 'post',
  path: '/upload',
  operationId: 'uploadFiles',
  summary: 'Upload files: all, or none',
  request: uploadRequest,
  responses: { 200: json(uploadAnswer, 'Every file is stored.'), ...REFUSED },
});

const uploadBatch = createRoute({
  method: 'post',
  path: '/upload/batch',
  operationId: 'uploadFilesBatch',
  summary: 'Upload files: as many as can be taken',
  request: uploadRequest,
  responses: {
    ...REFUSED,
    200: json(batchAnswer, 'At least one file is stored.'),
    400: json(batchAnswer, 'No file is stored.'),
  },
});

const listFiles = createRoute({
  method: 'get',
  path: '/files/{session}',
  operationId: 'listFiles',
  summary: 'List the files of a session',
  request: {
    params: z.object({ session: z.string() }),
    query: resourceQuery.extend({ detail: z.enum(['simple', 'summary', 'full', 'normalized']).default('simple') }),
  },
  responses: { 200: json(fileList, 'Its files, oldest first. None if there is no such session.') },
});

const removeFile = createRoute({
  method: 'delete',
  path: '/files/{session}/{file}',
  operationId: 'deleteFile',
  summary: 'Delete a file',
  request: { params: fileParams, query: resourceQuery },
  responses: { 200: json(deleted, 'It is deleted.'), 404: NO_FILE },
});

const objectOf = createRoute({
  method: 'get',
  path: '/sessions/{session}/objects/{file}',
  operationId: 'getObject',
  summary: 'Look up a file',
  request: { params: fileParams, query: resourceQuery },
  responses: { 200: json(objectAnswer, 'What is known of it.'), 404: NO_FILE },
});

const removeObject = createRoute({
  ...removeFile,
  path: '/sessions/{session}/objects/{file}',
  operationId: 'deleteObject',
});

const binary = { 'application/octet-stream': { schema: { type: 'string' as const, format: 'binary' } } };
const download = createRoute({
  method: 'get',
  path: '/download/{session}/{file}',
  operationId: 'downloadFile',
  summary: 'Download a file, or a range of it',
  request: { params: fileParams, query: resourceQuery },
  responses: {
    200: { description: 'Its bytes.', content: binary },
    206: { description: 'The bytes that the Range header asks for.', content: binary },
    304: { description: 'It is the one that If-None-Match names.' },
    404: NO_FILE,
    416: { description: 'It has no such range.' },
  },
});

export function fileRoutes(options: FileRouteOptions): OpenAPIHono<RestEnv> {
  const { files, onRemoved } = options;

  const isAllowed = (c: Context<RestEnv>, file: StoredFile) =>
    mayUse(file, userOf(c.get('principal')), resourceOf(c.req.query()));
  const find = (c: Context<RestEnv>, { session, file }: z.infer<typeof fileParams>): StoredFile => {
    const found = files.get(session, file);
    if (!found || !isAllowed(c, found)) throw noFile();
    return found;
  };
  const remove = (file: StoredFile) => {
    files.remove(file.session, file.id);
    onRemoved?.(file);
    return { status: 'deleted' as const };
  };

  return new OpenAPIHono<RestEnv>({
    defaultHook(result, c) {
      if (!result.success && result.target === 'param') throw noFile();
      return refuseInvalid(result, c);
    },
  })
    .openapi(upload, async (c) => {
      const { session, files: taken } = await takeUpload(c.req.raw, c.get('principal'), options, { partial: false });
      const stored = taken.flatMap((one) => ('file' in one ? [toUploaded(one)] : []));
      return c.json(
        { message: 'success' as const, session_id: session, storage_session_id: session, files: stored },
        200,
      );
    })
    .openapi(uploadBatch, async (c) => {
      const { session, files: taken } = await takeUpload(c.req.raw, c.get('principal'), options, { partial: true });
      const failed = taken.filter((one) => 'error' in one).length;
      const succeeded = taken.length - failed;
      const message = failed === 0 ? 'success' : succeeded === 0 ? 'error' : 'partial_success';
      const answer: z.infer<typeof batchAnswer> = {
        message,
        session_id: session,
        storage_session_id: session,
        files: taken.map(toBatchFile),
        succeeded,
        failed,
      };
      return succeeded === 0 ? c.json(answer, 400) : c.json(answer, 200);
    })
    .openapi(listFiles, (c) => {
      const { session } = c.req.valid('param');
      const { detail } = c.req.valid('query');
      const found = files.list(session).filter((file) => isAllowed(c, file));
      if (detail === 'summary') return c.json(found.map(toSummary), 200);
      if (detail === 'full') return c.json(found.map(toFull), 200);
      if (detail === 'normalized') return c.json(found.map(toNormalized), 200);
      return c.json(
        found.map((file) => `${file.session}/${file.id}`),
        200,
      );
    })
    .openapi(objectOf, (c) => {
      const file = find(c, c.req.valid('param'));
      // LibreChat looks up, once in each turn, the sessions of the files that it is going to refer to: now they count anew.
      files.forgetRemovals(file.session);
      return c.json(toObject(file), 200);
    })
    .openapi(removeFile, (c) => c.json(remove(find(c, c.req.valid('param'))), 200))
    .openapi(removeObject, (c) => c.json(remove(find(c, c.req.valid('param'))), 200))
    .openapi(download, async (c) => {
      const file = find(c, c.req.valid('param'));
      const handle = await open(files.pathOf(file)).catch((error: unknown) => {
        throw noFile(error);
      });
      return bytesOf(c.req.raw, file, handle);
    });
}

function noFile(cause?: unknown): CuvetteError {
  return new CuvetteError('unknown_file', 'There is no such file. GET /files/{session} lists those of a session.', {
    cause,
  });
}
