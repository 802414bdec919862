/** Sends the requests that LibreChat sends, byte for byte, and checks what it reads in the answers. */

import { expect, test } from 'vitest';
import { type ExecAnswer, formOf, ID, ok, type UploadAnswer, useService } from './service.ts';

const service = await useService();

const AGENT = {
  'user-agent': 'LibreChat/1.0',
  'content-type': 'application/json',
  accept: '*/*',
  'accept-encoding': 'gzip, deflate, br',
};
const USER = '64b7f0c2a1b2c3d4e5f60718';
/** LibreChat's own client, which it uses for files and for reading and writing in the workspace. */
const AXIOS = {
  'user-agent': 'LibreChat/1.0',
  accept: 'application/json, text/plain, */*',
  'accept-encoding': 'gzip, compress, deflate, br',
  connection: 'close',
};
const PROFILE = { 'x-codeapi-expected-profile': 'default' };

async function exec(body: Record<string, unknown>, headers: Record<string, string> = AGENT): Promise<ExecAnswer> {
  const reply = await service.send('POST', '/v1/exec', { headers, body: JSON.stringify(body) });
  expect(ok(reply).headers['content-type']).toMatch(/^application\/json/);
  return reply.json<ExecAnswer>();
}

async function upload(path: string, parts: Parameters<typeof formOf>[0], more = {}): Promise<UploadAnswer> {
  const { headers, body } = formOf(parts);
  const reply = await service.send('POST', path, {
    headers: { ...AXIOS, 'user-id': USER, ...headers, ...more },
    body,
  });
  return ok(reply).json<UploadAnswer>();
}

const reference = (uploaded: UploadAnswer, name: string, more = {}) => ({
  id: uploaded.files[0]?.fileId,
  name,
  storage_session_id: uploaded.storage_session_id,
  ...more,
});

const download = (session: string, file: string | undefined) =>
  service.get(`/v1/download/${session}/${file}?kind=user&id=${USER}`, AXIOS);

test('a shell reads the file that code wrote in an earlier call, by the reference that came back', async () => {
  const first = await exec({
    lang: 'py',
    code: 'open("/mnt/data/a.txt","w").write("42")\nprint("wrote")',
    user_id: 'u1',
  });
  expect(first).toMatchObject({ stdout: 'wrote\n', stderr: '', files: [{ name: 'a.txt' }] });
  expect(first.session_id).toMatch(ID);
  const [file] = first.files;
  const refs = first.files.map(({ id, name, storage_session_id }) => ({
    id,
    resource_id: id,
    name,
    storage_session_id,
    kind: 'user',
  }));
  const second = await exec({ lang: 'bash', code: 'cat /mnt/data/a.txt', files: refs });
  expect(second.stdout).toBe('42');
  expect(second.files.filter(({ inherited }) => !inherited)).toEqual([]);
  expect((await download(first.session_id, file?.id)).text).toBe('42');
});

test("a call with the extra arguments that LibreChat's tool factory leaks reads its uploaded file", async () => {
  const uploaded = await upload('/v1/upload', [
    ['kind', 'user'],
    ['id', USER],
    { name: 'in.csv', content: 'a,b\n1,2\n', type: 'text/csv' },
  ]);
  const answer = await exec(
    {
      lang: 'py',
      code: 'print(open("in.csv").read())',
      user_id: 'user-1',
      codeSessionKey: 'execute_code',
      files: [reference(uploaded, 'in.csv', { resource_id: 'user-1', kind: 'user' })],
    },
    { ...AGENT, ...PROFILE },
  );
  expect(answer).toMatchObject({ stdout: 'a,b\n1,2\n\n', stderr: '' });
});

test('the run button of LibreChat sends an empty list of files and downloads outputs from the session of the answer', async () => {
  const answer = await exec({
    lang: 'py',
    code: 'open("plot.txt", "w").write("x"); None',
    args: [],
    files: [],
    user_id: USER,
    isTemporary: false,
    intent: 'to see',
  });
  const [file] = answer.files;
  expect((await download(answer.session_id, file?.id)).text).toBe('x');
});

test.each([
  ['données_1.txt', 'kind=user', [['kind', 'user'] as const, ['id', USER] as const]],
  ['sub/dir/a.txt', 'kind=agent', [['kind', 'agent'] as const, ['id', 'agent_abc'] as const]],
])('an upload of %s with %s is read by code under its name', async (name, _, fields) => {
  const parts = fields.map(([field, value]): [string, string] => [field, value]);
  const answer = await upload('/v1/upload', [...parts, { name, content: 'été\n', type: 'text/plain' }]);
  expect(answer.message).toBe('success');
  expect(answer.storage_session_id).toMatch(ID);
  expect(answer.session_id).toBe(answer.storage_session_id);
  expect(answer.files).toMatchObject([{ fileId: expect.stringMatching(ID), filename: name }]);
  const ran = await exec({ lang: 'bash', code: `cat '/mnt/data/${name}'`, files: [reference(answer, name)] });
  expect(ran).toMatchObject({ stdout: 'été\n', stderr: '' });
});

test('a batch of read-only skill files is read by code and does not come back as changed', async () => {
  const names = ['skills/x/SKILL.md', 'skills/x/ref/a.md'];
  const answer = await upload(
    '/v1/upload/batch',
    [
      ['kind', 'skill'],
      ['id', '64b7f0c2a1b2c3d4e5f60709'],
      ['version', '3'],
      ['read_only', 'true'],
      ...names.map((name) => ({ name, content: `# ${name}\n`, type: 'text/markdown' })),
    ],
    PROFILE,
  );
  expect(answer).toMatchObject({ message: 'success', succeeded: 2, failed: 0 });
  expect(answer.storage_session_id).toMatch(ID);
  expect(answer.files.map(({ status, filename }) => [status, filename])).toEqual(
    names.map((name) => ['success', name]),
  );
  const files = answer.files.map(({ fileId, filename }) => ({
    id: fileId,
    name: filename,
    storage_session_id: answer.storage_session_id,
    resource_id: '64b7f0c2a1b2c3d4e5f60709',
    kind: 'skill',
    version: 3,
  }));
  const ran = await exec({ lang: 'bash', code: 'cat skills/x/SKILL.md skills/x/ref/a.md; ls -R skills', files });
  expect(ran.stdout).toContain('# skills/x/SKILL.md\n# skills/x/ref/a.md\n');
  expect(ran.files.filter(({ inherited }) => !inherited)).toEqual([]);
});

test("LibreChat's check at the start of a turn reads when a file was last changed", async () => {
  const uploaded = await upload('/v1/upload', [['kind', 'user'], ['id', USER], { name: 'sub/f.txt', content: 'f' }]);
  const path = `/v1/sessions/${uploaded.storage_session_id}/objects/${uploaded.files[0]?.fileId}?kind=user&id=${USER}`;
  const object = ok(await service.get(path, AXIOS)).json<{ lastModified: string; originalFilename: string }>();
  expect(object.lastModified).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  expect(Math.abs(Date.now() - new Date(object.lastModified).getTime())).toBeLessThan(60_000);
  expect(object.originalFilename).toBe('sub/f.txt');
  expect((await service.get(path.replace(/objects\/.{21}/, `objects/${'x'.repeat(21)}`), AXIOS)).status).toBe(404);
});

test('a download has the bytes of the file, as an attachment', async () => {
  const content = Buffer.from(Array.from({ length: 1000 }, (_, index) => index % 256));
  const uploaded = await upload('/v1/upload', [['kind', 'user'], ['id', USER], { name: 'b ü.bin', content }]);
  const reply = ok(await download(uploaded.storage_session_id, uploaded.files[0]?.fileId));
  expect(reply.bytes.equals(content)).toBe(true);
  expect(reply.headers['content-disposition']).toBe("attachment; filename*=UTF-8''b%20%C3%BC.bin");
});

test('reading a file in the session of an earlier call is exact, and a missing one is reported as missing', async () => {
  const text = 'no newline at the end;\ttab, ünïcode, \\n, "quotes", $HOME';
  const first = await exec({
    lang: 'bash',
    code: `cat > "/mnt/data/it's.txt" <<'EOT'\n${text}\nEOT\ntruncate -s -1 "/mnt/data/it's.txt"`,
  });
  const files = first.files.map(({ id, name, storage_session_id }) => ({ id, name, storage_session_id }));
  const read = await exec(
    { lang: 'bash', code: "cat '/mnt/data/it'\\''s.txt'", session_id: first.session_id, files },
    { ...AXIOS, 'content-type': 'application/json' },
  );
  expect(read).toMatchObject({ stdout: text, stderr: '' });
  const missing = await exec({ lang: 'bash', code: "cat '/mnt/data/none.txt'", session_id: first.session_id });
  expect(missing.stdout).toBe('');
  expect(missing.stderr).toContain('No such file or directory');
});

test('a file is created by a python3 program in a shell and can be downloaded', async () => {
  const content = 'zeile\n'.repeat(1000);
  const payload = Buffer.from(
    JSON.stringify({ path: '/mnt/data/new/file.txt', content: Buffer.from(content).toString('base64') }),
  ).toString('base64');
  const answer = await exec({
    lang: 'bash',
    code: `python3 - <<'PY'
import base64, json, os
payload = "${payload}"
data = json.loads(base64.b64decode(payload))
path, content = data["path"], base64.b64decode(data["content"])
os.makedirs(os.path.dirname(path), exist_ok=True)
with open(path, "wb") as file: file.write(content)
print(f"WROTE {len(content)} bytes to {path}")
PY`,
  });
  expect(answer).toMatchObject({ stdout: 'WROTE 6000 bytes to /mnt/data/new/file.txt\n', stderr: '' });
  expect(answer.files).toMatchObject([{ name: 'new/file.txt', size: 6000 }]);
  expect((await download(answer.session_id, answer.files[0]?.id)).text).toBe(content);
});

test('an image is read in windows, each a line of JSON at the end of the output', async () => {
  const uploaded = await upload('/v1/upload', [
    ['kind', 'user'],
    ['id', USER],
    { name: 'i.png', content: Buffer.alloc(70_000, 7) },
  ]);
  const pieces: Buffer[] = [];
  for (const offset of [0, 32_768, 65_536]) {
    const { stdout } = await exec({
      lang: 'bash',
      code: `python3 -c 'import base64,json,os\nf=open("/mnt/data/i.png","rb");f.seek(${offset});b=f.read(32768)\nprint(json.dumps({"total":os.path.getsize("/mnt/data/i.png"),"n":len(b),"b64":base64.b64encode(b).decode()}))'`,
      files: [reference(uploaded, 'i.png')],
    });
    const line: { total: number; n: number; b64: string } = JSON.parse(stdout.trimEnd().split('\n').at(-1) ?? '');
    expect(line.total).toBe(70_000);
    pieces.push(Buffer.from(line.b64, 'base64'));
  }
  expect(Buffer.concat(pieces).equals(Buffer.alloc(70_000, 7))).toBe(true);
});

test('a file is deleted by the first of two routes and is not found a second time', async () => {
  const uploaded = await upload('/v1/upload', [['kind', 'user'], ['id', USER], { name: 'd.txt', content: 'd' }]);
  const query = `?kind=user&id=${USER}`;
  const [session, file] = [uploaded.storage_session_id, uploaded.files[0]?.fileId];
  const remove = (path: string) => service.send('DELETE', `${path}${query}`, { headers: AXIOS });
  expect((await remove(`/v1/sessions/${session}/objects/${file}`)).status).toBe(200);
  expect((await remove(`/v1/sessions/${session}/objects/${file}`)).status).toBe(404);
  expect((await remove(`/v1/files/${session}/${file}`)).status).toBe(404);
  expect((await download(session, file)).status).toBe(404);
});

test('an older LibreChat works with a key in the header and in the body, and with file lists of a session', async () => {
  const legacy = { ...AGENT, 'x-api-key': 'KEY123' };
  const uploaded = await upload('/v1/upload', [['entity_id', 'agent_1'], { name: 'in.csv', content: 'a\n' }], {
    'x-api-key': 'KEY123',
  });
  const id = uploaded.session_id;
  const written = await exec({ lang: 'py', code: 'open("a b.txt", "w").write("ab"); None' }, legacy);
  const answer = await exec(
    {
      lang: 'py',
      code: 'print(open("in.csv").read() + open("a b.txt").read())',
      user_id: 'user-1',
      apiKey: 'KEY123',
      files: [
        { id: uploaded.files[0]?.fileId, session_id: id, name: 'in.csv' },
        { session_id: written.session_id, id: written.files[0]?.id, name: 'a b.txt' },
      ],
    },
    legacy,
  );
  expect(answer).toMatchObject({ stdout: 'a\nab\n', stderr: '' });
  expect(written.files[0]?.session_id).toBe(written.session_id);

  type Entry = { name: string; lastModified: string; metadata: Record<string, string> };
  const summary = ok(await service.get(`/v1/files/${id}?detail=summary`, legacy)).json<Entry[]>();
  const entry = summary.find(({ name }) => name.startsWith(`${id}/${uploaded.files[0]?.fileId}`));
  expect(Date.now() - new Date(entry?.lastModified ?? 0).getTime()).toBeLessThan(60_000);
  const full = ok(await service.get(`/v1/files/${id}?detail=full`, legacy)).json<Entry[]>();
  expect(full.map(({ metadata }) => metadata['original-filename'])).toEqual(['in.csv']);
  // From the name, it takes the id of the file.
  expect(full[0]?.name.split('/')[1]?.split('.')[0]).toBe(uploaded.files[0]?.fileId);
});

test("a program that calls tools completes in the two requests of LibreChat's client", async () => {
  const post = async (body: object) =>
    ok(await service.send('POST', '/v1/exec/programmatic', { headers: AGENT, body: JSON.stringify(body) })).json<{
      continuation_token?: string;
      tool_calls?: { id: string; name: string; input: { a: number; b: number } }[];
      stdout?: string;
    }>();
  const first = await post({
    lang: 'bash',
    code: ': &\nwait "$!"\nadd \'{"a":1,"b":2}\' &\nadd \'{"a":3,"b":4}\' &\nwait',
    tools: [
      {
        name: 'add',
        description: 'adds',
        parameters: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } },
        allowed_callers: ['code_execution'],
      },
    ],
    timeout: 15_000,
  });
  expect(first).toMatchObject({
    status: 'tool_call_required',
    session_id: expect.stringMatching(ID),
    continuation_token: expect.any(String),
  });
  const calls = first.tool_calls ?? [];
  expect(calls.map(({ name }) => name)).toEqual(['add', 'add']);
  const last = await post({
    continuation_token: first.continuation_token,
    tool_results: calls.map(({ id, input }) => ({ call_id: id, result: input.a + input.b, is_error: false })),
  });
  expect(last).toMatchObject({ status: 'completed', stderr: '', files: [] });
  expect(last.stdout?.split('\n').sort()).toEqual(['', '3', '7']);

  const cancel = await service.send('POST', '/v1/exec/programmatic/cancel', {
    headers: AGENT,
    body: JSON.stringify({ request_id: 'c224d098-0f5c-4d7e-9d1e-4a1f5f0f9a11' }),
  });
  expect(cancel.status).toBe(200);
});
