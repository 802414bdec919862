/** Reads a multipart form as a stream: hands over its fields and files one after the other, and never holds a file in memory. */

import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Busboy, type BusboyFileStream, type BusboyInstance } from '@fastify/busboy';
import { CuvetteError, toCuvetteError } from '../../errors.ts';

interface Part {
  field: string;
  filename: string;
  type: string;
  stream: BusboyFileStream;
}

interface FormReader {
  /** Refuses the whole form by throwing. */
  field(name: string, value: string): void;
  /** Reads what it needs of the stream; the rest is discarded. */
  file(part: Part): Promise<void>;
}

const MOST_FILES = 1000;
const MOST_FIELDS = 100;
const LONGEST_FIELD = 64 * 1024;
/** Bytes that are read and discarded after a refusal, because a client reads the answer only once it has sent the rest. */
const MOST_DISCARDED = 256 * 1024 * 1024;
/** Milliseconds that the parser has to finish once it was given everything. */
const PARSER_DEADLINE = 2000;

export async function readForm(request: Request, reader: FormReader): Promise<void> {
  const parser = createParser(request.headers.get('content-type') ?? '');
  if (!request.body) throw cutOff();
  const body = Readable.fromWeb(request.body);
  const streams = new Set<BusboyFileStream>();
  let refusal: CuvetteError | undefined;
  let discarded = 0;
  /** Done when the last file is read, and when those before it are: files are read one after the other. */
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
    // The parser only emits the error; destroying the stream makes its reader fail, too.
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
          // Backpressure: many small files come in one chunk, and would all wait in memory.
          await beforeLast;
        }
        // The parser would wait for ever for the end of a part that was cut off.
        last.then(
          () => setTimeout(() => parser.destroy(cutOff()), PARSER_DEADLINE).unref(),
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

function tooMuch(message: string): CuvetteError {
  return new CuvetteError('too_large', message);
}

function cutOff(cause?: unknown): CuvetteError {
  return new CuvetteError('invalid_input', 'The upload ended before the form was whole. Send it again.', { cause });
}
