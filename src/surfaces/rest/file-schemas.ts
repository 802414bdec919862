/** Defines how the file routes describe a file: a schema for each client dialect, and the conversion of a stored file to it. */

import { extname } from 'node:path';
import { z } from '@hono/zod-openapi';
import type { StoredFile } from '../../files/file-store.ts';
import type { Uploaded } from './upload.ts';

export const id = z.string().regex(/^[A-Za-z0-9_-]{21}$/);
const time = z.string().openapi({ format: 'date-time' });
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

export const uploadAnswer = z
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

export const batchAnswer = z
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

export const fileList = z
  .union([z.array(z.string()), z.array(fileSummary), z.array(fullFile), z.array(normalizedFile)])
  .openapi('FileList');

export const objectAnswer = z
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

function modified(file: StoredFile): string {
  return new Date(file.createdAt).toISOString();
}

function objectName(file: StoredFile): string {
  return `${file.session}/${file.id}${extname(file.name)}`;
}

export function toUploaded({ filename, file }: { filename: string; file: StoredFile }): z.infer<typeof uploadedFile> {
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

export function toBatchFile(upload: Uploaded): z.infer<typeof batchFile> {
  if ('file' in upload) return { status: 'success', ...toUploaded(upload) };
  const { code, message } = upload.error;
  const error = code === 'internal' ? 'It could not be stored.' : message;
  return { status: 'error', filename: upload.filename, error };
}

export function toSummary(file: StoredFile): z.infer<typeof fileSummary> {
  return {
    name: objectName(file),
    id: file.id,
    session_id: file.session,
    storage_session_id: file.session,
    size: file.size,
    lastModified: modified(file),
  };
}

export function toFull(file: StoredFile): z.infer<typeof fullFile> {
  return {
    ...toSummary(file),
    resource_id: file.id,
    etag: file.etag,
    contentType: file.contentType,
    readOnly: file.readOnly,
    metadata: { 'original-filename': file.name, 'content-type': file.contentType },
  };
}

export function toNormalized(file: StoredFile): z.infer<typeof normalizedFile> {
  return { id: file.id, name: file.name, session_id: file.session, storage_session_id: file.session };
}

export function toObject(file: StoredFile): z.infer<typeof objectAnswer> {
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
