/** Stores the files of an upload: in which session, for whom, within the limits of a file and of a session. */

import { createReadStream } from 'node:fs';
import { isDeepStrictEqual } from 'node:util';
import { CuvetteError, toCuvetteError } from '../../errors.ts';
import type { FileStore, StoredFile } from '../../files/file-store.ts';
import { resourceOf, sharedAs } from '../../files/sharing.ts';
import { type Principal, userOf } from '../caller.ts';
import { readForm } from './multipart-form.ts';

export interface UploadOptions {
  files: FileStore;
  /** Returns the session that files go to. */
  sessionFor(entityId: string | undefined, principal: Principal): string;
  limits: {
    /** Most bytes of a file. */
    upload: number;
    /** Most bytes of all files of a session; 0 for no limit. */
    quota: number;
  };
}

export interface Upload {
  session: string;
  files: Uploaded[];
}

/** What became of a file of the form, under the name that it was sent with. */
export type Uploaded = { filename: string } & ({ file: StoredFile } | { error: CuvetteError });

interface Fields {
  entityId: string | undefined;
  readOnly: boolean;
  /** The agent or skill that the files belong to, as the form writes it. */
  kind: string;
  id: string;
  version: string;
}

interface Target {
  session: string;
  readOnly: boolean;
  sharedAs: string | undefined;
}

const FILE_FIELDS = ['file', 'files', 'files[]'];

/**
 * Keeps no file of a form that is cut off, nor of one with a file that cannot be stored, unless `partial` is set: then that file is
 * reported among the others.
 */
export async function takeUpload(
  request: Request,
  principal: Principal,
  options: UploadOptions,
  { partial }: { partial: boolean },
): Promise<Upload> {
  const taken: Uploaded[] = [];
  const fields: Fields = { entityId: undefined, readOnly: false, kind: '', id: '', version: '' };
  /** Where files go, by the fields that had come before the first file. */
  let first: { target: Target; fields: Fields } | undefined;
  let refusal: CuvetteError | undefined;

  const targetOf = ({ entityId, readOnly, ...resource }: Fields): Target => ({
    session: options.sessionFor(entityId, principal),
    readOnly,
    sharedAs: sharedAs(userOf(principal), resourceOf(resource)),
  });

  try {
    await readForm(request, {
      field(name, value) {
        if (name === 'entity_id' && value !== '') fields.entityId = checkedEntity(value);
        if (name === 'read_only') fields.readOnly = value === 'true' || value === '1';
        if (name === 'kind' || name === 'id' || name === 'version') fields[name] = value;
      },
      async file({ field, filename, type, stream }) {
        if (refusal) return;
        try {
          if (!FILE_FIELDS.includes(field)) throw wrongField(field);
          first ??= { target: targetOf(fields), fields: { ...fields } };
          // A stream that was destroyed early would block the parser for ever.
          const source = stream.iterator({ destroyOnReturn: false });
          const input = { ...first.target, owner: principal.id, name: filename, contentType: type, source };
          taken.push({ filename, file: await store(input, options) });
        } catch (error) {
          if (!partial) refusal = toCuvetteError(error);
          taken.push({ filename, error: toCuvetteError(error) });
        }
      },
    });
    if (refusal) throw refusal;
    if (taken.length === 0) throw new CuvetteError('invalid_input', 'The form has no file. Send one in a part "file".');

    if (first && isDeepStrictEqual(first.fields, fields)) return { session: first.target.session, files: taken };
    const right = targetOf(fields);
    return { session: right.session, files: await moved(taken, right, options) };
  } catch (error) {
    forget(taken, options.files);
    // The rest of a file that is far too large is not read, so the error of the form says less than the file's own.
    throw refusal?.code === 'too_large' ? refusal : error;
  }
}

function forget(taken: Uploaded[], files: FileStore): void {
  for (const upload of taken) if ('file' in upload) files.remove(upload.file.session, upload.file.id);
}

/** Stores files again where they belong, because fields may come after the files that they describe. */
async function moved(taken: Uploaded[], target: Target, options: UploadOptions): Promise<Uploaded[]> {
  const result: Uploaded[] = [];
  try {
    for (const upload of taken) {
      if ('error' in upload) {
        result.push(upload);
        continue;
      }
      const { owner, name, contentType } = upload.file;
      const source: AsyncIterable<Uint8Array> = createReadStream(options.files.pathOf(upload.file));
      const file = await store({ ...target, owner, name, contentType, source }, options);
      result.push({ filename: upload.filename, file });
    }
  } catch (error) {
    forget(result, options.files);
    throw error;
  }
  forget(taken, options.files);
  return result;
}

async function store(
  input: Omit<Parameters<FileStore['receive']>[0], 'limit'>,
  { files, limits }: UploadOptions,
): Promise<StoredFile> {
  const room = limits.quota > 0 ? limits.quota - files.usage(input.session) : Number.POSITIVE_INFINITY;
  if (room < 0) throw quotaReached(limits.quota);
  const file = await files.receive({ ...input, limit: Math.min(limits.upload, room) }).catch((error: unknown) => {
    const isQuota = error instanceof CuvetteError && error.code === 'too_large' && room < limits.upload;
    throw isQuota ? quotaReached(limits.quota) : error;
  });
  // Other files may have been stored meanwhile.
  if (limits.quota === 0 || files.usage(input.session) <= limits.quota) return file;
  files.remove(file.session, file.id);
  throw quotaReached(limits.quota);
}

function checkedEntity(value: string): string {
  if (/^[A-Za-z0-9_-]{1,40}$/.test(value)) return value;
  throw new CuvetteError(
    'invalid_entity',
    'The field entity_id must have 1 to 40 characters, and only letters, digits, - and _.',
  );
}

function wrongField(field: string): CuvetteError {
  return new CuvetteError('invalid_input', `The file is in a part ${JSON.stringify(field)}. Name the part "file".`);
}

function quotaReached(quota: number): CuvetteError {
  return new CuvetteError(
    'storage_full',
    `The files of the session would have more than ${quota} bytes, its limit. Delete files that are not needed.`,
  );
}
