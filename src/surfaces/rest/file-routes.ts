/** The routes of files: upload, list, look up, download, delete. Whoever may not use a session is told the same as if it were not there. */

import { type FileHandle, open } from 'node:fs/promises';
import { extname } from 'node:path';
import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { CuvetteError } from '../../errors.ts';
import { harmlessType } from '../../files/content-type.ts';
import { rangeOf, streamRange } from '../../files/range.ts';
import type { StoredFile } from '../../files/store.ts';
import type { Principal, RestEnv } from './principal.ts';
import { refuseInvalid } from './problem.ts';
import { takeUpload, type Uploaded, type UploadOptions } from './upload.ts';

export interface FileRouteOptions extends UploadOptions {
  mayUse(session: string, principal: Principal): boolean;
  onRemoved?(file: StoredFile): void;
}

const id = z.string().regex(/^[A-Za-z0-9_-]{21}$/);
const time = z.string().openapi({ format: 'date-time' });
const sessionParams = z.object({ session: id });
const fileParams = z.object({ session: id, file: id });

/** LibreChat says with every call what a file belongs to; the ids alone decide. */
const ignored = z.unknown().optional().openapi({ type: 'string', description: 'Accepted, and not looked at.' });
const ignoredQuery = z.object({ kind: ignored, id: ignored, version: ignored, entity_id: ignored });

const originalName = z.object({ 'original-filename': z.string() });

const uploadedFile = z
  .object({
    id,
    fileId: id,
    name: z.string(),
    filename: z.string().openapi({ description: 'The name as it was sent.' }),
    session_id: id,
    storage_session_id: id,
    path: z.string().openapi({ example: '/mnt/data/table.csv' }),
    size: z.number().int(),
    lastModified: time,
    etag: z.string(),
    contentType: z.string(),
    metadata: originalName,
  })
  .openapi('UploadedFile');

const uploadAnswer = z
  .object({
    message: z.literal('success'),
    session_id: id,
    storage_session_id: id,
    files: z.array(uploadedFile),
  })
  .openapi('Upload');

const batchFile = z
  .union([
    uploadedFile.extend({ status: z.literal('success') }),
    z.object({ status: z.literal('error'), filename: z.string(), error: z.string() }),
  ])
  .openapi('BatchFile');

const batchAnswer = z
  .object({
    message: z.enum(['success', 'partial_success', 'error']),
    session_id: id,
    storage_session_id: id,
    files: z.array(batchFile),
    succeeded: z.number().int(),
    failed: z.number().int(),
  })
  .openapi('BatchUpload');

const fileSummary = z
  .object({
    name: z.string().openapi({ description: 'The ids, not the name: SESSION/FILE.ext' }),
    id,
    session_id: id,
    storage_session_id: id,
    size: z.number().int(),
    lastModified: time,
  })
  .openapi('FileSummary');

const fullFile = fileSummary
  .extend({
    resource_id: id,
    etag: z.string(),
    contentType: z.string(),
    readOnly: z.boolean(),
    metadata: originalName.extend({ 'content-type': z.string() }),
  })
  .openapi('FullFile');

const normalizedFile = z
  .object({ id, name: z.string(), session_id: id, storage_session_id: id })
  .openapi('NormalizedFile');

const fileList = z
  .union([z.array(z.string()), z.array(fileSummary), z.array(fullFile), z.array(normalizedFile)])
  .openapi('FileList');

const objectAnswer = z
  .object({
    name: z.string().openapi({ description: 'The ids, not the name: SESSION/FILE.ext' }),
    originalFilename: z.string(),
    size: z.number().int(),
    lastModified: time,
    etag: z.string(),
    contentType: z.string(),
    readOnly: z.boolean(),
  })
  .openapi('StoredObject');

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
  summary: 'Upload files: all, or none',
  request: uploadRequest,
  responses: { 200: json(uploadAnswer, 'Every file is stored.'), ...REFUSED },
});

const uploadBatch = createRoute({
  method: 'post',
  path: '/upload/batch',
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
  summary: 'List the files of a session',
  request: {
    params: sessionParams,
    query: ignoredQuery.extend({ detail: z.enum(['simple', 'summary', 'full', 'normalized']).default('simple') }),
  },
  responses: { 200: json(fileList, 'Its files, oldest first. None if there is no such session.') },
});

const removeFile = createRoute({
  method: 'delete',
  path: '/files/{session}/{file}',
  summary: 'Delete a file',
  request: { params: fileParams, query: ignoredQuery },
  responses: { 200: json(deleted, 'It is deleted.'), 404: NO_FILE },
});

const objectOf = createRoute({
  method: 'get',
  path: '/sessions/{session}/objects/{file}',
  summary: 'Look up a file',
  request: { params: fileParams, query: ignoredQuery },
  responses: { 200: json(objectAnswer, 'What is known of it.'), 404: NO_FILE },
});

const removeObject = createRoute({ ...removeFile, path: '/sessions/{session}/objects/{file}' });

const binary = { 'application/octet-stream': { schema: { type: 'string' as const, format: 'binary' } } };
const download = createRoute({
  method: 'get',
  path: '/download/{session}/{file}',
  summary: 'Download a file, or a range of it',
  request: { params: fileParams, query: ignoredQuery },
  responses: {
    200: { description: 'Its bytes.', content: binary },
    206: { description: 'The bytes that the Range header asks for.', content: binary },
    304: { description: 'It is the one that If-None-Match names.' },
    404: NO_FILE,
    416: { description: 'It has no such range.' },
  },
});

export function fileRoutes(options: FileRouteOptions): OpenAPIHono<RestEnv> {
  const { files, mayUse, onRemoved } = options;

  const find = (c: Context<RestEnv>, { session, file }: z.infer<typeof fileParams>): StoredFile => {
    const found = mayUse(session, c.get('principal')) ? files.get(session, file) : undefined;
    if (!found) throw noFile();
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
      const found = mayUse(session, c.get('principal')) ? files.list(session) : [];
      if (detail === 'summary') return c.json(found.map(toSummary), 200);
      if (detail === 'full') return c.json(found.map(toFull), 200);
      if (detail === 'normalized') return c.json(found.map(toNormalized), 200);
      return c.json(
        found.map((file) => `${file.session}/${file.id}`),
        200,
      );
    })
    .openapi(objectOf, (c) => c.json(toObject(find(c, c.req.valid('param'))), 200))
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

/** The answer to a download. The bytes under an id never change, so its etag is as good as they are. */
async function bytesOf(request: Request, file: StoredFile, handle: FileHandle): Promise<Response> {
  const { size } = await handle.stat();
  const etag = `"${file.etag}"`;
  const headers = new Headers({
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'private, no-cache',
    'Content-Disposition': `attachment; filename*=UTF-8''${encoded(file.name)}`,
    'Content-Security-Policy': 'sandbox',
    'Content-Type': harmlessType(file.contentType),
    ETag: etag,
    'Last-Modified': new Date(file.createdAt).toUTCString(),
    'X-Content-Type-Options': 'nosniff',
  });
  const withoutBody = async (status: number) => {
    await handle.close();
    return new Response(null, { status, headers });
  };

  const isKnown = (request.headers.get('if-none-match') ?? '')
    .split(',')
    .some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag);
  if (isKnown) return withoutBody(304);

  const condition = request.headers.get('if-range');
  const isSame = condition === null || condition === etag || condition === headers.get('last-modified');
  const range = isSame ? rangeOf(request.headers.get('range') ?? '', size) : 'all';
  if (range === 'none') {
    headers.set('Content-Range', `bytes */${size}`);
    return withoutBody(416);
  }
  const { start, end } = range === 'all' ? { start: 0, end: size } : range;
  const status = range === 'all' ? 200 : 206;
  if (status === 206) headers.set('Content-Range', `bytes ${start}-${end - 1}/${size}`);
  headers.set('Content-Length', String(end - start));
  if (request.method === 'HEAD' || start === end) return withoutBody(status);
  return new Response(streamRange(handle, { start, end }), { status, headers });
}

/** The last part of a name, for a header: RFC 8187 leaves few characters as they are. */
function encoded(name: string): string {
  const last = name.slice(name.lastIndexOf('/') + 1);
  return encodeURIComponent(last).replace(
    /['()*!]/g,
    (letter) => `%${letter.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function noFile(cause?: unknown): CuvetteError {
  return new CuvetteError('unknown_file', 'There is no such file. GET /files/{session} lists those of a session.', {
    cause,
  });
}

function modified(file: StoredFile): string {
  return new Date(file.createdAt).toISOString();
}

function objectName(file: StoredFile): string {
  return `${file.session}/${file.id}${extname(file.name)}`;
}

function toUploaded({ filename, file }: { filename: string; file: StoredFile }): z.infer<typeof uploadedFile> {
  return {
    id: file.id,
    fileId: file.id,
    name: file.name,
    filename,
    session_id: file.session,
    storage_session_id: file.session,
    path: `/mnt/data/${file.name}`,
    size: file.size,
    lastModified: modified(file),
    etag: file.etag,
    contentType: file.contentType,
    metadata: { 'original-filename': file.name },
  };
}

function toBatchFile(one: Uploaded): z.infer<typeof batchFile> {
  if ('file' in one) return { status: 'success', ...toUploaded(one) };
  const { code, message } = one.error;
  const error = code === 'internal' ? 'It could not be stored.' : message;
  return { status: 'error', filename: one.filename, error };
}

function toSummary(file: StoredFile): z.infer<typeof fileSummary> {
  return {
    name: objectName(file),
    id: file.id,
    session_id: file.session,
    storage_session_id: file.session,
    size: file.size,
    lastModified: modified(file),
  };
}

function toFull(file: StoredFile): z.infer<typeof fullFile> {
  return {
    ...toSummary(file),
    resource_id: file.id,
    etag: file.etag,
    contentType: file.contentType,
    readOnly: file.readOnly,
    metadata: { 'original-filename': file.name, 'content-type': file.contentType },
  };
}

function toNormalized(file: StoredFile): z.infer<typeof normalizedFile> {
  return { id: file.id, name: file.name, session_id: file.session, storage_session_id: file.session };
}

function toObject(file: StoredFile): z.infer<typeof objectAnswer> {
  return {
    name: objectName(file),
    originalFilename: file.name,
    size: file.size,
    lastModified: modified(file),
    etag: file.etag,
    contentType: file.contentType,
    readOnly: file.readOnly,
  };
}
