/** Checks what operators see: the health, the counts and the settings of the service, and that it ends without leaving a trace. */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { allGone, createHome, type Home, nameOf, parentOf, processesOf, ROOT, runCli } from '../harness.ts';
import { anotherService, endHome, ok, refusalOf, startService, useService } from './service.ts';

const service = await useService();

test('the first lines of the service say where it is, what it has, who may come in and how to try it', async () => {
  const [first, second] = service.stdout().split('\n');
  expect(first).toMatch(
    /^Cuvette \d+\.\d+\.\d+ · http:\/\/127\.0\.0\.1:\d+ · sandbox: on \(bubblewrap \d.*no network\) · Python 3\.\d+ \(.*\) · bash · node · ts · go · c\+\+$/,
  );
  expect(second).toBe('Access: open to every program on this machine');
  expect(service.stdout()).toContain(`LIBRECHAT_CODE_BASEURL=${service.url}/v1`);
  const curl = /^curl -s (\S+) -H '([^:]+): ([^']+)' -d '(.*)'$/m.exec(service.stdout());
  const [, url = '', name = '', value = '', body = ''] = curl ?? [];
  const reply = await service.send('POST', url.replace(service.url, ''), { headers: { [name]: value }, body });
  expect(reply.json()).toMatchObject({ stdout: 'hello\n' });
});

describe('GET /health', () => {
  test('reports sessions, settings, languages and libraries', async () => {
    await service.python('1', { entity_id: 'counted' });
    const health = ok(await service.get('/health')).json<{ runtime_capabilities: Record<string, unknown> }>();
    expect(health).toMatchObject({
      status: 'healthy',
      active_sessions: expect.any(Number),
      cleaned_sessions: expect.any(Number),
      max_sessions: 50,
      execution_timeout: 300,
      notebooks_dir: expect.any(String),
      uploads_dir: expect.any(String),
      runtime_libraries: expect.objectContaining({ py: expect.arrayContaining(['numpy', 'pandas']) }),
    });
    expect(Object.keys(health.runtime_capabilities)).toEqual(['py', 'bash', 'js', 'ts', 'go', 'cpp']);
    expect(health.runtime_capabilities.bash).toMatchObject({ available: true, missing: [] });
  });

  test('counts the sessions that were evicted', async () => {
    const other = await anotherService({ home: service.home, env: { MAX_SESSIONS: '2' } });
    const cleaned = async () => ok(await other.get('/health')).json<{ cleaned_sessions: number }>().cleaned_sessions;
    expect(await cleaned()).toBe(0);
    for (const entity_id of ['one', 'two', 'three', 'four']) await other.python('1', { entity_id });
    expect(await cleaned()).toBe(2);
  });

  test('reports the folders that are set and uses them as mkdir makes them', async () => {
    const home = createHome();
    const [uploads, notebooks] = [join(home.root, 'u'), join(home.root, 'n')];
    for (const folder of [uploads, notebooks]) mkdirSync(folder, { mode: 0o755 });
    const env = { UPLOADS_DIR: uploads, NOTEBOOKS_DIR: notebooks, MAX_SESSIONS: '7', EXECUTION_TIMEOUT: '11' };
    const other = await startService({ home, env });
    try {
      const uploaded = await other.upload('f', 'x', { entity_id: 'folders' });
      const made = await other.python('open("made", "w").write("by code")', { entity_id: 'folders' });
      expect(made.run.code, made.stderr).toBe(0);
      expect(ok(await other.get('/health')).json()).toMatchObject({
        uploads_dir: uploads,
        notebooks_dir: notebooks,
        max_sessions: 7,
        execution_timeout: 11,
      });
      expect(readdirSync(uploads, { recursive: true }).map(String)).toContainEqual(
        expect.stringContaining(uploaded.files[0]?.id ?? '-'),
      );
      expect(readFileSync(join(uploads, uploaded.session_id, 'workspace', 'made'), 'utf8')).toBe('by code');
      for (const name of readdirSync(uploads)) expect(statSync(join(uploads, name)).mode & 0o077, name).toBe(0);
    } finally {
      await other.stop();
      await endHome(home);
    }
  });
});

describe('GET /libraries', () => {
  test('lists libraries by language, with versions', async () => {
    const { runtime_libraries: all } = ok(await service.get('/libraries')).json<{
      runtime_libraries: Record<string, Record<string, string>>;
    }>();
    expect(all.py?.numpy).toMatch(/^\d+\.\d+/);
    const { stdout } = await service.python('import numpy; print(numpy.__version__)');
    expect(all.py?.numpy).toBe(stdout.trim());
  });

  test('lists what programs in every language can use, and they can use it', async () => {
    const { runtime_libraries: all } = ok(await service.get('/libraries')).json<{
      runtime_libraries: Record<string, Record<string, string | null>>;
    }>();
    expect(Object.keys(all)).toEqual(['py', 'bash', 'js', 'ts', 'go', 'cpp']);
    expect(all.bash).toMatchObject({ ls: null, sed: null });
    const commands = Object.keys(all.bash ?? {}).map((name) => `'${name}'`);
    const missing = await service.bash(
      `for name in ${commands.join(' ')}; do type -P "$name" >&3 || echo "$name"; done 3>/dev/null`,
    );
    expect(missing.stdout).toBe('');
    const modules = Object.keys(all.js ?? {}).filter(
      (name) => !/^(sys|punycode|inspector|trace_events|wasi)/.test(name),
    );
    const loaded = await service.exec({
      lang: 'js',
      code: `for (const name of ${JSON.stringify(modules)}) require(name); console.log(process.versions.node)`,
    });
    expect(loaded.stdout.trim(), loaded.stderr).toBe(all.js?.fs);
    expect(all.ts).toEqual(all.js);
    expect(all.go).toMatchObject({ fmt: expect.stringMatching(/^\d/), 'net/http': expect.any(String) });
    expect(Object.keys(all.go ?? {}).join(' ')).not.toContain('internal');
    expect(all.cpp).toMatchObject({ vector: expect.stringMatching(/\d/), string_view: expect.any(String) });
  });

  test('answers for one language by any of its names, and with 404 for an unknown one', async () => {
    for (const [runtime, lang] of [
      ['py', 'py'],
      ['python', 'py'],
      ['javascript', 'js'],
      ['c++', 'cpp'],
    ] as const) {
      const { runtime_libraries: of } = ok(
        await service.get(`/libraries?runtime=${encodeURIComponent(runtime)}`),
      ).json<{
        runtime_libraries: object;
      }>();
      expect(Object.keys(of)).toEqual([lang]);
    }
    expect((await service.get('/libraries?runtime=cobol')).status).toBe(404);
  });
});

describe('GET /metrics', () => {
  test('counts requests, executions and bytes, in the format of Prometheus', async () => {
    const read = async () => {
      const reply = ok(await service.get('/metrics'));
      expect(reply.headers['content-type']).toMatch(/^text\/plain; version=0\.0\.4/);
      for (const line of reply.text.trimEnd().split('\n'))
        expect(line).toMatch(/^(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="[^"]*",?)*\})? [-+\d.e]+(Inf)?)$/);
      return (name: RegExp) =>
        reply.text
          .split('\n')
          .flatMap((line) => (name.test(line) ? [Number(line.split(' ').at(-1))] : []))
          .reduce((a, b) => a + b, 0);
    };
    const then = await read();
    const { files } = await service.bash('echo 12345 > f');
    await service.bash('exit 1');
    const uploaded = await service.upload('g', '123');
    const [file] = files;
    if (file) await service.download(file);
    await service.download({ id: uploaded.files[0]?.id ?? '', session_id: uploaded.session_id });
    const now = await read();
    const grown = (name: RegExp) => now(name) - then(name);
    expect(grown(/^cuvette_executions_total\{.*outcome="ok"/)).toBe(1);
    expect(grown(/^cuvette_executions_total\{.*outcome="error"/)).toBe(1);
    expect(grown(/^cuvette_execution_seconds_count/)).toBe(2);
    expect(grown(/^cuvette_requests_total\{.*route="\/exec".*status="200"/)).toBe(2);
    expect(grown(/^cuvette_uploads_bytes_total/)).toBe(3);
    expect(grown(/^cuvette_downloads_bytes_total/)).toBe(9);
    expect(now(/^cuvette_sessions_live/)).toBeGreaterThanOrEqual(1);
    expect(now(/^process_resident_memory_bytes/)).toBeGreaterThan(10 << 20);
  });

  test('has no series for paths that callers make up', async () => {
    for (const path of ['/made-up-1', '/download/made-up-2/x', '/v1/made-up-3']) await service.get(path);
    expect((await service.get('/metrics')).text).not.toContain('made-up');
  });
});

describe('GET /openapi.json', () => {
  test.each(['/openapi.json', '/v1/openapi.json'])('describes every route (%s)', async (path) => {
    const document = ok(await service.get(path)).json<{
      openapi: string;
      servers: { url: string }[];
      paths: Record<string, Record<string, { operationId?: string }>>;
      components: { schemas: Record<string, unknown> };
    }>();
    expect(document.openapi).toBe('3.1.0');
    const routes = Object.entries(document.paths).flatMap(([route, methods]) =>
      Object.keys(methods).map((method) => `${method} ${route}`),
    );
    expect(routes).toEqual(
      expect.arrayContaining([
        'post /exec',
        'post /exec/stream',
        'post /exec/programmatic',
        'post /upload',
        'post /upload/batch',
        'get /files/{session}',
        'get /download/{session}/{file}',
        'delete /files/{session}/{file}',
        'get /sessions/{session}/objects/{file}',
        'delete /sessions/{session}',
        'get /health',
        'get /libraries',
      ]),
    );
    const operations = Object.values(document.paths).flatMap((methods) => Object.values(methods));
    const ids = operations.map(({ operationId }) => operationId);
    for (const id of ids) expect(id).toMatch(/^[a-z][A-Za-z]{1,63}$/);
    expect(new Set(ids).size).toBe(ids.length);
    expect(document.servers).toEqual([{ url: service.url + path.replace('/openapi.json', '') }]);
    const references = JSON.stringify(document).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g);
    for (const [, name = ''] of references) expect(document.components.schemas).toHaveProperty(name);
  });
});

test('an unknown path and a wrong method are answered as such', async () => {
  for (const [method, path] of [
    ['GET', '/nowhere'],
    ['POST', '/v1/nowhere'],
    ['PUT', '/exec'],
  ] as const) {
    const reply = await service.send(method, path);
    expect([404, 405]).toContain(reply.status);
    expect(reply.headers['content-type']).toMatch(/json/);
  }
});

test('a request is logged in one line if that is set', async () => {
  const logging = await anotherService({ home: service.home, env: { LOG_REQUESTS: 'true' } });
  await logging.bash('true');
  await logging.get('/v1/nowhere?token=hidden');
  const { stderr } = await logging.stop();
  const lines = stderr
    .trim()
    .split('\n')
    .map((line): Record<string, unknown> => JSON.parse(line));
  expect(lines).toMatchObject([
    {
      method: 'POST',
      path: '/exec',
      status: 200,
      ms: expect.any(Number),
      principal: 'open',
      body: '{"lang":"bash","code":"true"}',
    },
    { method: 'GET', path: '/v1/nowhere?token=***', status: 404 },
  ]);
});

describe('settings', () => {
  const show = async (args: string[], env: Record<string, string> = {}, cwd = service.home.project()) => {
    const { code, stdout, stderr } = await runCli(['serve', '--print-config', '--json', ...args], {
      home: service.home,
      cwd,
      env,
    });
    expect([code, stderr]).toEqual([0, '']);
    const rows: { setting: string; value: unknown; source: string }[] = JSON.parse(stdout);
    return Object.fromEntries(rows.map(({ setting, value, source }) => [setting, [value, source]]));
  };

  test('are shown with where they came from, without starting anything and without secrets', async () => {
    const cwd = service.home.project();
    writeFileSync(join(cwd, 'cuvette.json'), JSON.stringify({ maxSessions: 9, maxUpload: '1MB', rateLimit: 5 }));
    const shown = await show(
      ['--rate-limit', '6'],
      { MAX_SESSIONS: '8', CODE_INTERPRETER_API_KEY: 'not-to-be-seen' },
      cwd,
    );
    expect(shown).toMatchObject({
      maxSessions: [8, 'environment MAX_SESSIONS'],
      maxUpload: [1_000_000, `file ${join(cwd, 'cuvette.json')}`],
      rateLimit: [6, 'flag'],
      apiKey: ['(set)', 'environment CODE_INTERPRETER_API_KEY'],
      port: [8000, 'default'],
      keepFiles: [172_800, 'default'],
    });
    const { stdout } = await runCli(['serve', '--print-config'], {
      home: service.home,
      cwd,
      env: { CUVETTE_API_KEY: 'not-to-be-seen' },
    });
    expect(stdout).toMatch(/^setting +value +from +flag +environment\n/);
    expect(stdout).not.toContain('not-to-be-seen');
  });

  test.each<[string[], Record<string, string>, RegExp]>([
    [['--port', '70000'], {}, /port.*--port.*65535/s],
    [['--max-sessions', 'many'], {}, /maxSessions.*expected a number/s],
    [['--no-such-flag'], {}, /no-such-flag/],
    [['--path-secret', 'short'], {}, /at least 16 characters/],
    [[], { MAX_SESSIONS: '-1' }, /maxSessions.*environment MAX_SESSIONS/s],
    [['--jwt-public-key', '/no/such/file.pem'], {}, /\/no\/such\/file\.pem/],
    [['--config', '/no/such/file.json'], {}, /\/no\/such\/file\.json/],
  ])('that are wrong (%j %j) end the service with a sentence', async (args, env, sentence) => {
    const { code, stdout, stderr } = await refusalOf(service.home, args, env);
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(sentence);
    expect(stderr).not.toMatch(/\n {4}at /);
  });
});

describe('ending the service', () => {
  /** Everything that a home has in it, but for what a database leaves of itself. */
  const filesOf = (home: Home, folder: string) =>
    readdirSync(join(home.root, folder), { recursive: true })
      .map(String)
      .filter((name) => !/\.db(-wal|-shm)?$/.test(name));

  /** What a runtime folder always has in it. */
  const FOLDERS = /^cuvette(\/[bkz]|\/servers|\/c(\/[kz])?)?$/;

  /** What is mounted that could be ours. */
  const mountsOf = (home: Home) =>
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      .filter((line) => line.includes(home.root) || line.includes('/mnt/'));

  test.each([
    ['SIGINT', 'auto'],
    ['SIGTERM', 'auto'],
    ['SIGINT', 'off'],
    ['SIGTERM', 'off'],
  ] as const)('by %s with --sandbox %s leaves no program, socket, mount or temporary file', async (signal, sandbox) => {
    const home = createHome();
    const temporary = home.project('t');
    const mounts = mountsOf(home);
    try {
      const one = await startService({ home, args: ['--sandbox', sandbox], env: { TMPDIR: temporary } });
      await Promise.all([
        one.bash('echo x > kept; sleep 0.1'),
        one.exec({ lang: 'js', code: 'console.log(1)' }),
        one.exec({ lang: 'cpp', code: 'int main() {}' }),
        one.upload('f', 'x'),
        one.post('/exec/programmatic', { lang: 'bash', code: 'ask "{}"', tools: [{ name: 'ask' }] }),
      ]);
      // After SIGTERM, this one would wait for the next service.
      if (signal === 'SIGINT') await one.python('x = 1; open("f", "w").write("f"); None', { entity_id: 'a' });
      const { code, stderr } = await one.stop(signal);
      expect([code, stderr]).toEqual([0, '']);
      if (sandbox === 'off') {
        const left = processesOf(home.root).filter(({ pid }) => nameOf(pid) !== 'cuvette-zygote' && !isSpare(pid));
        expect(left).toEqual([]);
      } else await allGone(home.root);
      expect(mountsOf(home)).toEqual(mounts);
      const waiting = sandbox === 'off' ? /^cuvette\/z\/.*/ : /^$/;
      const runtime = filesOf(home, 'r').filter((name) => !FOLDERS.test(name) && !waiting.test(name));
      expect(runtime).toEqual([]);
      const unfinished = /incoming\/.*\/|programs\/|\.aside|\.part|\.new|cuvette-tools|placing/;
      // Where a tool stands below /tmp, a session's own /tmp has its folders, to mount it on.
      const isMountPoint = (name: string) => /\/sessions\/[^/]+\/tmp\//.test(name);
      expect(filesOf(home, 'd').filter((name) => unfinished.test(name) && !isMountPoint(name))).toEqual([]);
      expect(readdirSync(temporary)).toEqual([]);
    } finally {
      await endHome(home);
    }
  });

  /** The keeper that a zygote has ready for the next session, and the worker below it. */
  function isSpare(pid: number): boolean {
    const isKeeperOfZygote = (of: number) =>
      nameOf(of) === 'cuvette-keeper' && nameOf(parentOf(of)) === 'cuvette-zygote' && !hasSocket(of);
    return isKeeperOfZygote(pid) || (nameOf(pid) === 'cuvette-python' && isKeeperOfZygote(parentOf(pid)));
  }

  /** Whether it listens for a server: one that has been given a session does. */
  function hasSocket(pid: number): boolean {
    const listening = readFileSync('/proc/net/unix', 'utf8')
      .split('\n')
      .flatMap((line) => (/ 00010000 /.test(line) ? [line.trim().split(/\s+/)[6]] : []));
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
        return listening.some((inode) => target === `socket:[${inode}]`);
      } catch {
        return false;
      }
    });
  }
});

const compose = spawnSync('docker-compose', ['version', '--short']).status === 0 ? 'docker-compose' : undefined;

test.skipIf(!compose)('compose joins an existing network if it is told to', () => {
  const read = (env: Record<string, string>) =>
    execFileSync(compose ?? '', ['-f', join(ROOT, 'compose.yaml'), 'config'], {
      env: { ...process.env, CODE_INTERPRETER_API_KEY: 'x', ...env },
      encoding: 'utf8',
    });
  expect(read({})).toMatch(/networks:\n {2}shared:\n {4}external: false\n {4}name: cuvette\n/);
  const joined = read({ MCP_NETWORK_EXTERNAL: 'true', MCP_NETWORK_NAME: 'librechat_default' });
  expect(joined).toMatch(/networks:\n {2}shared:\n {4}external: true\n {4}name: librechat_default\n/);
});
