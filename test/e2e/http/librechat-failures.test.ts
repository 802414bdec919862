/** Repeats twenty ways in which servers are known to break LibreChat, and uses both of its dialects at once, at every path it may use. */

import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { differenceOf } from '../harness.ts';
import {
  anotherService,
  type ExecAnswer,
  formOf,
  ID,
  ok,
  type Problem,
  refusalOf,
  type UploadAnswer,
  useService,
} from './service.ts';

const service = await useService();

const fresh = (answer: ExecAnswer) => answer.files.filter(({ inherited }) => !inherited);
const ref = ({ storage_session_id, files }: UploadAnswer, name = files[0]?.filename) => ({
  id: files[0]?.fileId,
  name,
  storage_session_id,
});

describe('against known ways to break LibreChat,', () => {
  test('a client without any credential is let in where none is set (1)', async () => {
    expect((await service.exec({ lang: 'bash', code: 'echo in' })).stdout).toBe('in\n');
    const withOne = { headers: { 'x-api-key': 'left over', authorization: 'Bearer left.over.too' } };
    expect((await service.exec({ lang: 'bash', code: 'echo in' }, withOne)).stdout).toBe('in\n');
  });

  test('the answer to an upload names the storage session, and so does the one to a batch (2)', async () => {
    const single = await service.upload('a.txt', 'a');
    const form = formOf([{ name: 'a.txt', content: 'a' }]);
    const batch = ok(await service.send('POST', '/upload/batch', form)).json<UploadAnswer>();
    for (const { storage_session_id, session_id } of [single, batch]) {
      expect(storage_session_id).toMatch(ID);
      expect(session_id).toBe(storage_session_id);
    }
  });

  test.each(['session_id', 'storage_session_id'])('a file is found by %s alone (3)', async (field) => {
    const uploaded = await service.upload('a.txt', 'found');
    const files = [{ id: uploaded.files[0]?.fileId, name: 'a.txt', [field]: uploaded.storage_session_id }];
    expect((await service.bash('cat a.txt', { files })).stdout).toBe('found');
  });

  test('unknown fields are ignored, and optional fields may be null (4)', async () => {
    const uploaded = await service.upload('a.txt', 'a');
    const answer = await service.exec({
      lang: 'bash',
      code: 'cat a.txt',
      codeSessionKey: 'execute_code',
      isTemporary: true,
      intent: 'to read',
      user_id: null,
      session_id: null,
      entity_id: null,
      args: null,
      __proto__: { polluted: true },
      files: [{ ...ref(uploaded), extra: { deep: [1] } }],
    });
    expect(answer.stdout).toBe('a');
  });

  test('output and session are at the top of the answer (5)', async () => {
    const answer = await service.bash('echo out; echo err >&2');
    expect(answer).toMatchObject({ stdout: 'out\n', stderr: 'err\n', session_id: expect.stringMatching(ID) });
  });

  test('ids have 21 characters that a path can hold (6)', async () => {
    const answer = await service.bash('echo x > a.tar.gz');
    const uploaded = await service.upload('a.tar.gz', 'x');
    for (const id of [answer.session_id, answer.files[0]?.id, uploaded.session_id, uploaded.files[0]?.fileId])
      expect(id).toMatch(ID);
  });

  test('outputs are kept under the session of the answer, even when inputs came from others (7)', async () => {
    const uploaded = await service.upload('in.txt', 'x');
    for (const lang of ['bash', 'py']) {
      const code = lang === 'bash' ? 'cp in.txt out.txt' : 'open("out.txt", "w").write("x")';
      const answer = await service.exec({ lang, code, files: [ref(uploaded)] });
      expect(fresh(answer)).toMatchObject([
        { name: 'out.txt', session_id: answer.session_id, storage_session_id: answer.session_id },
      ]);
      expect(answer.session_id).not.toBe(uploaded.session_id);
    }
  });

  test('inputs that did not change come back as inherited, if they come back (8)', async () => {
    const uploaded = await service.upload('in.txt', 'x');
    for (const lang of ['bash', 'py']) {
      const code = lang === 'bash' ? 'cat in.txt > /dev/null' : 'open("in.txt").read()';
      const answer = await service.exec({ lang, code, files: [ref(uploaded)] });
      expect(fresh(answer)).toEqual([]);
      expect(answer.files.map(({ id }) => id)).toEqual([uploaded.files[0]?.fileId]);
    }
  });

  test('outputs say when they were made, in UTC (9)', async () => {
    const answer = await service.bash('echo x > a');
    const path = `/sessions/${answer.session_id}/objects/${answer.files[0]?.id}`;
    const { lastModified } = ok(await service.get(path)).json<{ lastModified: string }>();
    expect(lastModified).toMatch(/Z$/);
    expect(Date.now() - Date.parse(lastModified)).toBeLessThan(60_000);
  });

  test('files cannot be set to expire within a day (10)', async () => {
    const { code, stderr } = await refusalOf(service.home, ['--keep-files', '3600']);
    expect(code).toBe(2);
    expect(stderr).toMatch(/keepFiles.*--keep-files.*86400/s);
  });

  test('of two files with one name, the last wins (11)', async () => {
    const [first, second] = [await service.upload('a.txt', 'first'), await service.upload('b.txt', 'second')];
    const files = [ref(first, 'same.txt'), ref(second, 'same.txt')];
    for (const lang of ['bash', 'py']) {
      const code = lang === 'bash' ? 'cat same.txt; ls' : 'import os; print(open("same.txt").read(), os.listdir())';
      const answer = await service.exec({ lang, code, files });
      expect(answer.stdout).toMatch(/^second ?\[?'?same.txt'?\]?\n$/);
      expect(answer.stderr).toBe('');
    }
  });

  test('a reference to a file that is gone does not fail the run and is not mentioned in its output (12)', async () => {
    const kept = await service.upload('kept.txt', 'kept');
    const gone = { id: 'x'.repeat(21), storage_session_id: 'y'.repeat(21), name: 'gone.txt' };
    const answer = await service.bash('cat kept.txt; ls', { files: [gone, ref(kept)] });
    expect(answer).toMatchObject({ stdout: 'keptkept.txt\n', stderr: '' });
    expect(answer.run.message).toMatch(/gone\.txt/);
  });

  test('output is whole and undecorated, whatever is in it (13)', async () => {
    const size = 10 << 20;
    const { stdout, stderr } = await service.bash(
      `head -c ${size} /dev/zero | tr '\\0' 'x' | fold -w 79; printf '\\r\\033[31mred\\001 no newline'`,
    );
    const lines = Array.from({ length: Math.ceil(size / 79) }, (_, row) => 'x'.repeat(Math.min(79, size - row * 79)));
    expect(differenceOf(stdout, `${lines.join('\n')}\r\u001b[31mred\u0001 no newline`)).toBe('');
    expect(stderr).toBe('');
  });

  test.each([
    ['a syntax error in Python', { lang: 'py', code: 'print(' }, /SyntaxError/],
    ['an exception', { lang: 'py', code: '1 / 0' }, /ZeroDivisionError/],
    ['a syntax error in bash', { lang: 'bash', code: 'if true' }, /syntax error/],
    ['a time-out in bash', { lang: 'bash', code: 'sleep 30', timeout: 300 }, /Timed out after 0\.3 s/],
    [
      'a time-out in Python',
      { lang: 'py', code: 'import time; time.sleep(30)', timeout: 300 },
      /Timed out after 0\.3 s/,
    ],
    ['a crash', { lang: 'py', code: 'import os; os.kill(os.getpid(), 11)' }, /segmentation fault/],
    [
      'a missing module',
      { lang: 'py', code: 'import no_such_module_at_all' },
      /No module named 'no_such_module_at_all'/,
    ],
    ['a missing command', { lang: 'bash', code: 'no_such_command' }, /command not found/],
  ])('%s is reported in stderr, with status 200 (14)', async (_, body, reason) => {
    expect((await service.exec(body)).stderr).toMatch(reason);
  });

  test('a limit is reported with 429, in the words that the client reads (14)', async () => {
    const limited = await anotherService({ home: service.home, args: ['--rate-limit', '1'] });
    await limited.bash('true');
    const reply = await limited.post('/exec', { lang: 'bash', code: 'true' });
    expect(reply.status).toBe(429);
    const { error, retry_after_seconds: seconds = 0 } = reply.json<Problem>();
    expect(error).toBe('rate_limited');
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(reply.headers['retry-after']).toBe(String(seconds));
  });

  test('a shell has the Python of the service and what scripts expect (15)', async () => {
    const { stdout, stderr } = await service.bash(
      'python3 -c "import pandas, sys; print(sys.prefix)"; python3 - <<EOF\nprint("heredoc")\nEOF\nls / > /dev/null && echo ls; sort <<< b; awk "BEGIN { print 1 + 1 }"',
    );
    const { stdout: prefix } = await service.python('import sys; print(sys.prefix)');
    expect([stdout, stderr]).toEqual([`${prefix}heredoc\nls\nb\n2\n`, '']);
  });

  test('a shell starts fresh with every call, and files carry over by their references (16)', async () => {
    const first = await service.bash(
      'x=1; export y=2; cd /; echo carried > /mnt/data/f; echo scratch > /tmp/cv-scratch',
    );
    const files = first.files.map(({ id, name, storage_session_id }) => ({ id, name, storage_session_id }));
    const second = await service.bash('echo "[$x$y]"; pwd; cat f; rm -f /tmp/cv-scratch', { files });
    expect(second.stdout).toBe('[]\n/mnt/data\ncarried\n');
  });

  test.each([
    'skills/x/ref/a.md',
    'schema.xsd',
    'run.exe',
    'ünï cödé.txt',
    '日本語.csv',
    "it's (1) #&%.txt",
    '.hidden',
    'no-extension',
    'NFD-é.txt',
  ])('%s keeps its name from the upload to the code and back (17)', async (name) => {
    const uploaded = await service.upload(name, 'x');
    expect(uploaded.files[0]?.filename).toBe(name);
    const { stdout, files } = await service.python(
      'import os\nfor root, _, names in os.walk("."):\n    for name in names: print(os.path.relpath(os.path.join(root, name)))',
      { files: [ref(uploaded)] },
    );
    expect(stdout.normalize('NFC')).toBe(`${name.normalize('NFC')}\n`);
    expect(files.map((file) => file.name)).toEqual([name.normalize('NFC')]);
  });

  test('each file reference has a session of its own (18)', async () => {
    const uploads = [await service.upload('1', 'a'), await service.upload('2', 'b'), await service.upload('3', 'c')];
    const files = uploads.map((uploaded) => ref(uploaded));
    expect(new Set(files.map(({ storage_session_id }) => storage_session_id)).size).toBe(3);
    expect((await service.bash('cat 1 2 3', { files })).stdout).toBe('abc');
  });

  test('large bodies and uploads are accepted, and connections are kept for longer than clients keep them (19)', async () => {
    const large = Buffer.alloc(160 << 20, 1);
    const uploaded = await service.upload('large.bin', large);
    expect(uploaded.files[0]?.size).toBe(large.length);
    const code = `wc -c <<'END'\n${`${'x'.repeat(1023)}\n`.repeat(33 << 10)}END\n`;
    const reply = ok(await service.post('/exec', { lang: 'bash', code }, { headers: { connection: 'keep-alive' } }));
    expect(reply.json<ExecAnswer>().stdout).toBe(`${33 << 20}\n`);
    expect(Number(/timeout=(\d+)/.exec(String(reply.headers['keep-alive']))?.[1])).toBeGreaterThanOrEqual(30);
  });

  test('an output can be downloaded whole as soon as it is reported (20)', async () => {
    for (const round of [1, 2, 3]) {
      const { files } = await service.bash(
        `head -c ${round * 3_000_000} /dev/urandom > big.bin; sha256sum < big.bin > sum`,
      );
      const [big, sum] = ['big.bin', 'sum'].map((name) => files.find((file) => file.name === name));
      if (!big || !sum) throw new Error(JSON.stringify(files));
      const [bytes, expected] = await Promise.all([service.download(big), service.download(sum)]);
      expect(bytes.length).toBe(round * 3_000_000);
      expect(`${createHash('sha256').update(bytes).digest('hex')}  -\n`).toBe(expected.toString());
    }
  });
});

describe('both dialects of LibreChat', () => {
  test.each(['', '/v1', '/', '//', '/v1/', '/v1//', '//v1//'])('work with "%s" before the path', async (base) => {
    const at = (path: string) => `${base}${path}`;
    const form = formOf([{ name: 'a.txt', content: 'x' }]);
    const uploaded = ok(await service.send('POST', at('/upload'), form)).json<UploadAnswer>();
    const body = { lang: 'bash', code: 'cat a.txt > b.txt', files: [ref(uploaded)] };
    const { session_id, files } = ok(await service.post(at('/exec'), body)).json<ExecAnswer>();
    const file = files.find(({ name }) => name === 'b.txt');
    expect(ok(await service.get(at(`/download/${session_id}/${file?.id}`))).text).toBe('x');
    expect((await service.get(at(`/sessions/${session_id}/objects/${file?.id}`))).status).toBe(200);
    expect(ok(await service.get(at('/health'))).json()).toMatchObject({ status: 'healthy' });
  });

  test('work with a slash after the path', async () => {
    expect(ok(await service.post('/v1/exec/', { lang: 'bash', code: 'echo x' })).json<ExecAnswer>().stdout).toBe('x\n');
    expect((await service.get('/health/')).status).toBe(200);
  });

  test('may name the files of one call', async () => {
    const [old, current] = [await service.upload('old', 'a'), await service.upload('current', 'b')];
    const files = [
      { id: old.files[0]?.fileId, session_id: old.session_id, name: 'old' },
      { ...ref(current), kind: 'user', resource_id: 'u' },
    ];
    expect((await service.bash('cat old current', { files })).stdout).toBe('ab');
  });

  test('name every file of an answer', async () => {
    const answer = await service.bash('echo > a');
    expect(answer.files).toMatchObject([{ session_id: answer.session_id, storage_session_id: answer.session_id }]);
    const uploaded = await service.upload('a', 'a');
    expect(uploaded.files[0]).toMatchObject({
      id: uploaded.files[0]?.fileId,
      session_id: uploaded.session_id,
      storage_session_id: uploaded.session_id,
    });
  });
});
