/** Handles the file routes: upload, list, look up, download, delete. A caller who may not use a file gets the same 404 as if it did not exist. */

import { open } from 'node:fs/promises';
import { OpenAPIHono, type z } from '@hono/zod-openapi';
import type { Context } from 'hono';
import { CuvetteError } from '../../errors.ts';
import type { StoredFile } from '../../files/file-store.ts';
import { mayUse, resourceOf } from '../../files/sharing.ts';
import { type RestEnv, userOf } from '../caller.ts';
import { downloadResponse } from './file-download.ts';
import * as routes from './file-route-definitions.ts';
import {
  type batchAnswer,
  toBatchFile,
  toFull,
  toNormalized,
  toObject,
  toSummary,
  toUploaded,
} from './file-schemas.ts';
import { refuseInvalid } from './problem.ts';
import { takeUpload, type UploadOptions } from './upload.ts';

export interface FileRouteOptions extends UploadOptions {
  onRemoved?(file: StoredFile): void;
}

export function fileRoutes(options: FileRouteOptions): OpenAPIHono<RestEnv> {
  const { files, onRemoved } = options;

  const isAllowed = (c: Context<RestEnv>, file: StoredFile) =>
    mayUse(file, userOf(c.get('principal')), resourceOf(c.req.query()));
  const find = (c: Context<RestEnv>, { session, file }: z.infer<typeof routes.fileParams>): StoredFile => {
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
    .openapi(routes.upload, async (c) => {
      const { session, files: taken } = await takeUpload(c.req.raw, c.get('principal'), options, { partial: false });
      const stored = taken.flatMap((upload) => ('file' in upload ? [toUploaded(upload)] : []));
      return c.json(
        { message: 'success' as const, session_id: session, storage_session_id: session, files: stored },
        200,
      );
    })
    .openapi(routes.uploadBatch, async (c) => {
      const { session, files: taken } = await takeUpload(c.req.raw, c.get('principal'), options, { partial: true });
      const failed = taken.filter((upload) => 'error' in upload).length;
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
    .openapi(routes.listFiles, (c) => {
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
    .openapi(routes.getObject, (c) => {
      const file = find(c, c.req.valid('param'));
      // LibreChat looks up, once in each turn, the sessions of the files that it will refer to: files removed before count again.
      files.forgetRemovals(file.session);
      return c.json(toObject(file), 200);
    })
    .openapi(routes.removeFile, (c) => c.json(remove(find(c, c.req.valid('param'))), 200))
    .openapi(routes.removeObject, (c) => c.json(remove(find(c, c.req.valid('param'))), 200))
    .openapi(routes.download, async (c) => {
      const file = find(c, c.req.valid('param'));
      const handle = await open(files.pathOf(file)).catch((error: unknown) => {
        throw noFile(error);
      });
      return downloadResponse(c.req.raw, file, handle);
    });
}

function noFile(cause?: unknown): CuvetteError {
  return new CuvetteError('unknown_file', 'There is no such file. GET /files/{session} lists those of a session.', {
    cause,
  });
}
