/** Checks the API of code interpreters: its routes, and what is known to fail in servers of this kind. Restarts are in restarts.test.ts. */

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { allGone, processesOf } from '../harness.ts';
import { anotherService, formOf, ID, ok, type Problem, type UploadAnswer, useService } from './service.ts';

const KEY = 'kept-from-all-code-4711';
const service = await useService();

describe('over HTTP,', () => {
  test('GET / says what the service is', async () => {
    const about = ok(await service.get('/')).json();
    expect(about).toMatchObject({ name: 'Cuvette', version: expect.stringMatching(/^\d+\.\d+/) });
    expect(about.features).toContain('mcp');
    expect(about.endpoints).toMatchObject({ exec: 'POST /exec', download: 'GET /download/{session_id}/{file_id}' });
  });

  test('POST /exec answers with everything that its callers read', async () => {
    const answer = await service.python('import sys; print("out"); print("err", file=sys.stderr)', {
      entity_id: 'all',
    });
    expect(answer).toMatchObject({
      stdout: 'out\n',
      stderr: 'err\n',
      language: 'py',
      version: expect.stringMatching(/^3\.\d+\.\d+$/),
      session_id: expect.stringMatching(ID),
      files: [],
      run: {
        stdout: 'out\n',
        stderr: 'err\n',
        output: 'out\nerr\n',
        code: 0,
        signal: null,
        message: null,
        reason: null,
        status: null,
      },
    });
  });

  test('POST /exec/stream sends the session, the output as it comes, and the end', async () => {
    const stream = await service.stream({
      lang: 'py',
      code: 'print("out")\nfrom IPython.display import display, HTML\ndisplay(HTML("<b>b</b>"))\n6 * 7',
    });
    expect(stream.headers['content-type']).toMatch(/^text\/event-stream/);
    expect(await stream.ended).toBe(true);
    expect(stream.kinds()).toEqual(['session', 'stream', 'display', 'result', 'done']);
    expect(stream.events[0]?.session_id).toMatch(ID);
    expect((await stream.event('result')).data?.['text/plain']).toBe('42');
  });

  test.each(['file', 'files', 'files[]'])('POST /upload accepts parts named %s', async (field) => {
    const form = formOf([
      ['entity_id', `up-${field.replace(/\W/g, '')}`],
      { name: 'a.txt', content: 'aa', type: 'text/plain', field },
      { name: 'b.txt', content: 'b', field },
    ]);
    const answer = ok(await service.send('POST', '/upload', form)).json<UploadAnswer>();
    const { session_id } = answer;
    expect(answer).toMatchObject({ message: 'success', session_id: expect.stringMatching(ID) });
    expect(answer.files[0]).toMatchObject({
      id: answer.files[0]?.fileId,
      name: 'a.txt',
      filename: 'a.txt',
      session_id,
      path: '/mnt/data/a.txt',
      size: 2,
      lastModified: expect.stringMatching(/Z$/),
      etag: expect.any(String),
      contentType: 'text/plain',
      metadata: { 'original-filename': 'a.txt' },
    });
    const ran = await service.python('print(open("/mnt/data/a.txt").read() + open("b.txt").read())', {
      entity_id: `up-${field.replace(/\W/g, '')}`,
    });
    expect([ran.session_id, ran.stdout]).toEqual([session_id, 'aab\n']);
  });

  test('GET /files lists in each detail, DELETE removes, and an unknown session has no files', async () => {
    const { session_id, files } = await service.upload('a.txt', 'a');
    const id = files[0]?.id;
    const list = async (detail: string) =>
      ok(await service.get(`/files/${session_id}?detail=${detail}`)).json<unknown[]>();
    expect(ok(await service.get(`/files/${session_id}`)).json()).toEqual([`${session_id}/${id}`]);
    expect(await list('simple')).toEqual([`${session_id}/${id}`]);
    expect(await list('summary')).toMatchObject([{ name: `${session_id}/${id}.txt`, size: 1 }]);
    expect(await list('full')).toMatchObject([{ metadata: { 'original-filename': 'a.txt' }, readOnly: false }]);
    expect(ok(await service.send('DELETE', `/files/${session_id}/${id}`)).json()).toEqual({ status: 'deleted' });
    expect(await list('full')).toEqual([]);
    expect((await service.send('DELETE', `/files/${session_id}/${id}`)).status).toBe(404);
    expect((await service.get(`/download/${session_id}/${id}`)).status).toBe(404);
  });

  test.each([
    ['an entity_id of 41 characters', { lang: 'py', code: '1', entity_id: 'a'.repeat(41) }, 422],
    ['an entity_id with a slash', { lang: 'py', code: '1', entity_id: 'a/b' }, 422],
    ['no code', { lang: 'py' }, 400],
    ['code that is no text', { lang: 'py', code: 1 }, 400],
    ['files that are no list', { lang: 'py', code: '1', files: {} }, 400],
  ])('a request with %s is refused, and the answer says what is wrong', async (_, body, status) => {
    const reply = await service.post('/exec', body);
    expect(reply.status).toBe(status);
    expect(reply.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(reply.json<Problem>()).toMatchObject({ status, detail: expect.stringMatching(/\w+ \w+.*\.$/s) });
  });

  test('a body that is not JSON is refused', async () => {
    const headers = { 'content-type': 'application/json' };
    expect((await service.send('POST', '/exec', { headers, body: '{"lang":' })).status).toBe(400);
    expect((await service.send('POST', '/exec', { headers, body: '' })).status).toBe(400);
  });

  test('a missing module is answered with a hint how to install it', async () => {
    const { stderr, run } = await service.python('import seaborn_of_somebody_else');
    expect(stderr).toContain('No module named');
    const { stderr: known, run: other } = await service.python('import sklearn');
    expect(`${known} ${other.message}`).toMatch(/scikit-learn/);
    expect(`${stderr} ${run.message}`).not.toMatch(/pip install seaborn_of_somebody_else/);
  });
});

describe('against known failures of such servers,', () => {
  test('a warm call does not start a process, and others are answered while interpreters start (1)', async () => {
    const before = await service.python('import os; print(os.getpid())', { entity_id: 'warm' });
    const after = await service.python('print(os.getpid())', { entity_id: 'warm' });
    expect(after.stdout).toBe(before.stdout);

    let answered = 0;
    const starts = Promise.all(['s1', 's2', 's3'].map((entity_id) => service.python('1', { entity_id }))).then(
      () => answered,
    );
    // The first answers of these come while the interpreters start, not in a row after them.
    const others = Array.from({ length: 5 }, async () => {
      ok(await service.get('/'));
      answered += 1;
    });
    await Promise.all(others);
    expect(await starts).toBeGreaterThan(0);
  });

  test('calls to one session at once each get their own output and run one after the other (2)', async () => {
    await service.python('log = []', { entity_id: 'three' });
    const code = (mark: string) =>
      `import time\nlog.append("${mark}+")\nfor i in range(5):\n    print("${mark}", i); time.sleep(0.02)\nlog.append("${mark}-")`;
    const marks = ['a', 'b', 'c', 'd'];
    const answers = await Promise.all(marks.map((mark) => service.python(code(mark), { entity_id: 'three' })));
    answers.forEach(({ stdout }, index) => {
      expect(stdout).toBe([0, 1, 2, 3, 4].map((i) => `${marks[index]} ${i}\n`).join(''));
    });
    const { stdout } = await service.python('print("".join(log))', { entity_id: 'three' });
    expect(stdout).toMatch(/^(([a-d])\+\2-){4}\n$/);
  });

  test('files written by calls at once belong to the call that wrote them (2)', async () => {
    const write = (name: string) =>
      service.python(`import time; open("${name}", "w").write("${name}"); time.sleep(0.05); None`, { entity_id: 'wr' });
    const answers = await Promise.all(['x', 'y', 'z'].map(write));
    expect(answers.map(({ files }) => files.map(({ name }) => name))).toEqual([['x'], ['y'], ['z']]);
  });

  test('a stream survives silence (3)', async () => {
    const stream = await service.stream({
      lang: 'py',
      code: 'import time; print("before", flush=True); time.sleep(2.5); print("after")',
    });
    expect(await stream.ended).toBe(true);
    expect(stream.printed()).toBe('before\nafter\n');
    expect(stream.events.at(-1)).toMatchObject({ type: 'done', stdout: 'before\nafter\n' });
    const [before, after] = [stream.events[1]?.at ?? 0, stream.events.at(-2)?.at ?? 0];
    expect(after - before, 'told as it happens').toBeGreaterThan(2000);
  });

  test.each([
    ['that sleeps', 'import time; time.sleep(600)'],
    ['that works', 'while True: pass'],
    ['that waits for a child', 'import subprocess; subprocess.run(["sleep", "600"])'],
  ])('a time-out of code %s names its reason, and the next call works at once (4)', async (_, code) => {
    const entity_id = 'slow';
    await service.python('kept = 1', { entity_id });
    const answer = await service.python(`print("begun")\n${code}`, { entity_id, timeout: 1500 });
    expect(answer.stdout).toBe('begun\n');
    expect(answer.stderr).toMatch(/Timed out after 1\.5 s/);
    expect(answer.run).toMatchObject({
      status: 'TO',
      code: 124,
      reason: 'timeout',
      message: expect.stringContaining('Timed out'),
    });
    expect((await service.python('print(kept)', { entity_id })).stdout).toBe('1\n');
  });

  test('the setting EXECUTION_TIMEOUT holds for calls that set no time limit (4)', async () => {
    const other = await anotherService({ home: service.home, env: { EXECUTION_TIMEOUT: '0.5' } });
    const answers = await Promise.all([other.python('while True: pass'), other.bash('sleep 30')]);
    for (const { stderr, run } of answers) {
      expect(stderr).toMatch(/Timed out after 0\.5 s/);
      expect(run.code).toBe(124);
    }
  });

  test.each([
    ['os._exit(9)', 'import os; os._exit(9)', 9],
    ['a kill of itself', 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)', 137],
    ['sys.exit(3)', 'import sys; sys.exit(3)', 3],
  ])('the next call works after %s (5)', async (_, code, status) => {
    const { session_id, run } = await service.python(code, { entity_id: 'dies' });
    expect(run.code).toBe(status);
    const next = await service.python('print("alive")', { entity_id: 'dies' });
    expect([next.stdout, next.session_id]).toEqual(['alive\n', session_id]);
  });

  test('code finds the key neither in its environment nor in that of its parent (6)', async () => {
    const keyed = await anotherService({ home: service.home, env: { CODE_INTERPRETER_API_KEY: KEY } });
    const caller = keyed.as({ 'x-api-key': KEY });
    const look = `import os, re
pid, found = os.getpid(), [repr(dict(os.environ))]
while pid > 0:
    try:
        found += [open("/proc/%d/%s" % (pid, name), errors="replace").read() for name in ("environ", "cmdline")]
        pid = int(re.sub(r"^.*\\) . (\\d+) .*$", r"\\1", open("/proc/%d/stat" % pid).read(), flags=re.S))
    except OSError: break
    if "main.js" in found[-1]: break
print(len(found), "4711" in "".join(found))`;
    const answers = [
      await caller.python(look),
      await caller.bash(`python3 - <<'PY'\n${look}\nPY`),
      await caller.bash('env; cat /proc/self/environ /proc/$PPID/environ | tr "\\0" "\\n"'),
    ];
    for (const { stdout } of answers.slice(0, 2)) expect(stdout).toMatch(/^\d+ False\n$/);
    for (const { stdout } of answers) expect(stdout).not.toContain(KEY);
  });

  test('a link to a file outside is neither an output nor a download (6)', async () => {
    const answer = await service.bash('ln -s /etc/passwd leak.txt; ln -s /etc dir; echo x > own.txt');
    expect(answer.files.map(({ name }) => name)).toEqual(['own.txt']);
    const listed = ok(await service.get(`/files/${answer.session_id}?detail=full`)).text;
    expect(listed).not.toMatch(/leak|passwd/);
  });

  test.each(['py', 'bash'])('processes that %s code leaves behind end with the call (7)', async (lang) => {
    const mark = `3${Math.floor(Math.random() * 1e6)}`;
    const shell = `setsid sleep ${mark}.1 & (sleep ${mark}.2 &) ; nohup setsid sleep ${mark}.3 >/dev/null 2>&1 & echo started`;
    const code =
      lang === 'bash' ? shell : `import subprocess; subprocess.Popen(["bash", "-c", ${JSON.stringify(shell)}]).wait()`;
    const answer = await service.exec({ lang, code });
    expect(answer.stdout).toContain('started');
    expect(processesOf(service.home.root, `sleep ${mark}`)).toEqual([]);
  });

  test('processes that code leaves behind end with a time-out too (7)', async () => {
    const seconds = `345.${process.pid}`;
    const answer = await service.bash(`setsid sleep ${seconds} & echo $!; trap "" INT TERM; sleep ${seconds}`, {
      timeout: 2000,
    });
    expect(answer.run.status).toBe('TO');
    expect(answer.stdout, 'it was started').toMatch(/^\d+\n$/);
    expect(processesOf(service.home.root, `sleep ${seconds}`)).toEqual([]);
  });

  test('bash runs without strict mode unless that is set (8)', async () => {
    const code = 'false\necho "[$undefined]"\nfalse | true; echo "$?"';
    expect(await service.bash(code)).toMatchObject({ stdout: '[]\n0\n', run: { code: 0 } });
    const strict = await anotherService({ home: service.home, env: { BASH_STRICT_MODE: 'true' } });
    expect(await strict.bash(code)).toMatchObject({ stdout: '', run: { code: 1 } });
  });

  test('the reported times and memory are those of the code (10)', async () => {
    const { run } = await service.python(
      'import time\nx = bytearray(150 << 20)\nuntil = time.process_time() + 0.3\nwhile time.process_time() < until: pass\ntime.sleep(0.3)',
    );
    expect(run.cpu_time).toBeGreaterThanOrEqual(290);
    expect(run.wall_time).toBeGreaterThanOrEqual(590);
    expect(run.wall_time).toBeGreaterThan(run.cpu_time ?? 0);
    expect(run.memory).toBeGreaterThan(150 << 20);
    expect(run.memory).toBeLessThan(1 << 30);
  });

  test('images come as files, whether they were saved or shown (10)', async () => {
    const answer = await service.python(
      'import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.savefig("saved.png")\nplt.figure(); plt.plot([2, 1]); plt.show()',
      { entity_id: 'plots' },
    );
    expect(answer.stderr).toBe('');
    expect(answer.files.map(({ name }) => name)).toContain('saved.png');
    expect(answer.files.length).toBeGreaterThanOrEqual(2);
    const pictures = await Promise.all(answer.files.map((file) => service.download(file)));
    for (const bytes of pictures) expect(bytes.subarray(1, 4).toString()).toBe('PNG');
    const next = await service.python('import matplotlib.pyplot as plt; plt.plot([3]); plt.show()', {
      entity_id: 'plots',
    });
    expect(next.files.map(({ name }) => name)).toHaveLength(1);
    expect(answer.files.map(({ name }) => name)).not.toContain(next.files[0]?.name);
  });

  test('a session can be deleted with its variables, its files and its processes (10)', async () => {
    const first = await service.python('x = 1; open("f", "w").write("f"); None', { entity_id: 'del' });
    expect(processesOf(first.session_id)).not.toEqual([]);
    const reply = ok(await service.send('DELETE', `/sessions/${first.session_id}`));
    expect(reply.json()).toEqual({ status: 'deleted' });
    await allGone(first.session_id);
    expect((await service.get(`/download/${first.session_id}/${first.files[0]?.id}`)).status).toBe(404);
    const next = await service.python('import os; print("x" in dir(), os.listdir())', { entity_id: 'del' });
    expect(next.stdout).toBe('False []\n');
    expect((await service.send('DELETE', `/sessions/${'x'.repeat(21)}`)).status).toBe(404);
  });

  test('deleting a session ends the code that runs in it (10)', async () => {
    const stream = await service.stream({ lang: 'py', code: 'import time; print("x", flush=True); time.sleep(600)' });
    await stream.event('stream');
    ok(await service.send('DELETE', `/sessions/${stream.events[0]?.session_id}`));
    await stream.event('done');
    expect(await stream.ended).toBe(true);
  });

  test('bodies and uploads have limits, and nothing of what was refused stays (11)', async () => {
    const small = await anotherService({
      home: service.home,
      args: ['--max-body', '20kB', '--max-upload', '100kB', '--session-quota', '150kB'],
    });
    const body = await small.post('/exec', { lang: 'py', code: `#${'x'.repeat(21_000)}` });
    expect([body.status, body.json<Problem>().code]).toEqual([413, 'too_large']);
    const chunked = await small.send('POST', '/exec', {
      headers: { 'content-type': 'application/json', 'transfer-encoding': 'chunked' },
      body: [Buffer.from('{"lang":"py","code":"#'), Buffer.alloc(21_000, 120), Buffer.from('"}')],
    });
    expect(chunked.status).toBe(413);
    const fields: [string, string] = ['entity_id', 'limited'];
    const upload = (size: number) =>
      small.send('POST', '/upload', formOf([fields, { name: 'f', content: Buffer.alloc(size) }]));
    const tooLarge = await upload(100_001);
    expect([tooLarge.status, tooLarge.json<Problem>().code]).toEqual([413, 'too_large']);
    const { session_id } = ok(await upload(100_000)).json<UploadAnswer>();
    expect((await upload(90_000)).status).toBe(507);
    expect(ok(await small.get(`/files/${session_id}`)).json<unknown[]>()).toHaveLength(1);
    const written = await small.bash('head -c 90000 /dev/zero > g; echo ran', { entity_id: 'limited' });
    expect(written.files).toEqual([]);
    // The code is ended for it where its files happen to be counted while it runs.
    if (written.run.reason === 'disk-quota') expect(written.run.message).toMatch(/limit of its session's disk/);
    else {
      expect(written).toMatchObject({ stdout: 'ran\n', stderr: '' });
      expect(written.run.message).toMatch(/\bg\b.*150000 bytes/);
    }
  });

  test('an upload that is cut off leaves nothing (11)', async () => {
    const abort = new AbortController();
    const form = formOf([['entity_id', 'cut'], { name: 'f', content: Buffer.alloc(100_000) }]);
    const body = form.body.slice(0, -2);
    // The rest never comes: the connection ends first.
    const sent = service.send('POST', '/upload', {
      headers: { ...form.headers, 'content-length': '200000', 'transfer-encoding': '' },
      body,
      signal: abort.signal,
    });
    setTimeout(() => abort.abort(), 200);
    await expect(sent).rejects.toThrow();
    const { session_id } = await service.python('1', { entity_id: 'cut' });
    expect(ok(await service.get(`/files/${session_id}`)).json()).toEqual([]);
  });
});

test('a downloaded file is what was written, to the byte', async () => {
  const answer = await service.python(
    'import hashlib, os\ndata = os.urandom(1 << 20); open("r.bin", "wb").write(data); print(hashlib.sha256(data).hexdigest())',
  );
  const [file] = answer.files;
  if (!file) throw new Error('no file');
  const bytes = await service.download(file);
  expect(answer.stdout.trim()).toBe(createHash('sha256').update(bytes).digest('hex'));
});
