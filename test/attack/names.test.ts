/** Sends names, requests and connections as an attacker would make them, over a real connection to the service. */

import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, onTestFinished, test } from 'vitest';
import { createHome } from '../e2e/harness.ts';
import { type Caller, formOf, ok, type Problem, startService, type UploadAnswer } from '../e2e/http/service.ts';
import { endConfinedHome, freshName, KEY, useCount, useTarget } from './attack.ts';

const service = await useTarget();
const caller = service.as({ 'x-api-key': KEY });
const count = useCount();
afterEach(() => count(1));

const upload = (name: string, entity_id: string, content: string | Buffer = 'x', by: Caller = caller) =>
  by.send('POST', '/upload', formOf([['entity_id', entity_id], { name, content }]));

describe('a file name', () => {
  test.each([
    '🎉 party.txt',
    'a.',
    'b ',
    '.c',
    '...',
    '%2e%2e%2fd',
    'e%00f',
    'g\\h',
    '-rf',
    '~',
    '$(touch x)',
    '*?[',
    'ünï',
  ])('such as %j is accepted and comes back as it was', async (name) => {
    const entity_id = freshName();
    const { files, session_id } = ok(await upload(name, entity_id, name)).json<UploadAnswer>();
    const listed = await caller.python('import os, json; print(json.dumps(os.listdir(b".")[0].decode()))', {
      entity_id,
    });
    expect(JSON.parse(listed.stdout)).toBe(name.normalize());
    const reply = ok(await caller.get(`/download/${session_id}/${files[0]?.id}`));
    expect(reply.text).toBe(name);
    const header = String(reply.headers['content-disposition']);
    expect(decodeURIComponent(/filename\*=UTF-8''(\S+)/.exec(header)?.[1] ?? '')).toBe(name.normalize());
  });

  test('that is uploaded in two forms of Unicode is one name', async () => {
    const entity_id = freshName();
    for (const [name, text] of [
      ['\u00e9.txt', 'composed'],
      ['e\u0301.txt', 'decomposed'],
    ] as const)
      ok(await upload(name, entity_id, text));
    const { stdout } = await caller.bash('ls | wc -l; cat *', { entity_id });
    expect(stdout).toBe('1\ndecomposed');
  });

  test('that code gives to two files in two forms of Unicode does not mix up their contents', async () => {
    const code = 'open("\\u00e9.txt", "w").write("composed"); open("e\\u0301.txt", "w").write("decomposed"); None';
    const { files, run } = await caller.python(code);
    const texts = await Promise.all(files.map(async (file) => (await caller.download(file)).toString()));
    for (const text of texts) expect(['composed', 'decomposed']).toContain(text);
    expect(new Set(texts).size).toBe(files.length);
    expect(files.length === 2 || run.message !== null).toBe(true);
  });

  test.each([
    ['is not valid UTF-8', 'os.open(b"a\\xff\\xfe.bin", os.O_CREAT | os.O_WRONLY)'],
    ['has line breaks', 'open("a\\nb\\r\\nset-cookie: x=1", "w")'],
    ['has a text direction override', 'open("a\\u202etxt.exe", "w")'],
    ['has escape sequences', 'open("a\\x1b[2J\\x07", "w")'],
    ['is as long as the file system allows', 'open("a" * 255, "w")'],
    [
      'lies in folders as deep as a path allows',
      'os.makedirs("/".join(["d" * 200] * 15)); open("/".join(["d" * 200] * 15) + "/f", "w")',
    ],
  ])('that code chose and that %s breaks neither answers nor listings', async (_, make) => {
    const entity_id = freshName();
    const first = ok(
      await caller.post('/exec', {
        lang: 'py',
        code: `import os\n${make}\nopen("fine", "w").write("x"); None`,
        entity_id,
      }),
    );
    expect(first.text).not.toMatch(/\n|\u202e/);
    const answer = first.json<{ files: { name: string; id: string; session_id: string }[]; session_id: string }>();
    expect(answer.files.map(({ name }) => name)).toContain('fine');
    expect((await caller.get(`/files/${answer.session_id}?detail=full`)).status).toBe(200);
    for (const file of answer.files) {
      const reply = ok(await caller.get(`/download/${file.session_id}/${file.id}`));
      expect(reply.headers['set-cookie']).toBeUndefined();
    }
    expect((await caller.bash('rm -rf ./* ; ls -A', { entity_id })).run.code).toBe(0);
  });

  test.each([
    ['filename="../x"; filename*=UTF-8\'\'..%2f..%2fescaped', 400],
    ['filename="/etc/cron.d/escaped"', 400],
    ['filename="a\\"; filename=\\"../escaped"', 200],
    ['filename="__proto__"', 200],
    ['filename="constructor"', 200],
  ])('that is sent in a form as %s leads to no other folder', async (disposition, status) => {
    const boundary = 'xxBOUNDARYxx';
    const body = `--${boundary}\r\nContent-Disposition: form-data; name="file"; ${disposition}\r\n\r\nx\r\n--${boundary}--\r\n`;
    const reply = await caller.send('POST', '/upload', {
      headers: { 'content-type': `multipart/form-data; boundary=${boundary}` },
      body,
    });
    expect([status, 400]).toContain(reply.status);
    expect(readdirSync(service.home.root)).not.toContain('escaped');
  });
});

describe('a path in the workspace', () => {
  test.each([
    ['a link to a file', 'ln -s /etc/hostname f'],
    ['a link to nothing', 'ln -s /nowhere/at/all f'],
    ['a hard link', 'echo other > g; ln g f'],
    ['a FIFO', 'mkfifo f'],
    ['a socket', 'python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'f\')"'],
    ['a file without permissions', 'echo x > f; chmod 0 f'],
  ])('where code has put %s becomes the uploaded file, and what was behind it is unchanged', async (_, make) => {
    const entity_id = freshName();
    const made = await caller.bash(`${make}; true`, { entity_id });
    expect((await caller.get(`/files/${made.session_id}`)).status).toBe(200);
    ok(await upload('f', entity_id, 'uploaded'));
    const { stdout } = await caller.bash('stat -c %F f; cat f; cat g 2>/dev/null', { entity_id });
    expect(stdout).toBe(`regular file\nuploaded${make.includes('g f') ? 'other\n' : ''}`);
    expect((await caller.send('DELETE', `/sessions/${made.session_id}`)).status).toBe(200);
  });

  test('that is a file where a folder is needed, or the reverse, fails no call', async () => {
    const entity_id = freshName();
    await caller.bash('echo x > a; mkdir b', { entity_id });
    ok(await upload('a/in', entity_id));
    ok(await upload('b', entity_id));
    const { stdout, run } = await caller.bash('cat a; ls -d b; echo ran', { entity_id });
    expect([stdout, run.code]).toEqual(['x\nb\nran\n', 0]);
  });

  test('is downloaded as it was while code writes to it', async () => {
    const entity_id = freshName();
    const size = 8 << 20;
    const first = await caller.python(`open("f", "wb").write(b"a" * ${size}); None`, { entity_id });
    const writing = caller.python(
      `import time\nfor n in range(40):\n    open("f", "wb").write(b"b" * ${size}); time.sleep(0.01)`,
      { entity_id },
    );
    const [file] = first.files;
    for (let round = 0; round < 5; round += 1) {
      const bytes = file ? await caller.download(file) : Buffer.alloc(0);
      expect([bytes.length, bytes.every((byte) => byte === 97)]).toEqual([size, true]);
    }
    const { files } = await writing;
    expect(files[0] && (await caller.download(files[0])).every((byte) => byte === 98)).toBe(true);
  });

  test('with a sparse file of 5 GB is not kept, and other files are', async () => {
    const home = createHome();
    onTestFinished(() => endConfinedHome(home));
    const small = await startService({ home, args: ['--session-quota', '100MB'] });
    const { files } = await small.bash('truncate -s 5G big; echo x > small');
    expect(files.map(({ name }) => name)).toContain('small');
    for (const { size } of files) expect(size).toBeLessThan(1000);
    await small.stop();
  });
});

describe.runIf(process.getuid?.() === 0)('a disk that is full in the middle of an upload', () => {
  test('is reported as full, keeps nothing of the upload, and works again once there is room', async () => {
    const home = createHome();
    const disk = join(home.root, 'disk');
    mkdirSync(disk);
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'tmpfs', disk]);
    try {
      const small = await startService({ home, args: ['--uploads-dir', join(disk, 'files')] });
      const reply = await upload('f', 'full', Buffer.alloc(12 << 20, 1), small);
      expect([reply.status, reply.json<Problem>().code]).toEqual([507, 'storage_full']);
      expect((await small.bash('echo works')).stdout).toBe('works\n');
      const { session_id } = ok(await upload('f', 'full', Buffer.alloc(1 << 20, 1), small)).json<UploadAnswer>();
      expect(ok(await small.get(`/files/${session_id}`)).json<unknown[]>()).toHaveLength(1);
      const written = await small.bash('head -c 12M /dev/zero > g; echo ran');
      expect([written.stdout, written.files]).toEqual(['ran\n', []]);
      expect(written.run.message).toMatch(/\bg\b/);
      expect((await small.stop()).code).toBe(0);
    } finally {
      execFileSync('umount', ['-l', disk]);
      await endConfinedHome(home);
    }
  });
});

describe('a request body', () => {
  test.each<[string, string]>([
    ['__proto__ as a field', '{"lang":"bash","code":"echo ran","__proto__":{"timeout":1,"polluted":true}}'],
    ['constructor as a field', '{"lang":"bash","code":"echo ran","constructor":{"prototype":{"polluted":true}}}'],
    ['the same fields twice', '{"lang":"cobol","lang":"bash","code":"false","code":"echo ran"}'],
    ['infinite numbers', '{"lang":"bash","code":"echo ran","args":[1e400,-0]}'],
    ['__proto__ as a session', '{"lang":"bash","code":"echo ran","entity_id":"__proto__"}'],
    [
      'constructor as a session',
      '{"lang":"bash","code":"echo ran","session_id":"constructor","runtime_session_hint":"__proto__"}',
    ],
  ])('with %s is run as usual or refused, and the next call works', async (_, body) => {
    const headers = { 'content-type': 'application/json' };
    const reply = await caller.send('POST', '/exec', { headers, body });
    if (reply.status === 200) expect(reply.json()).toMatchObject({ stdout: 'ran\n' });
    else expect(reply.status).toBe(400);
    expect((await caller.bash('echo next')).stdout).toBe('next\n');
  });

  test.each([
    '{"lang":"bash","code":"echo","timeout":NaN}',
    '{"lang":"bash","code":"echo","timeout":1e999}',
    '{"lang":"bash","code":"echo","timeout":-1}',
    '{"lang":"bash","code":NaN}',
    '[]',
    'null',
    '"x"',
    '',
    `${'['.repeat(100_000)}`,
    '\u0000',
  ])('that is no valid request is refused: %j', async (body) => {
    const reply = await caller.send('POST', '/exec', { headers: { 'content-type': 'application/json' }, body });
    expect([reply.status, reply.json<Problem>().code]).toEqual([400, 'invalid_input']);
  });

  test.each([
    ['py', 'print("[\ud800]")', /\[/],
    ['bash', 'echo "[\udfff]"', /\[/],
    ['js', 'console.log("[\ud83d]")', /\[/],
    ['py', 'print(ascii("\\ud800"), "\\ud83d\\ude00".encode("utf-16", "surrogatepass").decode("utf-16"))', /😀/],
    ['py', 'print("\\ud800")', /surrogate|^/],
  ])('with half a surrogate pair in %s code is answered with valid text: %j', async (lang, code, wanted) => {
    const reply = await caller.post('/exec', { lang, code });
    expect([200, 400]).toContain(reply.status);
    if (reply.status === 200) expect(reply.text).toMatch(wanted);
    expect(reply.text).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])/);
  });

  test('with 50 MB of code is run', async () => {
    const line = `${'#'.repeat(1023)}\n`;
    const { stdout } = await caller.python(`${line.repeat(50 << 10)}print("ran")`);
    expect(stdout).toBe('ran\n');
  });
});

describe('calls', () => {
  test('in 50 sessions at once are all answered', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, n) =>
        caller.exec({ lang: n % 2 ? 'bash' : 'py', code: n % 2 ? `echo ${n}` : `print(${n})` }),
      ),
    );
    expect(answers.map(({ stdout }) => stdout)).toEqual(answers.map((_, n) => `${n}\n`));
  });

  test('that are cancelled at the moment they end harm neither the session nor the next call', async () => {
    const entity_id = freshName();
    await caller.python('count = 0', { entity_id });
    for (let round = 0; round < 30; round += 1) {
      const abort = new AbortController();
      const call = caller.exec(
        { lang: 'py', code: 'import time; time.sleep(0.02); count += 1', entity_id },
        { signal: abort.signal },
      );
      setTimeout(() => abort.abort(), 15 + round);
      await call.catch(() => {});
    }
    const { stdout } = await caller.python('print(0 < count <= 30)', { entity_id });
    expect(stdout).toBe('True\n');
  });

  test('over MCP are refused from foreign hosts, from foreign origins and as plain text', async () => {
    const open = await startService({ home: service.home });
    try {
      const body = { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} };
      const accept = 'application/json, text/event-stream';
      for (const headers of [{ host: 'evil.example.com' }, { origin: 'https://evil.example.com' }, { origin: 'null' }])
        expect((await open.as({ accept, ...headers }).post('/mcp', body)).status).toBe(403);
      const plain = { 'content-type': 'text/plain', accept };
      const form = await open.send('POST', '/mcp', { headers: plain, body: JSON.stringify(body) });
      expect(form.status).toBeGreaterThanOrEqual(400);
    } finally {
      await open.stop();
    }
  });
});

describe('connections', () => {
  const port = Number(new URL(service.url).port);
  const dial = () => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => {});
    onTestFinished(() => void socket.destroy());
    return socket;
  };
  const answerTo = (socket: Socket) =>
    new Promise<string>((resolve) => {
      let text = '';
      socket.on('data', (data) => {
        text += data;
      });
      socket.once('close', () => resolve(text));
    });

  test('with too many or too large headers are refused', async () => {
    for (const headers of [
      `x-large: ${'x'.repeat(64 << 10)}`,
      Array.from({ length: 5000 }, (_, n) => `x-${n}: y`).join('\r\n'),
    ]) {
      const socket = dial();
      const answer = answerTo(socket);
      socket.write(`GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}\r\n\r\n`);
      expect(await answer).toMatch(/^HTTP\/1\.1 (431|400) /);
    }
    expect((await caller.bash('echo next')).stdout).toBe('next\n');
  });

  test('that announce a body above the limit are refused before it is sent', async () => {
    const socket = dial();
    const answer = answerTo(socket);
    socket.write(
      `POST /exec HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${KEY}\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 70000000\r\n\r\n{"code":"`,
    );
    expect(await answer).toMatch(/^HTTP\/1\.1 413 [\s\S]*--max-body/);
  });

  test.each([
    ['two content lengths', 'content-length: 5\r\ncontent-length: 6\r\n\r\nhello'],
    ['a content length and chunks', 'content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'],
    ['malformed chunks', 'transfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n'],
    ['a line break in a header', 'x-a: b\nx-c: d\r\n\r\n'],
    ['a negative content length', 'content-length: -5\r\n\r\n'],
  ])('with %s are not taken for two requests', async (_, rest) => {
    const socket = dial();
    const answer = answerTo(socket);
    socket.end(
      `POST /exec HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${KEY}\r\nconnection: close\r\ncontent-type: application/json\r\n${rest}`,
    );
    const text = await answer;
    expect(text.split('HTTP/1.1 ').length - 1).toBeLessThanOrEqual(1);
    expect(text).not.toMatch(/^HTTP\/1\.1 200/);
  });

  test('that are slow, silent or very many keep no other caller waiting', async () => {
    const idle = Array.from({ length: 10_000 }, dial);
    await Promise.all(idle.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
    const slow = Array.from({ length: 200 }, dial);
    for (const [n, socket] of slow.entries())
      socket.write(
        n % 2
          ? 'GET /health HTTP/1.1\r\nhost: loc'
          : `POST /exec HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${KEY}\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{"la`,
      );
    for (let round = 0; round < 10; round += 1) {
      expect((await caller.bash('echo on')).stdout).toBe('on\n');
      for (const socket of slow) socket.write('x');
      await sleep(20);
    }
    expect(slow.filter((socket) => !socket.destroyed).length, 'they are still there').toBeGreaterThan(100);
  });
});

test('the sockets and folders of the service are accessible to their owner alone', async () => {
  await caller.python('1', { entity_id: freshName() });
  const { runtime, data } = service.home;
  for (const top of [runtime, data]) {
    const { mode, uid } = statSync(top);
    expect([mode & 0o777, uid]).toEqual([0o700, process.getuid?.()]);
  }
  // Each socket of this machine that is ours is in there.
  const listening = readFileSync('/proc/net/unix', 'utf8').match(/\S*cuvette\S*\.?sock\S*/g) ?? [];
  const own = listening.filter((path) => path.includes(service.home.root));
  expect(own.length).toBeGreaterThan(0);
  expect(own.filter((path) => !path.startsWith(runtime))).toEqual([]);
});
