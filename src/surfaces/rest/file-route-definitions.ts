/** Declares the file routes for OpenAPI: their paths, parameters and answers. `file-routes.ts` handles them. */

import { createRoute, z } from '@hono/zod-openapi';
import { batchAnswer, fileList, id, objectAnswer, uploadAnswer } from './file-schemas.ts';

export const fileParams = z.object({ session: id, file: id });

const word = (description: string) => z.unknown().optional().openapi({ type: 'string', description });
/** The agent or skill that a file belongs to, which LibreChat sends with every call. */
const resourceQuery = z.object({
  kind: word('`agent` or `skill`: what the file was uploaded for, by whichever user of the tenant.'),
  id: word('Of the agent or the skill.'),
  version: word('Of the skill.'),
  entity_id: word('Accepted, and not looked at.'),
});

const deleted = z.object({ status: z.literal('deleted') }).openapi('Deleted');

/** Not a zod schema, because that would make the framework read the whole form. */
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
const ONE_FILE = { request: { params: fileParams, query: resourceQuery } };
const NO_FILE = { description: 'There is no such file.' };
const REFUSED = {
  400: { description: 'The form or the name of a file is wrong.' },
  413: { description: 'A file is too large.' },
  422: { description: 'The entity_id is wrong.' },
  507: { description: 'The session, or the disk, is full.' },
};

export const upload = createRoute({
  method: 'post',
  path: '/upload',
  operationId: 'uploadFiles',
  summary: 'Upload files: all, or none',
  request: uploadRequest,
  responses: { 200: json(uploadAnswer, 'Every file is stored.'), ...REFUSED },
});

export const uploadBatch = createRoute({
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

export const listFiles = createRoute({
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

export const getObject = createRoute({
  method: 'get',
  path: '/sessions/{session}/objects/{file}',
  operationId: 'getObject',
  summary: 'Look up a file',
  ...ONE_FILE,
  responses: { 200: json(objectAnswer, 'What is known of it.'), 404: NO_FILE },
});

const REMOVAL = {
  method: 'delete',
  summary: 'Delete a file',
  ...ONE_FILE,
  responses: { 200: json(deleted, 'It is deleted.'), 404: NO_FILE },
} as const;
export const removeFile = createRoute({ ...REMOVAL, path: '/files/{session}/{file}', operationId: 'deleteFile' });
export const removeObject = createRoute({
  ...REMOVAL,
  path: '/sessions/{session}/objects/{file}',
  operationId: 'deleteObject',
});

const binary = { 'application/octet-stream': { schema: { type: 'string' as const, format: 'binary' } } };
export const download = createRoute({
  method: 'get',
  path: '/download/{session}/{file}',
  operationId: 'downloadFile',
  summary: 'Download a file, or a range of it',
  ...ONE_FILE,
  responses: {
    200: { description: 'Its bytes.', content: binary },
    206: { description: 'The bytes that the Range header asks for.', content: binary },
    304: { description: 'It is the one that If-None-Match names.' },
    404: NO_FILE,
    416: { description: 'It has no such range.' },
  },
});
