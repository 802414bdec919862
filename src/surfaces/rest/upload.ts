/** Takes the files of a multipart form straight to the store, one after the other and never whole in memory. */

import { createReadStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { isDeepStrictEqual } from 'node:util';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { CuvetteError, toCuvetteError } from '../../errors.ts';
import type { FileStore, StoredFile } from '../../files/file-store.ts';
import { resourceOf, sharedAs } from '../../files/sharing.ts';
import { type Principal, userOf } from './principal.ts';

export interface UploadOptions {
  files: FileStore;
  /** The session that files go to. */
  sessionFor(entityId: string | undefined, principal: Principal): string;
  limits: {
    /** Bytes that a file may have. */
    upload: number;
    /** Bytes that the files of a session may have together; 0 for no limit. */
    quota: number;
  };
}

export interface Upload {
  session: string;
  files: Uploaded[];
}

/** A file of the form, under the name that it was sent with. */
export type Uploaded = { filename: string } & ({ file: StoredFile } | { error: CuvetteError });

interface Fields {
  entityId: string | undefined;
  readOnly: boolean;
  /** What the files belong to, in the form's words. */
  kind: string;
  id: string;
  version: string;
}

interface Target {
  session: string;
  readOnly: boolean;
  sharedAs: string | undefined;
}

interface Part {
  field: string;
  filename: string;
  type: string;
  stream: BusboyFileStream;
}

interface FormReader {
  /** May refuse the whole form by an error. */
  field(name: string, value: string): void;
  /** Takes what it wants of the stream; the rest is read past. */
  file(part: Part): Promise<void>;
}

const FILE_FIELDS = ['file', 'files', 'files[]'];
const MOST_FILES = 1000;
const MOST_FIELDS = 100;
const LONGEST_FIELD = 64 * 1024;
/** A client hears why its file was refused only once it has sent the rest, so this much of it is read past. */
const MOST_DISCARDED = 256 * 1024 * 1024;

/**
 * If the form is not whole, none of its files stays. If one cannot be taken, none stays either, unless it may be
 * `partial`: then it is told of among the others.
 */
export async function takeUpload(
  request: Request,
  principal: Principal,
  options: UploadOptions,
  { partial }: { partial: boolean },
): Promise<Upload> {
  const taken: Uploaded[] = [];
  const fields: Fields = { entityId: undefined, readOnly: false, kind: '', id: '', version: '' };
  /** Where files go, and what the fields were when the first one came. */
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
          // Not destroyed when it is left early: the parser would wait for it for ever.
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
    // Of what is far too large, the rest is not even read: then the file's own error says more.
    throw refusal?.code === 'too_large' ? refusal : error;
  }
}

function forget(taken: Uploaded[], files: FileStore): void {
  for (const one of taken) if ('file' in one) files.remove(one.file.session, one.file.id);
}

/** Fields may come after the files that they are about. */
async function moved(taken: Uploaded[], target: Target, options: UploadOptions): Promise<Uploaded[]> {
  const result: Uploaded[] = [];
  try {
    for (const one of taken) {
      if ('error' in one) {
        result.push(one);
        continue;
      }
      const { owner, name, contentType } = one.file;
      const source: AsyncIterable<Uint8Array> = createReadStream(options.files.pathOf(one.file));
      const file = await store({ ...target, owner, name, contentType, source }, options);
      result.push({ filename: one.filename, file });
    }
  } catch (error) {
    forget(result, options.files);
    throw error;
  }
  forget(taken, options.files);
  return result;
}

/** Receives a file within the limits of a file and of its session. */
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
  // Others may have arrived meanwhile.
  if (limits.quota === 0 || files.usage(input.session) <= limits.quota) return file;
  files.remove(file.session, file.id);
  throw quotaReached(limits.quota);
}

/** Milliseconds that the parser has to come to its end once it has been given all. */
const PARSER_PATIENCE = 2000;

async function readForm(request: Request, reader: FormReader): Promise<void> {
  const parser = createParser(request.headers.get('content-type') ?? '');
  if (!request.body) throw cutOff();
  const body = Readable.fromWeb(request.body);
  const streams = new Set<BusboyFileStream>();
  let refusal: CuvetteError | undefined;
  let discarded = 0;
  /** The file that came last, and those before it: a file is read once they are done. */
  let last: Promise<void> = Promise.resolve();
  let beforeLast = last;

  const refuse = (error: unknown) => {
    refusal ??= toCuvetteError(error);
  };
  const discard = (chunk: Uint8Array) => {
    discarded += chunk.length;
    if (discarded > MOST_DISCARDED) body.destroy(refusal ?? tooMuch('The files are larger than what is taken.'));
  };

  parser.on('field', (name, value, _nameCut, valueCut) => {
    try {
      if (valueCut) throw tooMuch(`The field ${JSON.stringify(name)} has more than ${LONGEST_FIELD} bytes.`);
      reader.field(name, value);
    } catch (error) {
      refuse(error);
    }
  });
  parser.on('file', (field, stream, filename, _encoding, type) => {
    streams.add(stream);
    // The parser only tells of an error; whoever reads the stream has to meet it, too.
    stream.on('error', (error: Error) => stream.destroy(error));
    beforeLast = last;
    last = last
      .then(() => (refusal ? undefined : reader.file({ field: field ?? '', filename: filename ?? '', type, stream })))
      .finally(() => {
        streams.delete(stream);
        stream.on('data', discard);
      });
  });
  parser.on('filesLimit', () => refuse(tooMuch(`The form has more than ${MOST_FILES} files. Send it in parts.`)));
  parser.on('fieldsLimit', () => refuse(tooMuch(`The form has more than ${MOST_FIELDS} fields.`)));

  try {
    await pipeline(
      body,
      async function* (chunks: AsyncIterable<Uint8Array>) {
        for await (const chunk of chunks) {
          yield chunk;
          // Small files come many to a chunk, and would all wait in memory.
          await beforeLast;
        }
        // A part without an end would keep the parser waiting for ever.
        last.then(
          () => setTimeout(() => parser.destroy(cutOff()), PARSER_PATIENCE).unref(),
          () => {},
        );
      },
      parser,
      { signal: request.signal },
    );
    await last;
  } catch (error) {
    for (const stream of streams) stream.destroy(cutOff(error));
    await last;
    throw error instanceof CuvetteError ? error : cutOff(error);
  }
  if (refusal) throw refusal;
}

function createParser(contentType: string): BusboyInstance {
  if (!/^multipart\/form-data\s*(;|$)/i.test(contentType)) {
    throw new CuvetteError('invalid_input', 'An upload must have the content type multipart/form-data.');
  }
  if (!/;\s*boundary=("[^"]+"|[^\s";]+)/i.test(contentType)) {
    throw new CuvetteError(
      'invalid_input',
      'The content type of the upload names no boundary. Let your client set it.',
    );
  }
  const limits = {
    files: MOST_FILES,
    fields: MOST_FIELDS,
    fieldSize: LONGEST_FIELD,
    headerPairs: 50,
    headerSize: 16 * 1024,
  };
  try {
    return new Busboy({ headers: { 'content-type': contentType }, preservePath: true, limits });
  } catch (error) {
    throw new CuvetteError(
      'invalid_input',
      'The content type of the upload cannot be read. Its boundary may have 70 characters; let your client set it.',
      { cause: error },
    );
  }
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

function tooMuch(message: string): CuvetteError {
  return new CuvetteError('too_large', message);
}

function cutOff(cause?: unknown): CuvetteError {
  return new CuvetteError('invalid_input', 'The upload ended before the form was whole. Send it again.', { cause });
}
