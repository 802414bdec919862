import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { type ClientRequest, request as httpRequest, type IncomingMessage } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { serve } from '@hono/node-server';
import { OpenAPIHono } from '@hono/zod-openapi';
import fc from 'fast-check';
import { nanoid } from 'nanoid';
import { describe, expect, it, onTestFinished } from 'vitest';
import { CuvetteError } from '../../../src/errors.ts';
import { openFileStore, type StoredFile } from '../../../src/files/file-store.ts';
import { packageFile } from '../../../src/package-root.ts';
import type { RestEnv } from '../../../src/surfaces/caller.ts';
import { fileRoutes } from '../../../src/surfaces/rest/file-routes.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

const ID = /^[A-Za-z0-9_-]{21}$/;
const BOUNDARY = 'xxBOUNDARYxx';

interface Answer {
  message: string;
  session_id: string;
  storage_session_id: string;
  files: {
    id: string;
    session_id: string;
    name: string;
    filename: string;
    size: number;
    lastModified: string;
    etag: string;
  }[];
}

async function read(response: Response | Promise<Response>): Promise<Answer> {
  return JSON.parse(await (await response).text());
}

interface FormPart {
  name: string;
  filename?: string;
  type?: string;
  body: string | Uint8Array;
}

const file = (filename: string, body: string | Uint8Array = 'text', more: Partial<FormPart> = {}): FormPart => ({
  name: 'file',
  filename,
  type: 'text/plain',
  body,
  ...more,
});
const field = (name: string, body: string): FormPart => ({ name, body });

/** A form as its bytes, for what no client would send. */
function formBytes(parts: FormPart[], end = `--${BOUNDARY}--\r\n`): Buffer {
  const pieces = parts.flatMap(({ name, filename, type, body }) => [
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"`,
    filename === undefined ? '' : `; filename="${filename}"`,
    type === undefined ? '' : `\r\nContent-Type: ${type}`,
    '\r\n\r\n',
    body,
    '\r\n',
  ]);
  return Buffer.concat([...pieces, end].map((piece) => Buffer.from(piece)));
}

function start(different: { upload?: number; quota?: number } = {}) {
  const folder = join(temporaryFolder(), 'files');
  const files = openFileStore({ folder });
  onTestFinished(() => files.close());
  const removed: StoredFile[] = [];
  const entities = new Map<string, string>();
  const app = new OpenAPIHono<RestEnv>();
  app.use(async (c, next) => {
    c.set('principal', { id: c.req.header('x-user') ?? 'ada', kind: 'key' });
    await next();
  });
  app.onError((error, c) => {
    if (!(error instanceof CuvetteError)) return c.text(String(error.stack), 500);
    return Response.json({ code: error.code, detail: error.message }, { status: error.status });
  });
  app.route(
    '/v1',
    fileRoutes({
      files,
      sessionFor: (entity, { id }) => {
        if (entity === undefined) return nanoid();
        const known = entities.get(`${id} ${entity}`) ?? nanoid();
        entities.set(`${id} ${entity}`, known);
        return known;
      },
      onRemoved: (one) => removed.push(one),
      limits: { upload: different.upload ?? 10_000_000, quota: different.quota ?? 0 },
    }),
  );

  const call = (path: string, init: RequestInit = {}) => app.request(`/v1${path}`, init);
  const post = (path: string, body: Uint8Array | ReadableStream, type = `multipart/form-data; boundary=${BOUNDARY}`) =>
    call(path, { method: 'POST', body, headers: { 'content-type': type }, duplex: 'half' } as RequestInit);
  const upload = (...parts: FormPart[]) => read(post('/upload', formBytes(parts)));
  /** Uploads one file; gives the path of it. */
  const stored = async (...part: Parameters<typeof file>): Promise<string> => {
    const answer = await upload(file(...part));
    return `${answer.session_id}/${answer.files[0]?.id}`;
  };
  return { app, files, folder, removed, call, post, upload, stored };
}

function bytesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.name.startsWith('files.db'))
    .map((entry) => join(entry.parentPath, entry.name));
}

async function problem(
  answer: Response | Promise<Response>,
): Promise<{ status: number; code: string; detail: string }> {
  const response = await answer;
  return { ...JSON.parse(await response.text()), status: response.status };
}

/** A server on a port of its own, for what only a connection can show. */
async function listen(app: OpenAPIHono<RestEnv>): Promise<number> {
  const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' });
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}

describe('POST /upload', () => {
  it('answers in every dialect at once', async () => {
    const { upload, files } = start();
    const answer = await upload(field('kind', 'user'), field('id', '64b7'), file('sub/dir/données_1.txt', 'hello'));
    const [one] = answer.files;
    expect(answer).toEqual({
      message: 'success',
      session_id: expect.stringMatching(ID),
      storage_session_id: answer.session_id,
      files: [
        {
          id: expect.stringMatching(ID),
          fileId: one?.id,
          name: 'sub/dir/données_1.txt',
          filename: 'sub/dir/données_1.txt',
          session_id: answer.session_id,
          storage_session_id: answer.session_id,
          path: '/mnt/data/sub/dir/données_1.txt',
          size: 5,
          lastModified: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
          etag: createHash('sha256').update('hello').digest('hex').slice(0, 32),
          contentType: 'text/plain',
          metadata: { 'original-filename': 'sub/dir/données_1.txt' },
        },
      ],
    });
    const [kept] = files.list(answer.session_id);
    expect(kept).toMatchObject({ owner: 'ada', readOnly: false, origin: 'upload' });
    expect(kept && readFileSync(files.pathOf(kept), 'utf8')).toBe('hello');
  });

  it('takes what fetch and FormData send', async () => {
    const { call } = start();
    const form = new FormData();
    form.set('entity_id', 'e');
    form.append('files', new Blob([new Uint8Array([0, 1, 2, 255])]), '🧪 a b.bin');
    const answer = await read(call('/upload', { method: 'POST', body: form }));
    expect(answer.files[0]).toMatchObject({ name: '🧪 a b.bin', size: 4, contentType: 'application/octet-stream' });
  });

  it('gives the name back as it was sent, and stores it in one form', async () => {
    const { upload } = start();
    const { files } = await upload(file('/mnt/data/./e\u0301.txt'));
    expect(files[0]).toMatchObject({ filename: '/mnt/data/./e\u0301.txt', name: 'é.txt', path: '/mnt/data/é.txt' });
  });

  it('takes several files, in parts of any of the three names', async () => {
    const { upload, files } = start();
    const answer = await upload(
      file('a.txt'),
      file('b.txt', '', { name: 'files' }),
      file('a.txt', 'again', { name: 'files[]' }),
    );
    expect(answer.files.map((one) => [one.name, one.size])).toEqual([
      ['a.txt', 4],
      ['b.txt', 0],
      ['a.txt', 5],
    ]);
    expect(files.list(answer.session_id)).toHaveLength(3);
  });

  it('puts the files of an entity in one session, and those of none in a new one', async () => {
    const { upload } = start();
    const first = await upload(field('entity_id', 'agent_1'), file('a.txt'));
    const second = await upload(field('entity_id', 'agent_1'), file('b.txt'));
    const third = await upload(file('c.txt'));
    expect(second.session_id).toBe(first.session_id);
    expect(third.session_id).not.toBe(first.session_id);
  });

  it('heeds fields that come after the file', async () => {
    const { upload, files, folder } = start();
    const first = await upload(field('entity_id', 'agent_1'), file('a.txt'));
    const late = await upload(file('b.txt', 'late'), field('entity_id', 'agent_1'), field('read_only', 'true'));
    expect(late.session_id).toBe(first.session_id);
    const [, kept] = files.list(first.session_id);
    expect(kept).toMatchObject({ id: late.files[0]?.id, name: 'b.txt', readOnly: true, contentType: 'text/plain' });
    expect(kept && readFileSync(files.pathOf(kept), 'utf8')).toBe('late');
    await expect.poll(() => bytesIn(folder)).toHaveLength(2);
  });

  it('keeps bytes that look like the boundary', async () => {
    const { upload, files } = start();
    const tricky = Buffer.concat([Buffer.from(`\r\n--${BOUNDARY.slice(0, -1)}\r\n--`), randomBytes(300_000)]);
    const answer = await upload(file('a.bin', tricky));
    const [kept] = files.list(answer.session_id);
    expect(kept && readFileSync(files.pathOf(kept)).equals(tricky)).toBe(true);
  });

  it.each([
    ['../../etc/passwd', '".."'],
    ['/etc/passwd', 'absolute'],
    ['a\u0007.txt', 'control'],
    ['x\u202etxt.exe', 'direction'],
    ['', 'empty'],
    [`${'x'.repeat(300)}.txt`, '255 bytes'],
  ])('refuses the name %j', async (name, why) => {
    const { post, folder } = start();
    const answer = await problem(post('/upload', formBytes([file(name)])));
    expect(answer).toMatchObject({ status: 400, code: 'invalid_input', detail: expect.stringContaining(why) });
    expect(bytesIn(folder)).toEqual([]);
  });

  it.each(['a b', 'ä', 'x'.repeat(41), '../x'])('refuses the entity %j', async (entity) => {
    const { post, folder } = start();
    for (const parts of [
      [field('entity_id', entity), file('a.txt')],
      [file('a.txt'), field('entity_id', entity)],
    ]) {
      const answer = await problem(post('/upload', formBytes(parts)));
      expect(answer).toMatchObject({ status: 422, code: 'invalid_entity' });
    }
    await expect.poll(() => bytesIn(folder)).toEqual([]);
  });

  it('refuses a file that is too large, and stores none of the others', async () => {
    const { post, folder } = start({ upload: 100_000 });
    const large = file('b.bin', Buffer.alloc(3_000_000));
    const answer = await problem(post('/upload', formBytes([file('a.txt'), large, file('c.txt')])));
    expect(answer).toMatchObject({ status: 413, code: 'too_large', detail: expect.stringContaining('100000 bytes') });
    await expect.poll(() => bytesIn(folder)).toEqual([]);
  });

  it('takes a file of exactly the limit', async () => {
    const { upload } = start({ upload: 100_000 });
    expect((await upload(file('a.bin', Buffer.alloc(100_000)))).message).toBe('success');
  });

  it('refuses what goes over the quota of a session', async () => {
    const { post, upload, folder } = start({ quota: 1000 });
    await upload(field('entity_id', 'e'), file('a.bin', Buffer.alloc(900)));
    const over = formBytes([field('entity_id', 'e'), file('b.bin', Buffer.alloc(101))]);
    expect(await problem(post('/upload', over))).toMatchObject({
      status: 507,
      code: 'storage_full',
      detail: expect.stringContaining('1000 bytes'),
    });
    expect((await upload(field('entity_id', 'e'), file('c.bin', Buffer.alloc(100)))).message).toBe('success');
    await expect.poll(() => bytesIn(folder)).toHaveLength(2);
  });

  it('holds the quota when files arrive at the same time', async () => {
    const { post, upload, files } = start({ quota: 1000 });
    const { session_id } = await upload(field('entity_id', 'e'), file('first', 'x'));
    const form = formBytes([field('entity_id', 'e'), file('b.bin', Buffer.alloc(400))]);
    const answers = await Promise.all(Array.from({ length: 8 }, () => post('/upload', form)));
    expect(files.usage(session_id)).toBeLessThanOrEqual(1000);
    expect(answers.filter(({ status }) => status === 507).length).toBeGreaterThanOrEqual(6);
  });

  it.each([
    ['no file', formBytes([field('kind', 'user')]), undefined, '"file"'],
    [
      'a file in a part of another name',
      formBytes([file('a', 'b', { name: 'attachment' })]),
      undefined,
      '"attachment"',
    ],
    ['a file part without a file name', formBytes([field('file', 'text')]), undefined, '"file"'],
    ['an empty form', Buffer.from(`--${BOUNDARY}--\r\n`), undefined, '"file"'],
    ['an empty body', Buffer.alloc(0), undefined, 'whole'],
    ['no boundary', formBytes([file('a')]), 'multipart/form-data', 'boundary'],
    ['an empty boundary', formBytes([file('a')]), 'multipart/form-data; boundary=', 'boundary'],
    ['a boundary that is too long', formBytes([file('a')]), `multipart/form-data; boundary=${'b'.repeat(257)}`, '70'],
    ['another boundary', formBytes([file('a')]), 'multipart/form-data; boundary=other', 'whole'],
    ['another content type', Buffer.from('{}'), 'application/json', 'multipart/form-data'],
    ['a form of the other kind', Buffer.from('file=a'), 'application/x-www-form-urlencoded', 'multipart/form-data'],
    ['no end', formBytes([file('a')], ''), undefined, 'whole'],
    [
      'an end in the middle of a file',
      formBytes([file('a', 'b'.repeat(500_000))]).subarray(0, 400_000),
      undefined,
      'whole',
    ],
    ['an end in the middle of a header', formBytes([file('a'), file('b')]).subarray(0, 140), undefined, 'whole'],
    ['a field that is too long', formBytes([field('kind', 'x'.repeat(70_000)), file('a')]), undefined, '65536 bytes'],
    ['too many fields', formBytes([...Array(101).fill(field('a', 'b')), file('a')]), undefined, '100 fields'],
  ])('refuses %s', async (_what, body, type, why) => {
    const { post, folder } = start();
    for (const path of ['/upload', '/upload/batch']) {
      const response = await post(path, body, type);
      const text = await response.text();
      expect([400, 413]).toContain(response.status);
      expect(JSON.parse(text).detail ?? JSON.parse(text).files[0].error).toContain(why);
    }
    await expect.poll(() => bytesIn(folder)).toEqual([]);
  });

  it('refuses ten thousand files, and keeps none', async () => {
    const { post, folder } = start();
    const form = formBytes(Array(10_000).fill(file('a.txt', 'x')));
    expect(await problem(post('/upload/batch', form))).toMatchObject({
      status: 413,
      detail: expect.stringContaining('1000 files'),
    });
    await expect.poll(() => bytesIn(folder)).toEqual([]);
  });

  it('has the same files however the form is cut on its way', async () => {
    const { post, files } = start();
    const bodies = [Buffer.from('\r\n--xxBOUND'), Buffer.alloc(0), randomBytes(3000)];
    const form = formBytes([field('read_only', 'true'), ...bodies.map((body, n) => file(`é/${n}`, body))]);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat(form.length), { maxLength: 20 }), async (cuts) => {
        const edges = [0, ...cuts.sort((a, b) => a - b), form.length];
        const pieces = edges.slice(1).map((end, n) => new Uint8Array(form.subarray(edges[n], end)));
        const body = ReadableStream.from(pieces.filter((piece) => piece.length > 0));
        const answer = await read(post('/upload', body));
        const kept = files.list(answer.session_id);
        expect(kept.map((one) => [one.name, one.readOnly])).toEqual([0, 1, 2].map((n) => [`é/${n}`, true]));
        for (const [n, one] of kept.entries()) expect(readFileSync(files.pathOf(one))).toEqual(bodies[n]);
      }),
      { numRuns: 60 },
    );
  });

  it('stops reading a file that goes on and on', async () => {
    const { post, folder } = start({ upload: 1000 });
    const [head = ''] = formBytes([file('endless', 'CONTENT')])
      .toString()
      .split('CONTENT');
    const zeros = new Uint8Array(1_000_000);
    let sent = 0;
    const endless = new ReadableStream({
      start: (controller) => controller.enqueue(Buffer.from(head)),
      pull(controller) {
        sent += zeros.length;
        controller.enqueue(zeros);
      },
    });
    expect(await problem(post('/upload', endless))).toMatchObject({
      status: 413,
      detail: expect.stringContaining('1000 bytes'),
    });
    expect(sent).toBeLessThan(300_000_000);
    expect(bytesIn(folder)).toEqual([]);
  });

  it('stores nothing of a form that breaks off', async () => {
    const { post, folder } = start();
    const form = formBytes([file('a.txt'), file('b.bin', randomBytes(200_000))]);
    const half = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(form.subarray(0, 100_000)));
      },
      pull(controller) {
        controller.error(new Error('connection lost'));
      },
    });
    expect((await post('/upload', half)).status).toBe(400);
    await expect.poll(() => bytesIn(folder)).toEqual([]);
  });

  it('stores nothing when the client hangs up', async () => {
    const { app, folder } = start();
    const socket = connect(await listen(app), '127.0.0.1');
    socket.on('error', () => {});
    const form = formBytes([file('a.txt'), file('b.bin', randomBytes(200_000))]);
    socket.write(
      `POST /v1/upload HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=${BOUNDARY}\r\nContent-Length: ${form.length}\r\n\r\n`,
    );
    socket.write(form.subarray(0, 150_000));
    await expect.poll(() => bytesIn(folder).length).toBeGreaterThanOrEqual(2);
    socket.destroy();
    await expect.poll(() => bytesIn(folder)).toEqual([]);
  });

  it('lets a client over a connection hear why its large file was refused', async () => {
    const { app } = start({ upload: 1000 });
    const form = formBytes([file('a.bin', Buffer.alloc(100_000_000))]);
    const sent = httpRequest({ port: await listen(app), method: 'POST', path: '/v1/upload' });
    sent.setHeader('content-type', `multipart/form-data; boundary=${BOUNDARY}`);
    sent.end(form);
    const [response] = (await once(sent, 'response')) as [IncomingMessage];
    expect(response.statusCode).toBe(413);
    response.resume();
  });
});

describe('POST /upload/batch', () => {
  it('stores the files of a skill', async () => {
    const { post, files } = start();
    const names = ['skills/x/SKILL.md', 'skills/x/ref/a.md', 'skills/x/ref/schema.xsd'];
    const parts = [field('kind', 'skill'), field('id', '1'), field('version', '3'), field('read_only', 'true')];
    const response = await post('/upload/batch', formBytes([...parts, ...names.map((name) => file(name))]));
    const answer = await read(response);
    expect(response.status).toBe(200);
    expect(answer).toMatchObject({
      message: 'success',
      succeeded: 3,
      failed: 0,
      session_id: answer.storage_session_id,
    });
    expect(answer.files.map((one) => one.filename)).toEqual(names);
    for (const one of answer.files) expect(one).toMatchObject({ status: 'success', fileId: expect.stringMatching(ID) });
    expect(files.list(answer.session_id).map((one) => [one.name, one.readOnly])).toEqual(
      names.map((name) => [name, true]),
    );
  });

  it('stores what it can, and says what it could not', async () => {
    const { post, files } = start({ upload: 100_000 });
    const parts = [file('a.txt'), file('../b.txt'), file('c.bin', Buffer.alloc(2_000_000)), file('d.txt')];
    const response = await post('/upload/batch', formBytes(parts));
    const answer = await read(response);
    expect(response.status).toBe(200);
    expect(answer).toMatchObject({ message: 'partial_success', succeeded: 2, failed: 2 });
    expect(answer.files).toMatchObject([
      { status: 'success', filename: 'a.txt' },
      { status: 'error', filename: '../b.txt', error: expect.stringContaining('".."') },
      { status: 'error', filename: 'c.bin', error: expect.stringContaining('100000 bytes') },
      { status: 'success', filename: 'd.txt' },
    ]);
    expect(files.list(answer.storage_session_id)).toHaveLength(2);
  });

  it('fails when no file can be stored', async () => {
    const { post } = start();
    const response = await post('/upload/batch', formBytes([file('../a'), file('../b')]));
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({
      message: 'error',
      succeeded: 0,
      failed: 2,
      storage_session_id: expect.stringMatching(ID),
    });
  });

  it('takes many small files in their order', async () => {
    const { post, files } = start();
    const names = Array.from({ length: 300 }, (_, count) => `skills/s/${count}.md`);
    const answer = await read(
      post('/upload/batch', formBytes(names.map((name) => file(name, `${name} `.repeat(100))))),
    );
    expect(answer).toMatchObject({ message: 'success', succeeded: 300 });
    const kept = files.list(answer.session_id);
    expect(kept.map((one) => one.name)).toEqual(names);
    for (const one of kept) expect(readFileSync(files.pathOf(one), 'utf8')).toBe(`${one.name} `.repeat(100));
  });
});

describe('GET /files/{session}', () => {
  it('lists in each of the four forms', async () => {
    const { call, upload } = start();
    const { session_id: session, files } = await upload(file('in/a.csv', 'x'));
    const { id, lastModified, etag } = files[0] ?? {};
    const list = async (query: string) => (await call(`/files/${session}${query}`)).json();
    expect(await list('')).toEqual([`${session}/${id}`]);
    expect(await list('?detail=simple&kind=user&id=1&id=2&version=3')).toEqual([`${session}/${id}`]);
    const summary = {
      name: `${session}/${id}.csv`,
      id,
      session_id: session,
      storage_session_id: session,
      size: 1,
      lastModified,
    };
    expect(await list('?detail=summary&entity_id=e')).toEqual([summary]);
    expect(await list('?detail=full')).toEqual([
      {
        ...summary,
        resource_id: id,
        etag,
        contentType: 'text/plain',
        readOnly: false,
        metadata: { 'original-filename': 'in/a.csv', 'content-type': 'text/plain' },
      },
    ]);
    expect(await list('?detail=normalized')).toEqual([
      { id, name: 'in/a.csv', session_id: session, storage_session_id: session },
    ]);
  });

  it('is empty for a session that does not exist or is not yours', async () => {
    const { call, upload } = start();
    const { session_id } = await upload(file('a.txt'));
    for (const response of [
      await call(`/files/${nanoid()}?detail=full`),
      await call(`/files/${session_id}`, { headers: { 'x-user': 'eve' } }),
    ]) {
      expect(response.status).toBe(200);
      expect(await response.json()).toEqual([]);
    }
  });

  it('says what is wrong with a detail that it does not know', async () => {
    const { call } = start();
    const response = await call(`/files/${nanoid()}?detail=everything`);
    expect(response.status).toBe(400);
    expect(await response.text()).toContain('detail');
  });
});

describe('GET /sessions/{session}/objects/{file}', () => {
  it('tells what is known of a file', async () => {
    const { call, upload } = start();
    const { session_id, files } = await upload(
      field('read_only', 'true'),
      file('sub/a.b.csv', 'x', { type: 'text/csv' }),
    );
    const { id, etag, lastModified } = files[0] ?? {};
    expect(await (await call(`/sessions/${session_id}/objects/${id}?kind=user&id=64b7`)).json()).toEqual({
      name: `${session_id}/${id}.csv`,
      originalFilename: 'sub/a.b.csv',
      size: 1,
      lastModified,
      etag,
      contentType: 'text/csv',
      readOnly: true,
    });
  });
});

describe('deleting a file', () => {
  it.each(['files/SESSION/FILE', 'sessions/SESSION/objects/FILE'])('works by DELETE /%s', async (route) => {
    const { call, stored, removed, folder } = start();
    const [session = '', id = ''] = (await stored('a.txt')).split('/');
    const path = `/${route.replace('SESSION', session).replace('FILE', id)}?kind=user&id=64b7`;
    const response = await call(path, { method: 'DELETE' });
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({ status: 'deleted' });
    expect(removed).toMatchObject([{ id, session, name: 'a.txt' }]);
    expect((await call(path, { method: 'DELETE' })).status).toBe(404);
    expect((await call(`/download/${session}/${id}`)).status).toBe(404);
    await expect.poll(() => bytesIn(folder)).toEqual([]);
  });
});

describe('a file that is not there, is not yours, or has no such id', () => {
  it('is answered with the same 404 on every route', async () => {
    const { call, stored } = start();
    const mine = await stored('a.txt');
    const [session, id] = mine.split('/');
    const eve = { headers: { 'x-user': 'eve' } };
    const missing = await (await call(`/download/${session}/${nanoid()}`)).text();
    const asked: [string, RequestInit][] = [
      [mine, eve],
      [`${nanoid()}/${id}`, {}],
      [`${session}/${nanoid()}`, {}],
      [`${session}/short`, {}],
      [`${session}/..%2f..%2ffiles.db`, {}],
      [`..%2f..%2f/${id}`, {}],
      [`${session}/${id}%00`, {}],
    ];
    for (const [path, init] of asked) {
      const [first, second] = path.split('/');
      for (const [method, url] of [
        ['GET', `/download/${path}`],
        ['HEAD', `/download/${path}`],
        ['GET', `/sessions/${first}/objects/${second}`],
        ['DELETE', `/sessions/${first}/objects/${second}`],
        ['DELETE', `/files/${path}`],
      ] as const) {
        const response = await call(url, { ...init, method });
        expect([url, response.status]).toEqual([url, 404]);
        if (method !== 'HEAD') expect(await response.text()).toBe(missing);
      }
    }
    expect((await call(`/download/${mine}`)).status).toBe(200);
    expect(await (await call('/files/short')).text()).toBe('[]');
  });
});

describe('GET /download/{session}/{file}', () => {
  it('gives the bytes, with all that a client needs', async () => {
    const { call, stored } = start();
    const bytes = randomBytes(400_000);
    const path = await stored('sub/plot.png', bytes, { type: 'image/png' });
    const response = await call(`/download/${path}?kind=user&id=64b7`);
    expect(response.status).toBe(200);
    expect(Buffer.from(await response.arrayBuffer()).equals(bytes)).toBe(true);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'accept-ranges': 'bytes',
      'content-disposition': "attachment; filename*=UTF-8''plot.png",
      'content-length': '400000',
      'content-security-policy': 'sandbox',
      'content-type': 'image/png',
      etag: `"${createHash('sha256').update(bytes).digest('hex').slice(0, 32)}"`,
      'x-content-type-options': 'nosniff',
    });
  });

  it('gives empty files', async () => {
    const { call, stored } = start();
    const response = await call(`/download/${await stored('empty', '')}`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-length')).toBe('0');
    expect(await response.text()).toBe('');
  });

  it.each([
    ['a.html', 'text/html'],
    ['a.svg', 'image/svg+xml'],
    ['a.xml', 'application/xml'],
    ['a.xhtml', 'application/xhtml+xml'],
    ['a.js', 'text/javascript'],
    ['a.bin', 'TEXT/HTML; charset=utf-8'],
    ['a.html', 'application/octet-stream'],
  ])('never has a browser render %s of the type %s', async (name, type) => {
    const { call, stored } = start();
    const response = await call(`/download/${await stored(name, '<script>alert(1)</script>', { type })}`);
    expect(response.headers.get('content-type')).toBe('application/octet-stream');
    expect(response.headers.get('content-disposition')).toMatch(/^attachment;/);
  });

  it.each([
    'it\'s (a) "test"*!.txt',
    'a; filename=evil.exe',
    'données 数据 🧪.txt',
    'a%0d%0aSet-Cookie: x=1',
    'a,b.txt',
  ])('has a header that holds for the name %j', async (name) => {
    const { call, files } = start();
    const kept = await files.receive({
      session: nanoid(),
      owner: 'ada',
      name,
      limit: 10,
      source: (async function* () {})(),
    });
    const response = await call(`/download/${kept.session}/${kept.id}`);
    const header = response.headers.get('content-disposition') ?? '';
    expect(header).toMatch(/^attachment; filename\*=UTF-8''[A-Za-z0-9._~%-]+$/);
    expect(decodeURIComponent(header.split("''")[1] ?? '')).toBe(name);
  });

  it.each([
    ['bytes=0-3', '0123', 'bytes 0-3/10'],
    ['bytes=4-', '456789', 'bytes 4-9/10'],
    ['bytes=-3', '789', 'bytes 7-9/10'],
    ['bytes=-99', '0123456789', 'bytes 0-9/10'],
    ['bytes=8-99', '89', 'bytes 8-9/10'],
    ['bytes=0-0', '0', 'bytes 0-0/10'],
  ])('gives the range %s', async (range, text, said) => {
    const { call, stored } = start();
    const response = await call(`/download/${await stored('a', '0123456789')}`, { headers: { range } });
    expect(response.status).toBe(206);
    expect(response.headers.get('content-range')).toBe(said);
    expect(response.headers.get('content-length')).toBe(String(text.length));
    expect(await response.text()).toBe(text);
  });

  it.each(['bytes=10-', 'bytes=99-100', 'bytes=-0'])('says that there is no range %s', async (range) => {
    const { call, stored } = start();
    const response = await call(`/download/${await stored('a', '0123456789')}`, { headers: { range } });
    expect(response.status).toBe(416);
    expect(response.headers.get('content-range')).toBe('bytes */10');
  });

  it.each(['bytes=5-2', 'bytes=0-1,4-5', 'lines=1-2', 'bytes=-', 'nonsense'])(
    'gives all for the range %s',
    async (range) => {
      const { call, stored } = start();
      const response = await call(`/download/${await stored('a', '0123456789')}`, { headers: { range } });
      expect(response.status).toBe(200);
      expect(await response.text()).toBe('0123456789');
    },
  );

  it('gives a range only of the file that the client has', async () => {
    const { call, stored } = start();
    const url = `/download/${await stored('a', '0123456789')}`;
    const etag = (await call(url)).headers.get('etag') ?? '';
    const status = async (condition: string) =>
      (await call(url, { headers: { range: 'bytes=1-2', 'if-range': condition } })).status;
    expect(await status(etag)).toBe(206);
    expect(await status('"other"')).toBe(200);
  });

  it('sends nothing to a client that has the file', async () => {
    const { call, stored } = start();
    const url = `/download/${await stored('a', '0123456789')}`;
    const etag = (await call(url)).headers.get('etag') ?? '';
    for (const known of [etag, `"x", W/${etag}`, '*']) {
      const response = await call(url, { headers: { 'if-none-match': known } });
      expect(response.status).toBe(304);
      expect(response.headers.get('etag')).toBe(etag);
      expect(await response.text()).toBe('');
    }
    expect((await call(url, { headers: { 'if-none-match': '"other"' } })).status).toBe(200);
  });

  it('answers HEAD as GET, without the bytes', async () => {
    const { call, stored } = start();
    const url = `/download/${await stored('a.txt', '0123456789')}`;
    const response = await call(url, { method: 'HEAD' });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-length')).toBe('10');
    expect(await response.text()).toBe('');
  });

  it('leaves no file open, however the download ends', async () => {
    const { app, stored } = start();
    const path = await stored('big.bin', Buffer.alloc(9_000_000));
    const port = await listen(app);
    const opened = () => readdirSync('/proc/self/fd').length;
    const send = async (method: string, headers: Record<string, string>) => {
      const sent: ClientRequest = httpRequest({
        port,
        method,
        path: `/v1/download/${path}`,
        headers,
        agent: false,
      }).end();
      const [response] = (await once(sent, 'response')) as [IncomingMessage];
      return response;
    };
    const before = opened();
    for (let count = 0; count < 10; count++) {
      const broken = await send('GET', {});
      await once(broken, 'data');
      broken.destroy();
      const whole = await send('GET', { range: 'bytes=0-500000' });
      whole.resume();
      await once(whole, 'end');
      for (const [method, headers] of [
        ['HEAD', {}],
        ['GET', { 'if-none-match': '*' }],
        ['GET', { range: 'bytes=99999999-' }],
      ] as const) {
        const empty = await send(method, headers);
        empty.resume();
        await once(empty, 'end');
      }
    }
    await expect.poll(opened).toBeLessThanOrEqual(before + 2);
  });
});

describe('the OpenAPI description of the file routes', () => {
  it('names its schemas and its parameters', () => {
    const { app } = start();
    const document = app.getOpenAPI31Document({ openapi: '3.1.0', info: { title: 'x', version: '1' } });
    expect(Object.keys(document.paths ?? {}).sort()).toEqual([
      '/v1/download/{session}/{file}',
      '/v1/files/{session}',
      '/v1/files/{session}/{file}',
      '/v1/sessions/{session}/objects/{file}',
      '/v1/upload',
      '/v1/upload/batch',
    ]);
    expect(Object.keys(document.components?.schemas ?? {})).toEqual(
      expect.arrayContaining(['UploadedFile', 'Upload', 'BatchUpload', 'FileSummary', 'FullFile', 'StoredObject']),
    );
    const body = document.paths?.['/v1/upload']?.post?.requestBody;
    expect(body).toMatchObject({ content: { 'multipart/form-data': { schema: { required: ['file'] } } } });
  });
});

describe('100 MB over a connection', () => {
  it('come back as they went, and are never held in memory', async () => {
    const { port, memory } = await startServer();
    const size = 100_000_000;
    const block = randomBytes(1_000_000);
    const sent = createHash('sha256');

    const warm = await send(port, block, 5_000_000, createHash('sha256'));
    await fetchHash(port, warm);
    const before = await memory();
    const path = await send(port, block, size, sent);
    const received = await fetchHash(port, path);
    const after = await memory();

    expect(received).toEqual({ size, hash: sent.digest('hex') });

    expect(after.most - before.now).toBeLessThan(64 * 1024 * 1024);
  });

  async function send(port: number, block: Buffer, size: number, hash: ReturnType<typeof createHash>): Promise<string> {
    const request = httpRequest({ port, method: 'POST', path: '/upload' });
    request.setHeader('content-type', `multipart/form-data; boundary=${BOUNDARY}`);
    const answered = once(request, 'response');
    const [head = ''] = formBytes([file('big.bin', 'CONTENT')])
      .toString()
      .split('CONTENT');
    request.write(head);
    for (let left = size; left > 0; left -= block.length) {
      block.writeUInt32LE(left);
      const chunk = Buffer.from(block.subarray(0, Math.min(left, block.length)));
      hash.update(chunk);
      if (!request.write(chunk)) await once(request, 'drain');
    }
    request.end(`\r\n--${BOUNDARY}--\r\n`);
    const [response] = (await answered) as [IncomingMessage];
    const answer = JSON.parse(Buffer.concat(await response.toArray()).toString());
    expect(answer.message).toBe('success');
    return `${answer.session_id}/${answer.files[0].id}`;
  }

  async function fetchHash(port: number, path: string): Promise<{ size: number; hash: string }> {
    const request = httpRequest({ port, path: `/download/${path}` }).end();
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    const hash = createHash('sha256');
    let size = 0;
    for await (const chunk of response) {
      size += chunk.length;
      hash.update(chunk);
    }
    return { size, hash: hash.digest('hex') };
  }

  /** The routes in a process of their own, which says on request how much memory it has, and had at the most. */
  async function startServer() {
    const swc = pathToFileURL(createRequire(import.meta.url).resolve('@swc/wasm-typescript')).href;
    const hooks = `import swc from ${JSON.stringify(swc)};
      import { readFileSync } from 'node:fs';
      import { fileURLToPath } from 'node:url';
      export async function load(url, context, next) {
        if (!url.endsWith('.ts')) return next(url, context);
        const { code } = swc.transformSync(readFileSync(fileURLToPath(url), 'utf8'), { mode: 'strip-only' });
        return { format: 'module', source: code, shortCircuit: true };
      }`;
    const source = (path: string) => JSON.stringify(pathToFileURL(packageFile('src', path)).href);
    const program = `import { register } from 'node:module';
      register('data:text/javascript,' + encodeURIComponent(${JSON.stringify(hooks)}));
      const { fileRoutes } = await import(${source('surfaces/rest/file-routes.ts')});
      const { openFileStore } = await import(${source('files/file-store.ts')});
      const { serve } = await import('@hono/node-server');
      const { Hono } = await import('hono');
      const files = openFileStore({ folder: process.env.FOLDER });
      const app = new Hono().use((c, next) => { c.set('principal', { id: 'ada', kind: 'open' }); return next(); });
      app.route('/', fileRoutes({ files, sessionFor: () => 'S'.repeat(21), limits: { upload: 1e9, quota: 0 } }));
      let most = 0;
      setInterval(() => { most = Math.max(most, process.memoryUsage.rss()); }, 5);
      process.stdin.on('data', () => { console.log(JSON.stringify({ now: process.memoryUsage.rss(), most })); most = 0; });
      serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.log(port));`;
    const server = spawn(process.execPath, ['--input-type=module', '--eval', program], {
      cwd: packageFile(),
      env: { ...process.env, FOLDER: join(temporaryFolder(), 'files') },
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    onTestFinished(async () => {
      server.kill('SIGKILL');
      await once(server, 'exit');
    });
    const lines = createInterface(server.stdout)[Symbol.asyncIterator]();
    const line = async () => String((await lines.next()).value);
    const port = Number(await line());
    const memory = async (): Promise<{ now: number; most: number }> => {
      server.stdin.write('?');
      return JSON.parse(await line());
    };
    return { port, memory };
  }
});
