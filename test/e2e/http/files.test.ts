/** Exchanges files between callers and code, and checks what comes in, what goes out, under which names, and what never does. */

import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  type ExecAnswer,
  formOf,
  type OutputFile,
  ok,
  type Problem,
  type UploadAnswer,
  useService,
} from './service.ts';

const service = await useService();

const ref = ({ session_id, files }: UploadAnswer, name = files[0]?.name) => ({ id: files[0]?.id, session_id, name });
const named = (answer: ExecAnswer, name: string): OutputFile => {
  const found = answer.files.find((file) => file.name === name);
  if (!found) throw new Error(`No ${name} in ${JSON.stringify(answer)}`);
  return found;
};
const content = async (file: OutputFile) => (await service.download(file)).toString();

describe.each([
  [
    'py',
    (shell: string) => `import subprocess; subprocess.run(["bash", "-c", ${JSON.stringify(shell)}], check=True); None`,
  ],
  ['bash', (shell: string) => shell],
])('with %s code,', (lang, code) => {
  const run = (shell: string, more: object = {}) => service.exec({ lang, code: code(shell), ...more });

  test('an input that is only read is returned as inherited to a client that knows what that means', async () => {
    const uploaded = await service.upload('in.txt', 'in');
    const { session_id, ...reference } = ref(uploaded);
    const answer = await run('cat in.txt', { files: [{ ...reference, storage_session_id: session_id }] });
    expect(answer.files).toMatchObject([{ id: uploaded.files[0]?.id, name: 'in.txt', inherited: true }]);
    expect(answer.deleted_files).toBeUndefined();
    const older = await run('cat in.txt', { files: [{ ...reference, session_id }] });
    expect([older.stdout, older.files]).toEqual(['in', []]);
  });

  test('an input that is changed gets a new id under its name, and the old one stays as it was', async () => {
    const uploaded = await service.upload('in.txt', 'in');
    const answer = await run('echo more >> in.txt', { files: [ref(uploaded)] });
    expect(answer.files).toHaveLength(1);
    const file = named(answer, 'in.txt');
    expect(file.inherited).toBeUndefined();
    expect(file.id).not.toBe(uploaded.files[0]?.id);
    expect(await content(file)).toBe('inmore\n');
    const old = { id: uploaded.files[0]?.id ?? '', session_id: uploaded.session_id };
    expect((await service.download(old)).toString()).toBe('in');
  });

  test('an input that is changed without a change of its size counts as changed', async () => {
    const uploaded = await service.upload('in.txt', 'aaaa');
    const answer = await run('printf bbbb > in.txt', { files: [ref(uploaded)] });
    expect(await content(named(answer, 'in.txt'))).toBe('bbbb');
  });

  test('an input that is removed or renamed is reported as deleted', async () => {
    const [a, b] = [await service.upload('a', 'a'), await service.upload('b', 'b')];
    const answer = await run('rm a; mv b c', { files: [ref(a), ref(b)] });
    expect(answer.deleted_files?.sort()).toEqual(['a', 'b']);
    expect(answer.files.map(({ name }) => name)).toEqual(['c']);
  });

  test('an input that is read-only never comes back and is whole in the next call', async () => {
    const form = formOf([['read_only', 'true'], { name: 'skills/x/SKILL.md', content: 'original' }]);
    const uploaded = ok(await service.send('POST', '/upload/batch', form)).json<UploadAnswer>();
    const entity_id = `read-only-${lang}`;
    const first = await run('chmod 644 skills/x/SKILL.md; echo changed > skills/x/SKILL.md; echo new > skills/x/new', {
      files: [ref(uploaded)],
      entity_id,
    });
    expect(first.files.filter(({ inherited }) => !inherited).map(({ name }) => name)).toEqual(['skills/x/new']);
    const next = await run('cp skills/x/SKILL.md out', { files: [ref(uploaded)], entity_id });
    expect(await content(named(next, 'out'))).toBe('original');
  });

  test('files in folders and with names of all kinds come back under their names', async () => {
    const answer = await run(
      'mkdir -p "a b/c" && echo 1 > "a b/c/d e.txt"; echo 2 > ünï.txt; echo 3 > "q\'uo\\"te"; : > empty; mkdir emptyfolder',
    );
    expect(answer.files.map(({ name, size }) => [name, size]).sort()).toEqual(
      [
        ['a b/c/d e.txt', 2],
        ['empty', 0],
        ['q\'uo"te', 2],
        ['ünï.txt', 2],
      ].sort(),
    );
    const contents = await Promise.all(answer.files.map(async (file) => [file.name, await content(file)]));
    expect(Object.fromEntries(contents)).toEqual({
      'a b/c/d e.txt': '1\n',
      empty: '',
      'q\'uo"te': '3\n',
      'ünï.txt': '2\n',
    });
  });

  test('what is not a regular file is neither listed nor served', async () => {
    const entity_id = `special-${lang}`;
    const answer = await run(
      'ln -s /etc/passwd link; ln -s . loop; ln -s missing dangling; mkdir d; ln -s /etc d/etc; mkfifo fifo d/fifo; ' +
        'mknod device c 1 5 2>/dev/null || true; mknod disk b 7 0 2>/dev/null || true; ' +
        'python3 -c "import socket; socket.socket(socket.AF_UNIX).bind(\'socket\')"; echo x > d/regular',
      { entity_id },
    );
    expect(answer.stderr).toBe('');
    expect(answer.files.map(({ name }) => name)).toEqual(['d/regular']);
    const listed = ok(await service.get(`/files/${answer.session_id}?detail=normalized`)).json<{ name: string }[]>();
    expect(listed.map(({ name }) => name)).toEqual(['d/regular']);
    expect((await run('echo fine > fine', { entity_id })).files.map(({ name }) => name)).toEqual(['fine']);
  });
});

describe('outputs', () => {
  test('are reported once, and not again while they do not change', async () => {
    const entity_id = 'once';
    const first = await service.python('open("f", "w").write("1"); None', { entity_id });
    expect(first.files.map(({ name }) => name)).toEqual(['f']);
    expect((await service.python('open("f").read()', { entity_id })).files).toEqual([]);
    const third = await service.python('open("f", "w").write("2"); None', { entity_id });
    expect(third.files.map(({ name }) => name)).toEqual(['f']);
    expect(third.files[0]?.id).not.toBe(first.files[0]?.id);
    expect(await content(named(first, 'f'))).toBe('1');
    expect(await content(named(third, 'f'))).toBe('2');
  });

  test('can be read at once, even many of them', async () => {
    const answer = await service.bash('for i in $(seq 100); do echo $i > f$i; done');
    expect(answer.files).toHaveLength(100);
    const contents = await Promise.all(answer.files.map(content));
    expect(contents).toEqual(answer.files.map(({ name }) => `${name.slice(1)}\n`));
  });

  test('are there however the code ended', async () => {
    for (const [lang, code] of [
      ['py', 'open("f", "w").write("f")\nraise SystemExit(3)'],
      ['py', 'import os\nopen("f", "w").write("f").real\nos._exit(9)'],
      ['bash', 'echo f > f; exit 3'],
      ['bash', 'echo f > f; kill -9 $$'],
    ]) {
      const { files, run } = await service.exec({ lang, code });
      expect([code, files.map(({ name }) => name), run.code === 0]).toEqual([code, ['f'], false]);
    }
    const late = await service.bash('echo f > f; sleep 30', { timeout: 300 });
    expect(late.files.map(({ name }) => name)).toEqual(['f']);
  });

  test('do not include what tools leave for themselves', async () => {
    const answer = await service.bash(
      'mkdir -p __pycache__ node_modules .git && touch __pycache__/x.pyc node_modules/y .git/z; echo "import m" > a.py; echo > m.py; python3 a.py',
    );
    expect(answer.files.map(({ name }) => name)).toEqual(['a.py', 'm.py']);
  });
});

describe('inputs', () => {
  test('go where the call says, not where they were uploaded to', async () => {
    const uploaded = await service.upload('original.txt', 'x');
    const { session_id, ...reference } = ref(uploaded, 'other/place.txt');
    const files = [{ ...reference, storage_session_id: session_id }];
    const answer = await service.bash('find . -type f', { files });
    expect(answer.stdout).toBe('./other/place.txt\n');
    expect(answer.files[0]?.name).toBe('other/place.txt');
  });

  test('with the same name are resolved to the last one, and one more call makes no difference', async () => {
    const [a, b] = [await service.upload('x', 'a'), await service.upload('x', 'b')];
    for (const files of [
      [ref(a), ref(b)],
      [ref(b), ref(a)],
    ]) {
      const wanted = files[1]?.id === b.files[0]?.id ? 'b' : 'a';
      expect((await service.python('print(open("x").read())', { files, entity_id: 'twins' })).stdout).toBe(
        `${wanted}\n`,
      );
    }
  });

  test('that are gone are left out, and only the message says so', async () => {
    const uploaded = await service.upload('gone.txt', 'x');
    ok(await service.send('DELETE', `/files/${uploaded.session_id}/${uploaded.files[0]?.id}`));
    for (const lang of ['py', 'bash']) {
      const code = lang === 'py' ? 'import os; print(os.listdir())' : 'ls -A | wc -l';
      const answer = await service.exec({ lang, code, files: [ref(uploaded, 'gone.txt')] });
      expect([answer.stdout, answer.stderr]).toEqual([lang === 'py' ? '[]\n' : '0\n', '']);
      expect(answer.run.message).toMatch(/gone\.txt.*upload it again/);
    }
  });

  test('do not follow a link that code has put in their place', async () => {
    const entity_id = 'trap';
    const folder = service.home.project('target');
    const target = join(folder, 'file');
    writeFileSync(target, 'safe');
    await service.bash(`ln -s ${target} f; ln -s ${folder} d`, { entity_id });
    await service.upload('f', 'uploaded', { entity_id });
    await service.upload('d/g', 'uploaded', { entity_id });
    expect([readdirSync(folder), readFileSync(target, 'utf8')]).toEqual([['file'], 'safe']);
    expect((await service.bash('cat f', { entity_id })).stdout).toBe('uploaded');
  });

  test('whose path is taken by a folder do not fail the run', async () => {
    const entity_id = 'folder';
    await service.bash('mkdir f', { entity_id });
    const uploaded = await service.upload('f', 'x');
    const answer = await service.bash('echo ran', { entity_id, files: [ref(uploaded)] });
    expect([answer.stdout, answer.stderr]).toEqual(['ran\n', '']);
  });

  test.each(['../up', 'a/../../up', '/etc/cron.d/up', 'C:\\up', 'a\\..\\..\\up', '', '.', 'a/', 'x'.repeat(256)])(
    'named %j are refused at the upload and in a call',
    async (name) => {
      const form = formOf([{ name, content: 'x' }]);
      const reply = await service.send('POST', '/upload', form);
      expect(reply.status).toBe(400);
      const uploaded = await service.upload('fine', 'x');
      const call = await service.post('/exec', { lang: 'bash', code: 'true', files: [ref(uploaded, name)] });
      // One that is refused is refused before anything runs; an empty name means none.
      if (call.status !== 200) expect([call.status, call.json<Problem>().code]).toEqual([400, 'invalid_input']);
      else expect(name).toBe('');
    },
  );

  test('with /mnt/data before their names are taken relative to it', async () => {
    const uploaded = await service.upload('/mnt/data/sub/f', 'x');
    expect(uploaded.files[0]?.name).toBe('sub/f');
    expect((await service.bash('cat sub/f', { files: [ref(uploaded)] })).stdout).toBe('x');
  });
});

describe('downloads', () => {
  test('can be had in parts, and only if the file changed', async () => {
    const uploaded = await service.upload('f.txt', '0123456789');
    const path = `/download/${uploaded.session_id}/${uploaded.files[0]?.id}`;
    const whole = ok(await service.get(path));
    expect(whole.headers['content-length']).toBe('10');
    const part = await service.get(path, { range: 'bytes=2-4' });
    expect([part.status, part.text, part.headers['content-range']]).toEqual([206, '234', 'bytes 2-4/10']);
    expect((await service.get(path, { range: 'bytes=-2' })).text).toBe('89');
    expect((await service.get(path, { range: 'bytes=20-' })).status).toBe(416);
    expect((await service.get(path, { 'if-none-match': String(whole.headers.etag) })).status).toBe(304);
    const head = await service.send('HEAD', path);
    expect([head.status, head.headers['content-length'], head.text]).toEqual([200, '10', '']);
  });

  test.each([
    ['x.html', '<script>alert(1)</script>'],
    ['x.svg', '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'],
    ['x.js', 'alert(1)'],
  ])('of %s do not run in a browser', async (name, text) => {
    const { files } = await service.python(`open("${name}", "w").write(${JSON.stringify(text)}); None`);
    const reply = ok(await service.get(`/download/${files[0]?.session_id}/${files[0]?.id}`));
    expect(reply.headers['content-type']).toBe('application/octet-stream');
    expect(reply.headers['x-content-type-options']).toBe('nosniff');
    expect(reply.headers['content-disposition']).toMatch(/^attachment/);
    expect(reply.text).toBe(text);
  });

  test('name the file in a header that no file name can break', async () => {
    const { files } = await service.python(
      'open("a\\r\\nset-cookie: x=1;\\"\\u202e.txt", "w").write("x"); open("b\\"; x.txt", "w").write("x"); None',
    );
    for (const file of files) {
      const reply = ok(await service.get(`/download/${file.session_id}/${file.id}`));
      expect(reply.headers['set-cookie']).toBeUndefined();
      expect(reply.headers['content-disposition']).toMatch(/^attachment; filename\*=UTF-8''[\w.%~-]+$/);
    }
    expect(files.map(({ name }) => name)).toEqual(['b"; x.txt']);
  });

  test.each(['..%2f..%2f..%2fetc%2fpasswd', '%2e%2e%2fpasswd', 'x'.repeat(21), '%00', 'a.b'])(
    'of the id %s give nothing',
    async (file) => {
      const { session_id } = await service.upload('f', 'x');
      for (const path of [
        `/download/${session_id}/${file}`,
        `/download/${file}/${file}`,
        `/sessions/${session_id}/objects/${file}`,
      ])
        expect((await service.get(path)).status).toBe(404);
    },
  );

  test('of a file need the session that it belongs to', async () => {
    const [a, b] = [await service.upload('f', 'a'), await service.upload('f', 'b')];
    expect((await service.get(`/download/${a.session_id}/${b.files[0]?.id}`)).status).toBe(404);
  });
});

describe('an upload batch', () => {
  test('accepts what it can and says of the rest why not', async () => {
    const form = formOf([
      { name: 'good', content: 'g' },
      { name: '../bad', content: 'b' },
      { name: 'sub/good', content: 'g' },
    ]);
    const answer = ok(await service.send('POST', '/upload/batch', form)).json<UploadAnswer>();
    expect(answer).toMatchObject({ message: 'partial_success', succeeded: 2, failed: 1 });
    expect(answer.files.map(({ status, filename }) => [status, filename])).toEqual([
      ['success', 'good'],
      ['error', '../bad'],
      ['success', 'sub/good'],
    ]);
  });

  test('of which nothing can be accepted is an error', async () => {
    const reply = await service.send('POST', '/upload/batch', formOf([{ name: '../bad', content: 'b' }]));
    expect(reply.status).toBe(400);
    expect(reply.json()).toMatchObject({ message: 'error', succeeded: 0, failed: 1 });
  });

  test('of 300 files arrives whole', async () => {
    const form = formOf(Array.from({ length: 300 }, (_, n) => ({ name: `d${n % 7}/f${n}.txt`, content: `${n}` })));
    const answer = ok(await service.send('POST', '/upload/batch', form)).json<UploadAnswer>();
    expect(answer.succeeded).toBe(300);
    const { stdout } = await service.bash('find . -type f | wc -l; cat d*/f* | wc -c', {
      session_id: answer.session_id,
    });
    expect(stdout).toBe('300\n790\n');
  });
});
