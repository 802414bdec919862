/** Checks that each defence is what stops its attack: without it, or with its limit raised, the same code succeeds. */

import { existsSync, mkdirSync, realpathSync, symlinkSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { delimiter, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHome, type Home } from '../e2e/harness.ts';
import { type Caller, ok, refusalOf, type Service, startService } from '../e2e/http/service.ts';
import { type AttackAnswer, endConfinedHome, KEY, listenAbstract, SECRET, SMALL_LIMITS, useCount } from './attack.ts';
import { type Bystander, createBystander, isLatencyAsked } from './bystander.ts';

const count = useCount();
const homes: Home[] = [];
afterAll(async () => {
  const ended = await Promise.allSettled(homes.map(endConfinedHome));
  for (const one of ended) if (one.status === 'rejected') throw one.reason;
});

interface Open {
  service: Service;
  caller: Caller;
  exec(lang: string, code: string, more?: Record<string, unknown>): Promise<AttackAnswer>;
}

/** A service of its own, with settings of its own, for one test or a group. */
async function open(
  args: string[],
  env: Record<string, string | undefined> = {},
): Promise<Open & { close(): Promise<void> }> {
  const home = createHome();
  homes.push(home);
  const service = await startService({ home, args, env: { ...SMALL_LIMITS, ...env } });
  const caller = service.as({ 'x-api-key': KEY });
  return {
    service,
    caller,
    async exec(lang, code, more = {}) {
      count(1);
      return ok(await caller.post('/exec', { lang, code, ...more })).json<AttackAnswer>();
    },
    async close() {
      const { code, stderr } = await service.stop();
      expect([code, stderr]).toEqual([0, '']);
    },
  };
}

const SPAWN = (wanted: number) => `import subprocess
started = []
try:
    while len(started) < ${wanted}: started.append(subprocess.Popen(["sleep", "30"]))
except OSError: pass
for one in started: one.kill(); one.wait()
print(len(started))`;
const HOLD = 'x = b"x" * (700 << 20); print("held")';
const FILL = 'head -c 400M /dev/zero > f && sleep 1.5 && echo filled';
const MANY_FILES =
  'import os, time\nfor n in range(8000): open("f%d" % n, "w").close()\ntime.sleep(1.5)\nprint("made")\nfor n in range(8000): os.remove("f%d" % n)';
const OPEN_FILES = 'x = [open("/dev/null") for _ in range(2000)]; print("opened")';
/** keyctl, io_uring_setup, userfaultfd and unshare of a user namespace, each 0 if it was let through. */
const CALLS = `import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
page = ctypes.create_string_buffer(4096)
for number, args in ((250, (0, -3, 0)), (425, (1, page)), (272, (0x10000000,))):
    if os.fork() == 0: os._exit(0 if libc.syscall(number, *args) >= 0 else ctypes.get_errno())
    print(os.WEXITSTATUS(os.wait()[1]), end=" ")`;
const STATUS =
  'import re; print(re.findall(r"^(?:Seccomp|NoNewPrivs|CapEff):\\s*(\\S+)", open("/proc/self/status").read(), re.M))';
const reach = (port: number) => `import socket
try: socket.create_connection(("127.0.0.1", ${port}), 2).close(); print("reached")
except OSError: print("not reached")`;
const abstract = (name: string) => `import socket
try: socket.socket(socket.AF_UNIX).connect("\\0${name}"); print("reached")
except OSError: print("not reached")`;
const environment = (pid: number) => `import os
try: print("${SECRET.slice(0, 14)}" in open("/proc/${pid}/environ").read())
except OSError as error: print(error)`;

describe.each([
  ['on', 'is stopped'],
  ['off', 'succeeds'],
])('with --sandbox %s,', (sandbox, fate) => {
  const isOff = sandbox === 'off';
  let on: Awaited<ReturnType<typeof open>>;
  let bystander: Bystander | undefined;
  beforeAll(async () => {
    on = await open(['--sandbox', sandbox]);
    // What is stopped must not be felt by others; what is let through may.
    if (isLatencyAsked && !isOff) bystander = await createBystander({ service: on.service, key: KEY });
    await bystander?.begin();
  });
  afterAll(async () => {
    await bystander?.stop();
    await on.close();
  });

  test('the health of the service says whether it confines code', async () => {
    const { sandbox: said } = ok(await on.caller.get('/health')).json<{ sandbox: string }>();
    expect(said).toMatch(isOff ? /^none\b/ : /^on\b/);
  });

  test(`reading another session’s file ${fate}`, async () => {
    const { session_id } = await on.exec('py', 'open("f.txt", "w").write("private"); None', { entity_id: 'victim' });
    const path = join(on.service.home.data, 'sessions', session_id, 'workspace', 'f.txt');
    expect(existsSync(path)).toBe(true);
    const { stdout } = await on.exec('bash', `cat '${path}' 2>/dev/null; true`);
    expect(stdout).toBe(isOff ? 'private' : '');
  });

  test(`reading the server’s environment ${fate}`, async () => {
    const { stdout } = await on.exec('py', environment(on.service.pid));
    expect(stdout.trim()).toMatch(isOff ? /^True$/ : /No such file/);
  });

  test(`reaching the service’s own port ${fate}`, async () => {
    const { stdout } = await on.exec('py', reach(Number(new URL(on.service.url).port)));
    expect(stdout).toBe(isOff ? 'reached\n' : 'not reached\n');
  });

  test(`reaching an abstract socket ${fate}`, async () => {
    const name = await listenAbstract();
    expect((await on.exec('py', abstract(name))).stdout).toBe(isOff ? 'reached\n' : 'not reached\n');
  });

  test(`seeing other processes ${fate}`, async () => {
    const { stdout } = await on.exec(
      'bash',
      `cat /proc/*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'main[.]js serve'; true`,
    );
    expect(Number(stdout) > 0).toBe(isOff);
  });

  test.runIf(process.arch === 'x64')(`making forbidden system calls ${fate}`, async () => {
    const { stdout } = await on.exec('py', CALLS);
    const results = stdout.trim().split(' ');
    expect(results).toHaveLength(3);
    for (const result of results) expect(result === '0').toBe(isOff);
    expect((await on.exec('py', STATUS)).stdout).toMatch(isOff ? /'0', '0'\]/ : /'0000000000000000', '1', '2'\]/);
  });

  test(`taking more than the limits allow ${fate}`, async () => {
    const spawned = Number((await on.exec('py', SPAWN(150))).stdout);
    expect(spawned === 150).toBe(isOff);
    const held = await on.exec('py', HOLD);
    expect([held.stdout, held.run.reason]).toEqual(
      isOff ? ['held\n', null] : ['', expect.stringMatching(/oom|exception/)],
    );
    const filled = await on.exec('bash', FILL);
    expect([filled.stdout, filled.run.reason]).toEqual(isOff ? ['filled\n', null] : ['', 'disk-quota']);
    const made = await on.exec('py', MANY_FILES);
    expect([made.stdout, made.run.reason]).toEqual(isOff ? ['made\n', null] : ['', 'disk-quota']);
  });
});

describe('with limits raised or lowered by settings,', () => {
  let raised: Awaited<ReturnType<typeof open>>;
  let lowered: Awaited<ReturnType<typeof open>>;
  beforeAll(async () => {
    raised = await open(['--sandbox', 'on', '--session-memory', '2GiB', '--session-processes', '400'], {
      CUVETTE_SESSION_QUOTA: '1GiB',
      CUVETTE_SESSION_FILE_COUNT: '20000',
      CUVETTE_SESSION_OPEN_FILES: '8192',
      CUVETTE_SESSION_CPUS: '0',
      CUVETTE_MAX_OUTPUT: '10000000',
    });
    lowered = await open(['--sandbox', 'on', '--session-open-files', '256', '--session-cpus', '1']);
  });
  afterAll(async () => {
    await raised.close();
    await lowered.close();
  });

  test('a session gets as much memory as the setting says', async () => {
    expect((await raised.exec('py', HOLD)).stdout).toBe('held\n');
    expect((await lowered.exec('py', HOLD)).stdout).toBe('');
  });

  test('a session gets as many processes as the setting says', async () => {
    expect((await raised.exec('py', SPAWN(150))).stdout).toBe('150\n');
    expect(Number((await lowered.exec('py', SPAWN(150))).stdout)).toBeLessThanOrEqual(64);
  });

  test('a session gets as much disk and as many files as the settings say', async () => {
    expect((await raised.exec('bash', FILL)).stdout).toBe('filled\n');
    expect((await raised.exec('py', MANY_FILES)).stdout).toBe('made\n');
  });

  test('a session gets as many open files as the setting says', async () => {
    expect((await raised.exec('py', OPEN_FILES)).stdout).toBe('opened\n');
    expect((await lowered.exec('py', OPEN_FILES)).stderr).toMatch(/Too many open files/);
  });

  test('a session gets as much output as the setting says', async () => {
    const code = 'print("x" * 2_000_000)';
    expect((await raised.exec('py', code)).stdout).toHaveLength(2_000_001);
    expect((await lowered.exec('py', code)).run.reason).toBe('output-limit');
  });

  test('a session gets as many processors as the setting says', async () => {
    const all = (await raised.exec('bash', 'nproc')).stdout;
    expect((await lowered.exec('bash', 'nproc')).stdout).toBe('1\n');
    expect(Number(all)).toBeGreaterThanOrEqual(1);
  });

  test('a session has no memory limit where the setting is 0', async () => {
    const free = await open(['--sandbox', 'on', '--session-memory', '0']);
    expect((await free.exec('py', HOLD)).stdout).toBe('held\n');
    await free.close();
  });
});

describe('the network of a session', () => {
  let server: Server;
  let port: number;
  beforeAll(async () => {
    server = createServer((_, response) => response.end('answered'));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    port = (server.address() as AddressInfo).port;
  });
  afterAll(() => void server.close());
  const fetch = (url: string) => `import urllib.request
try: print(urllib.request.urlopen("${url}", timeout=10).read().decode())
except Exception as error: print("refused:", error, getattr(error, "read", bytes)().decode())`;

  test('is reached where it is allowed', async () => {
    const free = await open(['--sandbox', 'on', '--network', 'allow']);
    expect((await free.exec('py', reach(port))).stdout).toBe('reached\n');
    expect((await free.exec('py', fetch(`http://127.0.0.1:${port}/`))).stdout).toBe('answered\n');
    await free.close();
  });

  test('is not reached where it is set to none', async () => {
    const none = await open(['--sandbox', 'on', '--network', 'none']);
    expect((await none.exec('py', reach(port))).stdout).toBe('not reached\n');
    expect((await none.exec('py', fetch(`http://127.0.0.1:${port}/`))).stdout).toMatch(/^refused/);
    await none.close();
  });

  test('that is limited to a list leads to the hosts on it and refuses others by name', async () => {
    const some = await open(['--sandbox', 'on'], { CUVETTE_NETWORK: `127.0.0.2:${port},packages.example.org` });
    const through = (url: string) => `import os, urllib.request
for name in ("no_proxy", "NO_PROXY"): os.environ.pop(name, None)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": "http://127.0.0.1:3128", "https": "http://127.0.0.1:3128"}))
try: print(opener.open("${url}", timeout=10).read().decode())
except Exception as error: print("refused:", error, getattr(error, "read", bytes)().decode())`;
    const refused = await some.exec('py', through(`http://127.0.0.1:${port}/`));
    expect(refused.stdout).toMatch(/refused: .*403[\s\S]*127\.0\.0\.1[\s\S]*--network/);
    for (const host of ['169.254.169.254', 'metadata.google.internal', 'localhost'])
      expect((await some.exec('py', through(`http://${host}/`))).stdout).toMatch(/^refused/);
    expect((await some.exec('py', reach(port))).stdout, 'past the proxy').toBe('not reached\n');
    const { stdout } = await some.exec('bash', 'echo "$HTTP_PROXY $HTTPS_PROXY"');
    expect(stdout).toBe('http://127.0.0.1:3128 http://127.0.0.1:3128\n');
    await some.close();
    const listed = await open(['--sandbox', 'on', '--network', `127.0.0.1:${port}`]);
    expect((await listed.exec('py', through(`http://127.0.0.1:${port}/`))).stdout).toBe('answered\n');
    await listed.close();
  });
});

describe('where bubblewrap is missing,', () => {
  /** A PATH with the interpreters, and without it. */
  function lacking(home: Home): string {
    const bin = join(home.root, 'bin');
    mkdirSync(bin);
    const find = (name: string) =>
      (process.env.PATH ?? '')
        .split(delimiter)
        .map((folder) => join(folder, name))
        .find((path) => existsSync(path));
    for (const name of ['node', 'bash', 'sh', 'env', 'cat', 'true']) {
      const path = find(name);
      if (path) symlinkSync(realpathSync(path), join(bin, name));
    }
    return bin;
  }

  test('a service that must confine code does not start and says what to do', async () => {
    const home = createHome();
    homes.push(home);
    const { code, stdout, stderr } = await refusalOf(home, ['--sandbox', 'on'], { PATH: lacking(home) });
    expect([code, stdout]).toEqual([69, '']);
    expect(stderr).toMatch(/bubblewrap|bwrap/);
    expect(stderr).not.toMatch(/\n {4}at /);
  });

  test('a service that may run code unconfined says that it does', async () => {
    const home = createHome();
    homes.push(home);
    const service = await startService({ home, env: { PATH: lacking(home), CUVETTE_API_KEY: KEY } });
    const { sandbox } = ok(await service.as({ 'x-api-key': KEY }).get('/health')).json<{ sandbox: string }>();
    expect(sandbox).toMatch(/^none\b.*(bubblewrap|bwrap)/);
    await service.stop();
  });
});
