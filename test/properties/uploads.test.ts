import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import { nanoid } from 'nanoid';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CuvetteError } from '../../src/errors.ts';
import { type FileStore, openFileStore, type StoredFile } from '../../src/files/file-store.ts';
import { takeUpload, type Upload } from '../../src/surfaces/rest/upload.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const BOUNDARY = 'xxBOUNDARYxx';
const CLOSING = `\r\n--${BOUNDARY}--`;
const LIMIT = 4000;
/** A run that takes longer hangs. */
const PATIENCE = 60_000;

interface Part {
  name: string;
  body: Uint8Array;
}

/** A form, how it is cut, and what happened to it on its way. */
interface Changed {
  parts: Part[];
  cuts: number[];
  changes: { at: number; removed: number; junk: Uint8Array }[];
  partial: boolean;
}

/** Content as it comes, and as it is hard to cut: pieces of the boundary and of line ends. */
const body = fc
  .array(
    fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc
        .constantFrom('\r\n', '\r', '\n', '--', `\r\n--${BOUNDARY.slice(0, 5)}`, `--${BOUNDARY.slice(0, -1)}`)
        .map((text) => Buffer.from(text)),
    ),
    { maxLength: 8 },
  )
  .map((pieces) => new Uint8Array(Buffer.concat(pieces)))
  .filter((bytes) => !Buffer.from(bytes).includes(`--${BOUNDARY}`));
const name = fc.oneof(
  fc.constantFrom('a.txt', 'skills/x/a.md', 'données 1.txt', '数据/报告.csv', '👩‍🔬.md', "it's (1).txt", 'a%20b;c.txt'),
  fc.stringMatching(/^[a-z]{1,8}(\/[a-z]{1,8}){0,2}\.txt$/),
);
const parts = fc.array(fc.record({ name, body }), { minLength: 1, maxLength: 4 });
const hostile = fc
  .array(fc.constantFrom('..', '/', '\\', '/etc/passwd', '%2e%2e', '\\"', 'a', '.', ' ', ';', "''", 'é'), {
    maxLength: 6,
  })
  .map((pieces) => pieces.join(''));
/** Places in a form, each as a share of the whole. */
const share = fc.noBias(fc.nat(10_000)).map((number) => number / 10_000);
const cuts = fc.array(share, { maxLength: 25 });

function formOf(all: Part[]): Buffer {
  const pieces = all.flatMap(({ name, body }) => [
    `\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n`,
    'Content-Type: application/octet-stream\r\n\r\n',
    body,
  ]);
  return Buffer.concat([...pieces, `${CLOSING}\r\n`].map((piece) => Buffer.from(piece))).subarray(2);
}

function cut(form: Buffer, at: number[]): ReadableStream<Uint8Array> {
  const edges = [0, ...at.map((share) => Math.floor(share * form.length)).sort((a, b) => a - b), form.length];
  const pieces = edges.slice(1).map((end, index) => new Uint8Array(form.subarray(edges[index], end)));
  return ReadableStream.from(pieces.filter((piece) => piece.length > 0));
}

function start() {
  const folder = temporaryFolder();
  const files = openFileStore({ folder: join(folder, 'files') });
  onTestFinished(() => files.close());

  /** What came of it, and in which session it was. */
  async function send(
    stream: ReadableStream<Uint8Array>,
    { partial = false, boundary = BOUNDARY } = {},
  ): Promise<{ session: string; upload?: Upload; error?: unknown }> {
    const session = nanoid();
    const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` };
    const init = { method: 'POST', body: stream, headers, duplex: 'half' as const };
    const options = { files, sessionFor: () => session, limits: { upload: LIMIT, quota: 3 * LIMIT } };
    try {
      const request = new Request('http://localhost/upload', init);
      return { session, upload: await takeUpload(request, { id: 'ada', kind: 'key' }, options, { partial }) };
    } catch (error) {
      return { session, error };
    }
  }

  /** That nothing stands where nothing belongs: beside the store, among what is on its way, or without a row. */
  async function expectOrder(): Promise<void> {
    expect(readdirSync(folder)).toEqual(['files']);
    const known = ['files.db', 'files.db-shm', 'files.db-wal', 'incoming', 'objects'];
    expect(readdirSync(join(folder, 'files')).filter((entry) => !known.includes(entry))).toEqual([]);
    const spooled = readdirSync(join(folder, 'files', 'incoming'), { recursive: true, withFileTypes: true });
    expect(spooled.filter((entry) => entry.isFile()).map((entry) => entry.name)).toEqual([]);
    await expect.poll(() => withoutRow(join(folder, 'files', 'objects'), files), { timeout: PATIENCE }).toEqual([]);
  }
  return { files, send, expectOrder };
}

function withoutRow(objects: string, files: FileStore): string[] {
  return readdirSync(objects).flatMap((session) => {
    const ids = existsSync(join(objects, session)) ? readdirSync(join(objects, session)) : [];
    return ids.filter((id) => !files.get(session, id)).map((id) => join(session, id));
  });
}

function contentOf(files: FileStore, file: StoredFile): Buffer {
  const bytes = readFileSync(files.pathOf(file));
  expect(bytes.length).toBe(file.size);
  return bytes;
}

/** A refusal that a client can do something about; and nothing of the form has stayed. */
function expectRefused(files: FileStore, { session, error }: { session: string; error?: unknown }): void {
  if (!(error instanceof CuvetteError)) throw new Error('it is no clear error', { cause: error });
  expect(['invalid_input', 'invalid_entity', 'too_large', 'storage_full']).toContain(error.code);
  expect(error.message.length).toBeGreaterThan(10);
  expect(files.list(session)).toEqual([]);
}

/** Not made smaller when it fails: each try at a form that hangs takes all the patience there is. */
const options = (numRuns: number) => ({ numRuns, timeout: PATIENCE, endOnFailure: true });

describe('an upload', () => {
  it('has every file with every byte, however it is cut', async () => {
    const { files, send, expectOrder } = start();
    await fc.assert(
      fc.asyncProperty(parts, cuts, async (all, at) => {
        const { session, upload, error } = await send(cut(formOf(all), at));
        const isTooLarge = all.some(({ body }) => body.length > LIMIT);
        if (isTooLarge || !upload) return expectRefused(files, { session, error: isTooLarge ? error : undefined });
        const stored = upload.files.map((one) => ('file' in one ? one.file : undefined));
        expect(stored.map((file) => file?.name)).toEqual(all.map((one) => one.name.normalize('NFC')));
        for (const [index, file] of stored.entries()) {
          if (file) expect(contentOf(files, file).equals(all[index]?.body ?? Buffer.alloc(0))).toBe(true);
        }
        expect(files.list(session)).toEqual(stored);
      }),
      options(60),
    );
    await expectOrder();
  });

  it('that ends early is refused, wherever that is', async () => {
    const { files, send, expectOrder } = start();
    await fc.assert(
      fc.asyncProperty(parts, cuts, share, async (all, at, share) => {
        const form = formOf(all);
        const end = Math.floor(share * (form.lastIndexOf(CLOSING) + CLOSING.length - 1));
        expectRefused(files, await send(cut(form.subarray(0, end), at)));
      }),
      options(60),
    );
    await expectOrder();
  });

  it('that was changed on its way is taken or refused as a whole, and never hangs', async () => {
    const { files, send, expectOrder } = start();
    const junk = fc.oneof(
      fc.uint8Array({ minLength: 1, maxLength: 40 }),
      fc
        .constantFrom(`\r\n--${BOUNDARY}\r\n`, CLOSING, '\r\n\r\n', '\0', 'Content-Disposition: form-data', '"', ';')
        .map((text) => new Uint8Array(Buffer.from(text))),
    );
    const change = fc.record({ at: share, removed: fc.nat(30), junk });
    const form = fc.record({
      parts,
      cuts,
      changes: fc.array(change, { minLength: 1, maxLength: 4 }),
      partial: fc.boolean(),
    });
    // All at once: some of them are given up only after a while.
    await fc.assert(
      fc.asyncProperty(fc.array(form, { minLength: 100, maxLength: 100 }), async (forms) => {
        await Promise.all(forms.map(expectTakenOrRefused));
      }),
      options(1),
    );
    await expectOrder();

    async function expectTakenOrRefused({ parts, cuts, changes, partial }: Changed): Promise<void> {
      let bytes = formOf(parts);
      for (const { at, removed, junk } of changes) {
        const place = Math.floor(at * bytes.length);
        bytes = Buffer.concat([bytes.subarray(0, place), junk, bytes.subarray(place + removed)]);
      }
      const { session, upload, error } = await send(cut(bytes, cuts), { partial });
      if (!upload) return expectRefused(files, { session, error });
      const stored = upload.files.flatMap((one) => ('file' in one ? [one.file] : []));
      if (!partial) expect(stored.length).toBe(upload.files.length);
      expect(files.list(session)).toEqual(stored);
      for (const file of stored) contentOf(files, file);
    }
  });

  it('of nothing but junk is refused', async () => {
    const { files, send, expectOrder } = start();
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ minLength: 1, maxLength: 3000 }), cuts, async (bytes, at) => {
        expectRefused(files, await send(cut(Buffer.from(bytes), at)));
      }),
      options(60),
    );
    await expectOrder();
  });

  it('with any boundary is taken or refused', async () => {
    const { files, send, expectOrder } = start();
    const boundary = fc.oneof(
      fc.string({ unit: 'binary-ascii', minLength: 1, maxLength: 80 }),
      fc.constantFrom('"', '""', '"x', '-', '--', BOUNDARY.slice(0, -1), `"${BOUNDARY}"`, `${BOUNDARY}; x=y`),
    );
    await fc.assert(
      fc.asyncProperty(boundary.filter(isHeader), parts, async (boundary, all) => {
        const { session, upload, error } = await send(cut(formOf(all), []), { boundary });
        if (!upload) expectRefused(files, { session, error });
      }),
      options(60),
    );
    await expectOrder();
  });

  it('of files with hostile names stays in the store', async () => {
    const { files, send, expectOrder } = start();
    await fc.assert(
      fc.asyncProperty(fc.array(hostile, { minLength: 1, maxLength: 3 }), async (names) => {
        const all = names.map((name) => ({ name, body: Buffer.from('x') }));
        const { session, upload } = await send(cut(formOf(all), []), { partial: true });
        if (!upload) return;
        for (const { name } of files.list(session)) expect(join('/root/of/it', name)).toBe(`/root/of/it/${name}`);
      }),
      options(80),
    );
    await expectOrder();
  });
});

function isHeader(value: string): boolean {
  try {
    return new Headers({ x: `a; b=${value}` }).has('x');
  } catch {
    return false;
  }
}
