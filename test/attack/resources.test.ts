/** Runs code that takes all it can get of processes, memory, disk and descriptors, and checks that it gets no more than its limit and is told which. */

import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { HANGS_AFTER } from '../e2e/harness.ts';
import { expectLimit, freshName, type Lang, useConfined } from './attack.ts';
import { takenBelow } from './traces.ts';

const { home, caller, attack, expectNextCallWorks } = await useConfined();

const MANY = 300;
/** Bytes that are more than the memory of a session, and that this machine has. */
const MUCH = 2 * 2 ** 30;
const MANY_MIB = 2048;

beforeAll(async () => {
  // No bomb is set off before its limit is known to hold.
  const entity_id = freshName();
  const processes = await attack(
    'py',
    `import subprocess
started = []
try:
    while len(started) < ${MANY}: started.append(subprocess.Popen(["sleep", "30"]))
except OSError: pass
for one in started: one.kill()
for one in started: one.wait()
print(len(started))`,
    { entity_id },
  );
  if (!(Number(processes.stdout) <= 64)) throw new Error(`More processes than allowed: ${JSON.stringify(processes)}`);
  const memory = await attack('py', `x = b"x" * (700 << 20); print("all of it")`, { entity_id });
  if (memory.stdout.includes('all')) throw new Error(`More memory than allowed: ${JSON.stringify(memory)}`);
  const disk = await attack('bash', 'head -c 400M /dev/zero > f; sleep 2; stat -c %s f; rm f', { entity_id });
  if (Number(disk.stdout) >= 400 * 2 ** 20) throw new Error(`More disk than allowed: ${JSON.stringify(disk)}`);
});

describe('the process limit', () => {
  // Copies of an interpreter may run out of memory before they are too many.
  const limit = /processes and threads, 64|512 MiB/;
  const reason = ['too-many-processes', 'timeout', 'oom'];

  test.each<[string, Lang, string]>([
    ['a fork bomb in bash', 'bash', 'bomb() { bomb | bomb & wait; }; bomb'],
    ['a fork bomb that leaves its shell', 'bash', ':(){ :|:& };:; sleep 3; echo after | cat | cat'],
    ['a fork bomb in Python', 'py', 'import os\nwhile True: os.fork()'],
    [
      'a fork bomb that swallows its errors',
      'py',
      'import os\nwhile True:\n    try: os.fork()\n    except BaseException: pass',
    ],
    [
      'a thread bomb in Python',
      'py',
      'import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(60,), daemon=True).start()',
    ],
    [
      'a thread bomb in C++',
      'cpp',
      '#include <thread>\n#include <vector>\n#include <unistd.h>\nint main() { std::vector<std::thread> all; for (;;) all.emplace_back([] { sleep(60); }); }',
    ],
    [
      'a fork bomb in Node',
      'js',
      'const { spawnSync } = require("node:child_process");\nconst self = `const { spawn } = require("node:child_process"); for (;;) spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"], { stdio: "ignore" }).on("error", () => process.exit(9));`;\nconst { status, signal } = spawnSync(process.execPath, ["-e", self], { stdio: "inherit" });\nprocess.exit(status ?? 9);',
    ],
  ])('ends %s, and the next call works', async (_, lang, code) => {
    const entity_id = freshName();
    expectLimit(await attack(lang, code, { entity_id, timeout: 60_000 }), { reason, limit });
    await expectNextCallWorks(entity_id);
  });
});

describe('the memory limit', () => {
  const expected = { reason: 'oom', limit: /512 MiB/ };

  test.each<[string, Lang, string]>([
    ['one huge allocation in Python', 'py', `x = b"x" * ${MUCH}`],
    ['slow growth in Python', 'py', `x = []\nfor n in range(${MANY_MIB}): x.append(bytes([n % 255 + 1]) * (1 << 20))`],
    ['growth in bash', 'bash', `x=$(head -c ${MUCH} /dev/zero | tr '\\0' x)`],
    [
      'one huge allocation in C++',
      'cpp',
      `#include <vector>\n#include <cstdio>\nint main() { std::vector<char> x(${MUCH}L, 1); std::printf("%d", x[12345]); }`,
    ],
    [
      'slow growth in C++',
      'cpp',
      `#include <cstdlib>\n#include <cstring>\nint main() { for (int n = 0; n < ${MANY_MIB}; n++) memset(malloc(1 << 20), 1, 1 << 20); }`,
    ],
    [
      'slow growth in Node outside its heap',
      'js',
      `const x = []; for (let n = 0; n < ${MANY_MIB}; n++) x.push(Buffer.alloc(1 << 20, 1));`,
    ],
    [
      'slow growth in Go',
      'go',
      `package main\n\nfunc main() {\n\tvar x [][]byte\n\tfor n := 0; n < ${MANY_MIB}; n++ {\n\t\tpart := make([]byte, 1<<20)\n\t\tfor i := range part {\n\t\t\tpart[i] = 1\n\t\t}\n\t\tx = append(x, part)\n\t}\n\tprintln(len(x))\n}\n`,
    ],
  ])('ends %s, and the next call works', async (_, lang, code) => {
    const entity_id = freshName();
    expectLimit(await attack(lang, code, { entity_id }), expected);
    await expectNextCallWorks(entity_id);
  });

  test('ends slow growth in the heap of Node, and the next call works', async () => {
    const entity_id = freshName();
    const code = 'const x = []; for (;;) x.push(Array.from({ length: 1000 }, (_, n) => ({ n })));';
    const { run, stderr } = await attack('js', code, { entity_id });
    expect(run.code).not.toBe(0);
    expect(`${run.message} ${stderr}`).toMatch(/512 MiB|heap out of memory/);
    await expectNextCallWorks(entity_id);
  });

  test('ends growth in a child of Python, and the next call works', async () => {
    const entity_id = freshName();
    const child = `import subprocess, sys\nsubprocess.run([sys.executable, "-c", "x = b'x' * ${MUCH}"], check=True)`;
    const { run, stderr } = await attack('py', child, { entity_id });
    expect(run.code).not.toBe(0);
    expect(`${run.message} ${stderr}`).toMatch(/512 MiB|MemoryError/);
    await expectNextCallWorks(entity_id);
  });

  test('holds for the children of a call together', async () => {
    const entity_id = freshName();
    const child = 'import time; x = b"x" * (200 << 20); time.sleep(4)';
    const code = `import subprocess, sys
all = [subprocess.Popen([sys.executable, "-c", ${JSON.stringify(child)}], stderr=subprocess.DEVNULL) for _ in range(6)]
print(sum(one.wait() == 0 for one in all))`;
    const { stdout, run } = await attack('py', code, { entity_id });
    if (run.code === 0) expect(Number(stdout)).toBeLessThanOrEqual(2);
    expect(run.message).toMatch(/512 MiB/);
    await expectNextCallWorks(entity_id);
  });

  test.each(['/dev/shm', '/tmp', '/home/user', '/mnt/program', '/var/tmp'])(
    'cannot be evaded by files in %s',
    async (folder) => {
      const entity_id = freshName();
      const answer = await attack('bash', `head -c 1500M /dev/zero > ${folder}/attack-big && echo "all of it"`, {
        entity_id,
      });
      expect(answer.stdout).toBe('');
      expect(answer.run.code).not.toBe(0);
      expect(`${answer.run.message} ${answer.stderr}`).toMatch(
        /512 MiB|256 MiB|No space left|File too large|File size limit/,
      );
      await caller.bash(`rm -f ${folder}/attack-big`, { entity_id });
      await expectNextCallWorks(entity_id);
    },
  );
});

describe('on the disk of a session,', () => {
  test.each<[string, Lang, string]>([
    ['one file in bash', 'bash', 'head -c 2G /dev/zero > f'],
    ['many files in bash', 'bash', 'for n in $(seq 100); do head -c 20M /dev/zero > f$n; done'],
    [
      'one file in Python',
      'py',
      'with open("f", "wb") as f:\n    for n in range(2048): f.write(bytes(1 << 20))\nprint("all of it")',
    ],
    ['many files in Python', 'py', 'for n in range(2048): open("f%d" % n, "wb").write(bytes(1 << 20))'],
  ])('code that fills the workspace with %s is ended by the quota, and room can be made', async (_, lang, code) => {
    const entity_id = freshName();
    const answer = await attack(lang, code, { entity_id });
    expectLimit(answer, { reason: 'disk-quota', limit: /256 MiB/ });
    await expectNextCallWorks(entity_id);
    expect(takenBelow(join(home.data, 'sessions', answer.session_id))).toBeLessThan(512 * 2 ** 20);
    const next = await attack('bash', 'rm -f f*; echo again > g; cat g', { entity_id });
    expect([next.stdout, next.run.code]).toEqual(['again\n', 0]);
  });

  test.each([
    ['files', 'open("f%d" % n, "w").close()'],
    ['folders', 'os.mkdir("f%d" % n)'],
    ['links', 'os.symlink("x", "f%d" % n)'],
  ])('code that makes more %s than allowed is ended, and room can be made', async (_, one) => {
    const entity_id = freshName();
    const answer = await attack('py', `import os\nfor n in range(100_000): ${one}`, { entity_id });
    expectLimit(answer, { reason: 'disk-quota', limit: /5,?000/ });
    await expectNextCallWorks(entity_id);
    const next = await attack('bash', 'find . -mindepth 1 -delete; echo again > g; cat g', { entity_id });
    expect([next.stdout, next.run.code]).toEqual(['again\n', 0]);
  });

  test('a session that is far past its quota grows no further, call by call, and can make room', async () => {
    const entity_id = freshName();
    // As if calls before had got past it, each by a little: by the server's own hand, which no quota ends.
    const { session_id } = await attack('bash', 'true', { entity_id });
    const workspace = join(home.data, 'sessions', session_id, 'workspace');
    for (let n = 0; n < 6; n += 1) writeFileSync(join(workspace, `f${n}`), Buffer.alloc(90 << 20));
    const before = takenBelow(workspace);
    const refused = await attack('py', 'print("run"); open("more", "wb").write(bytes(64 << 20))', { entity_id });
    expectLimit(refused, { reason: 'disk-quota', limit: /256 MiB/ });
    expect(refused.stdout).toBe('');
    expect(refused.stderr).toContain('rm -r');
    const program = await attack('bash', 'for n in $(seq 20); do head -c 64M /dev/zero > more$n; done', { entity_id });
    expectLimit(program, { reason: 'disk-quota', limit: /256 MiB/ });
    expect(takenBelow(workspace)).toBeLessThan(before + 2 ** 20);
    const freed = await attack('bash', 'rm -f f* more*; echo removed', { entity_id });
    expect([freed.stdout, freed.run.code]).toEqual(['removed\n', 0]);
    const again = await attack('bash', 'head -c 64M /dev/zero > f && echo written', { entity_id });
    expect([again.stdout, again.stderr]).toEqual(['written\n', '']);
    await expectNextCallWorks(entity_id);
  });

  test('unlinked files that are still open count towards the quota', async () => {
    const entity_id = freshName();
    const code = `import os, time
files = []
for n in range(5):
    files.append(open("f%d" % n, "wb")); os.remove("f%d" % n)
    for m in range(200): files[-1].write(bytes(1 << 20))
    files[-1].flush()
time.sleep(0.5)
print("all of it")`;
    const answer = await attack('py', code, { entity_id });
    expect(answer.stdout).toBe('');
    expectLimit(answer, { reason: 'disk-quota', limit: /256 MiB/ });
    await expectNextCallWorks(entity_id);
  });

  test('files that are written between calls count towards the quota', async () => {
    const entity_id = freshName();
    const code = `import threading, time
def write():
    for n in range(40):
        with open("f%d" % n, "wb") as file: file.write(bytes(32 << 20))
        time.sleep(0.2)
    open("done", "w").close()
threading.Timer(0.5, write).start()`;
    const { session_id } = await attack('py', code, { entity_id });
    await sleep(11_000);
    expect(takenBelow(join(home.data, 'sessions', session_id))).toBeLessThan(2 ** 30);
    const next = await attack('bash', 'ls done 2>/dev/null; rm -f f*', { entity_id });
    expect(next.stdout).toBe('');
    await expectNextCallWorks(entity_id);
  });

  test('files count towards the quota whatever another session removes meanwhile', async () => {
    const [entity_id, other] = [freshName(), freshName()];
    await attack('bash', 'for n in $(seq 12); do head -c 20M /dev/zero > f$n; done', { entity_id: other });
    const code = `import time
for n in range(24):
    with open("f%d" % n, "wb") as file: file.write(bytes(20 << 20))
    time.sleep(0.2)
print("all of it")`;
    const [answer] = await Promise.all([
      attack('py', code, { entity_id }),
      caller.bash('for n in $(seq 12); do sleep 0.3; rm f$n; done', { entity_id: other }),
    ]);
    expectLimit(answer, { reason: 'disk-quota', limit: /256 MiB/ });
    await expectNextCallWorks(entity_id);
  });

  test('huge sparse files are not stored as outputs', async () => {
    const entity_id = freshName();
    const answer = await attack('bash', 'truncate -s 200G sparse; truncate -s 8T huge; ls | wc -l; echo x > small', {
      entity_id,
    });
    for (const { size } of answer.files) expect(size).toBeLessThan(1000);
    await caller.bash('rm -f sparse huge', { entity_id });
    await expectNextCallWorks(entity_id);
  });

  test('folders too deep for a path can be left behind and are removed', async () => {
    const entity_id = freshName();
    const code = `import os\nfor n in range(2000):\n    os.mkdir("d" * 20); os.chdir("d" * 20)\nopen("f", "w").close(); os.chdir("/mnt/data")`;
    await attack('py', code, { entity_id });
    // They count as more files than a session may have, from when the session's files are next counted.
    expect((await attack('bash', 'rm -rf d*; ls -A', { entity_id })).stdout).toBe('');
    await expectNextCallWorks(entity_id);
    await attack('py', code, { entity_id: freshName() });
  });

  test('folders without permissions can be left behind and are removed', async () => {
    const entity_id = freshName();
    await attack('bash', 'mkdir -p a/b; touch a/b/c; chmod 0 a/b a; mkdir s; chmod 1000 s', { entity_id });
    await expectNextCallWorks(entity_id);
  });

  test('what is left in /dev/shm and /tmp is visible to no other session and not on this machine', async () => {
    const entity_id = freshName();
    await attack('bash', 'for d in /dev/shm /tmp /home/user /run /var/tmp; do echo x > $d/attack-left; done', {
      entity_id,
    });
    await attack('py', 'from multiprocessing import shared_memory as s; s.SharedMemory("attack-left", True, 9)', {
      entity_id,
    });
    const { stdout } = await attack('bash', 'ls -A /dev/shm /tmp /home/user /run /var/tmp');
    expect(stdout).not.toContain('attack-left');
    for (const folder of ['/dev/shm', '/tmp', '/run', '/var/tmp', '/home/user', '/root'])
      expect(existsSync(`${folder}/attack-left`)).toBe(false);
    await expectNextCallWorks(entity_id);
  });

  test('System V memory, semaphores and queues of one session are visible to no other', async () => {
    const entity_id = freshName();
    const code =
      'import ctypes; c = ctypes.CDLL(None); print([c.shmget(4711, 1 << 20, 0o1666), c.semget(4711, 1, 0o1666), c.msgget(4711, 0o1666)])';
    await attack('py', code, { entity_id });
    const other = await attack(
      'py',
      'import ctypes; c = ctypes.CDLL(None); print([c.shmget(4711, 1, 0o666), c.semget(4711, 1, 0o666), c.msgget(4711, 0o666)])',
    );
    expect(other.stdout).toBe('[-1, -1, -1]\n');
    await expectNextCallWorks(entity_id);
  });
});

describe('in a session,', () => {
  test.each<[string, Lang, string]>([
    ['as files in Python', 'py', 'x = [open("/dev/null") for _ in range(100_000)]'],
    ['as sockets', 'py', 'import socket; x = [socket.socketpair() for _ in range(100_000)]'],
    ['as pipes', 'py', 'import os; x = [os.pipe() for _ in range(100_000)]'],
    ['by raising the hard limit', 'bash', 'ulimit -Hn 100000'],
  ])('opening too many descriptors %s is refused', async (_, lang, code) => {
    const entity_id = freshName();
    const { run, stderr } = await attack(lang, code, { entity_id });
    expect(run.code).not.toBe(0);
    expect(stderr).toMatch(/Too many open files|cannot modify limit/);
    await expectNextCallWorks(entity_id);
  });

  test.each<[string, Lang, string, string[]]>([
    ['of Python', 'py', 'def f(): f()\nf()', ['exception']],
    [
      'of Python without its limit',
      'py',
      'import sys\nsys.setrecursionlimit(10 ** 9)\nclass A:\n    def __repr__(self): return repr(self)\nrepr(A())',
      ['signal', 'exception', 'oom'],
    ],
    ['of a parser', 'py', 'eval("(" * 100_000 + ")" * 100_000)', ['exception', 'signal']],
    ['of bash', 'bash', 'f() { f; }; f', ['signal', 'oom', 'timeout', 'exit']],
    ['of Node', 'js', 'const f = () => f() + 1; f();', ['exit']],
    [
      'of C++',
      'cpp',
      'int f(volatile int n) { return f(n + 1) + n; }\nint main() { return f(1); }',
      ['signal', 'timeout'],
    ],
    [
      'of Go',
      'go',
      'package main\n\nfunc f(n int) int { return f(n+1) + n }\n\nfunc main() { println(f(1)) }\n',
      ['exit', 'oom'],
    ],
  ])('endless recursion %s ends, and the next call works', async (_, lang, code, reasons) => {
    const entity_id = freshName();
    // What must end by itself has the time that a slow machine takes for it.
    const timeout = reasons.includes('timeout') ? 8000 : HANGS_AFTER;
    const { run } = await attack(lang, code, { entity_id, timeout });
    expect(reasons).toContain(run.reason);
    await expectNextCallWorks(entity_id);
  });

  test.each<[string, Lang, string]>([
    ['Python', 'py', 'import ctypes; ctypes.string_at(0)'],
    ['C++', 'cpp', 'int main() { *(volatile int *)0 = 1; }'],
    ['a shell', 'bash', 'kill -SEGV $$'],
  ])('a crash of %s is reported as a crash and leaves no core file', async (_, lang, code) => {
    const entity_id = freshName();
    const { run, files } = await attack(lang, code, { entity_id });
    expect([run.reason, run.signal, run.status]).toEqual(['signal', 'SIGSEGV', 'SG']);
    expect(files).toEqual([]);
    await expectNextCallWorks(entity_id);
  });
});

/** Beyond the limits in any case, and by far on CI. */
const BOMB = process.env.CI
  ? { zipParts: 60, gzipMembers: 100, tarEntries: 100_000 }
  : { zipParts: 20, gzipMembers: 40, tarEntries: 20_000 };

describe('in a workspace with a quota,', () => {
  test('a zip bomb is stored as it is and unpacked no further than the quota', async () => {
    const entity_id = freshName();
    const code = `import zipfile
with zipfile.ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for n in range(${BOMB.zipParts}): z.writestr("part%d" % n, bytes(25 << 20))`;
    const made = await attack('py', code);
    const [bomb] = made.files;
    const bytes = bomb ? await caller.download(bomb) : Buffer.alloc(0);
    expect(bytes.length).toBeLessThan(4_000_000);
    await caller.upload('bomb.zip', bytes, { entity_id });
    expect((await caller.bash('find . -type f', { entity_id })).stdout).toBe('./bomb.zip\n');
    const unpacked = await attack('py', 'import zipfile; zipfile.ZipFile("bomb.zip").extractall("out")', { entity_id });
    expectLimit(unpacked, { reason: 'disk-quota', limit: /256 MiB/ });
    await expectNextCallWorks(entity_id);
  });

  test('a gzip bomb is unpacked no further than the quota', async () => {
    const entity_id = freshName();
    const member = gzipSync(Buffer.alloc(16 << 20));
    await caller.upload('bomb.gz', Buffer.concat(Array(BOMB.gzipMembers).fill(member)), { entity_id });
    const unpacked = await attack('bash', 'gunzip -c bomb.gz > out', { entity_id });
    expectLimit(unpacked, { reason: 'disk-quota', limit: /256 MiB/ });
    await expectNextCallWorks(entity_id);
  });

  test('a tar of very many entries is stored as it is and unpacked no further than the limit on files', async () => {
    const entity_id = freshName();
    const code = `import tarfile
with tarfile.open("many.tar.gz", "w:gz", compresslevel=1) as t:
    for n in range(${BOMB.tarEntries}): t.addfile(tarfile.TarInfo("d%d/f%d" % (n % 100, n)))`;
    const made = await attack('py', code);
    const [many] = made.files;
    await caller.upload('many.tar.gz', many ? await caller.download(many) : '', { entity_id });
    expect((await caller.bash('find . -type f', { entity_id })).stdout).toBe('./many.tar.gz\n');
    const unpacked = await attack('bash', 'tar xzf many.tar.gz', { entity_id });
    expectLimit(unpacked, { reason: 'disk-quota', limit: /5,?000/ });
    await expectNextCallWorks(entity_id);
  });

  test('a tar with paths that lead outside writes nothing outside', async () => {
    const code = `import tarfile, io
with tarfile.open("evil.tar", "w") as t:
    for name in ("../../../../${home.root}/escaped", "/${home.root}/escaped"):
        info = tarfile.TarInfo(name); info.size = 1; t.addfile(info, io.BytesIO(b"x"))`;
    const entity_id = freshName();
    await attack('py', code, { entity_id });
    await attack('bash', 'tar xPf evil.tar', { entity_id });
    expect(existsSync(`${home.root}/escaped`)).toBe(false);
    await expectNextCallWorks(entity_id);
  });
});
