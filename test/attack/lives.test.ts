/** Runs processes that refuse to end, that end unexpectedly or that damage their connection to the server, and checks that sessions keep working. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createHome, kill, processesOf, waitFor } from '../e2e/harness.ts';
import { startService } from '../e2e/http/service.ts';
import { endConfinedHome, freshName, KEY, type Lang, SMALL_LIMITS, useConfined } from './attack.ts';
import { pidsAround } from './traces.ts';

const { caller, attack, expectNextCallWorks } = await useConfined();

/** Python that runs a line of shell, and waits for it. */
const python = (shell: string) => `import subprocess; subprocess.run(["bash", "-c", ${JSON.stringify(shell)}])`;
const node = (shell: string) => `require("node:child_process").spawnSync("bash", ["-c", ${JSON.stringify(shell)}])`;
const cpp = (shell: string) => `#include <cstdlib>\nint main() { return system(${JSON.stringify(shell)}); }`;
const go = (shell: string) =>
  `package main\n\nimport "os/exec"\n\nfunc main() { exec.Command("bash", "-c", ${JSON.stringify(shell)}).Run() }\n`;
const IN: [Lang, (shell: string) => string][] = [
  ['py', python],
  ['bash', (shell) => shell],
  ['js', node],
  ['ts', node],
  ['go', go],
  ['cpp', cpp],
];

describe('a process that code leaves running', () => {
  const beats = 'while :; do echo x >> /mnt/data/beats; sleep 0.05; done';
  const WAYS: [string, (mark: string) => string][] = [
    ['with setsid', (mark) => `setsid bash -c '${beats}' ${mark} >/dev/null 2>&1 &`],
    ['by a double fork', (mark) => `( ( bash -c '${beats}' ${mark} >/dev/null 2>&1 & ) & )`],
    ['with nohup', (mark) => `nohup setsid bash -c '${beats}' ${mark} >/dev/null 2>&1 & disown`],
    ['ignoring signals', (mark) => `setsid bash -c 'trap "" INT TERM HUP; ${beats}' ${mark} >/dev/null 2>&1 &`],
    ['stopped', (mark) => `setsid bash -c 'kill -STOP $$; ${beats}' ${mark} >/dev/null 2>&1 &`],
  ];

  async function expectEnded(mark: string, entity_id: string): Promise<void> {
    await waitFor('nothing of it runs', () => processesOf(mark).length === 0);
    const look = () => caller.bash('cat beats 2>/dev/null | wc -c', { entity_id });
    const { stdout } = await look();
    await sleep(300);
    expect((await look()).stdout).toBe(stdout);
  }

  // In all languages at once: they wait more than they work.
  test.each(WAYS)('(%s) ends when the call returns', async (_, way) => {
    const expectOne = async ([lang, code]: (typeof IN)[number]) => {
      const [entity_id, mark] = [freshName(), `mark-${crypto.randomUUID()}`];
      const { run } = await attack(lang, code(`${way(mark)}\nsleep 0.3; true`), { entity_id });
      expect([lang, run.code]).toEqual([lang, 0]);
      await expectEnded(mark, entity_id);
    };
    await Promise.all(IN.map(expectOne));
  });

  test.each(WAYS)('(%s) ends when the call reaches its time limit', async (_, way) => {
    const expectOne = async ([lang, code]: (typeof IN)[number]) => {
      const [entity_id, mark] = [freshName(), `mark-${crypto.randomUUID()}`];
      const { run } = await attack(lang, code(`${way(mark)}\nsleep 60`), { entity_id, timeout: 3000 });
      expect([lang, run.reason]).toEqual([lang, 'timeout']);
      await expectEnded(mark, entity_id);
    };
    await Promise.all(IN.map(expectOne));
  });

  test('by fork in Python itself ends with the call and is not mistaken for the interpreter', async () => {
    const entity_id = freshName();
    const code = `import os, time
kept = 1
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for n in range(600):
            open("beats", "a").write("x")
            time.sleep(0.05)
time.sleep(0.3)
print("parent")`;
    const answer = await attack('py', code, { entity_id });
    expect(answer.stdout).toContain('parent\n');
    const { stdout } = await caller.bash('wc -c < beats', { entity_id });
    await sleep(300);
    expect((await caller.bash('wc -c < beats', { entity_id })).stdout).toBe(stdout);
    expect((await caller.python('print(kept)', { entity_id })).stdout).toBe('1\n');
    await expectNextCallWorks(entity_id);
  });

  test('ends when its session is deleted', async () => {
    const mark = `mark-${crypto.randomUUID()}`;
    const stream = await caller.stream({
      lang: 'bash',
      code: `setsid bash -c 'sleep 60; true' ${mark} & echo on; wait`,
    });
    await stream.event('stream');
    await caller.send('DELETE', `/sessions/${stream.events[0]?.session_id}`);
    await waitFor('nothing of it runs', () => processesOf(mark).length === 0);
    expect(await stream.ended).toBe(true);
  });
});

describe('a program that does not react to signals', () => {
  const DEAF: [Lang, string][] = [
    [
      'py',
      'import signal, time\nfor n in range(1, 65):\n    try: signal.signal(n, signal.SIG_IGN)\n    except (OSError, ValueError): pass\nwhile True:\n    try: time.sleep(60)\n    except BaseException: pass',
    ],
    ['bash', "trap '' INT TERM HUP QUIT USR1 USR2; while :; do sleep 1; done"],
    ['js', 'for (const s of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(s, () => {}); setInterval(() => {}, 1000);'],
    [
      'ts',
      'for (const s of ["SIGINT", "SIGTERM"] as const) process.on(s, (): void => {}); setInterval(() => {}, 1000);',
    ],
    [
      'go',
      'package main\n\nimport (\n\t"os/signal"\n\t"time"\n)\n\nfunc main() {\n\tsignal.Ignore()\n\ttime.Sleep(time.Minute)\n}\n',
    ],
    [
      'cpp',
      '#include <csignal>\n#include <unistd.h>\nint main() { for (int n = 1; n < 65; n++) std::signal(n, SIG_IGN); for (;;) sleep(60); }',
    ],
  ];

  test('is ended at its time limit in every language', async () => {
    const expectOne = async ([lang, code]: (typeof DEAF)[number]) => {
      const entity_id = freshName();
      const { run } = await attack(lang, code, { entity_id, timeout: 2000 });
      expect([lang, run.reason, run.status]).toEqual([lang, 'timeout', 'TO']);
      await expectNextCallWorks(entity_id);
    };
    await Promise.all(DEAF.map(expectOne));
  });

  test.each<[Lang, string]>([
    ['py', 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'],
    ['bash', 'kill -STOP $$'],
    ['cpp', '#include <csignal>\nint main() { raise(SIGSTOP); }'],
  ])(
    'because it has stopped itself (%s) is resumed or ended at its time limit, and the next call works',
    async (lang, code) => {
      const entity_id = freshName();
      const { run } = await attack(lang, code, { entity_id, timeout: 2000 });
      expect([null, 'timeout']).toContain(run.reason);
      await expectNextCallWorks(entity_id);
    },
  );
});

describe('the death of a process', () => {
  test.each<[string, Lang, string, string]>([
    ['os._exit', 'py', 'import os; os._exit(7)', 'process-exit'],
    ['os._exit(0)', 'py', 'import os; os._exit(0)', 'process-exit'],
    ['kill -9 of itself', 'py', 'import os; os.kill(os.getpid(), 9)', 'signal'],
    ['os.abort', 'py', 'import os; os.abort()', 'signal'],
    ['another program in its place', 'py', 'import os; os.execv("/bin/true", ["true"])', 'process-exit'],
    ['kill -9 of itself', 'bash', 'kill -9 $$', 'signal'],
    ['kill -9 of itself', 'js', 'process.kill(process.pid, "SIGKILL"); for (;;);', 'signal'],
  ])('by %s in %s is reported, and the next call works', async (_, lang, code, reason) => {
    const entity_id = freshName();
    const { run } = await attack(lang, code, { entity_id });
    expect(run.reason, run.message ?? '').toBe(reason);
    if (lang === 'py') expect(run.message).toMatch(/variables are lost/);
    await expectNextCallWorks(entity_id);
  });

  test.each<[Lang, string]>([
    ['py', 'import os; os.kill(-1, 9); print("after")'],
    ['bash', 'kill -9 -1; echo after'],
    ['py', 'import os, signal; signal.signal(15, signal.SIG_IGN); os.kill(-1, 15); print("after")'],
    ['cpp', '#include <csignal>\n#include <cstdio>\nint main() { kill(-1, 9); puts("after"); }'],
  ])('and of all others that %s code can kill leaves the next call working', async (lang, code) => {
    const entity_id = freshName();
    await attack(lang, code, { entity_id });
    await expectNextCallWorks(entity_id);
  });

  test('with id 1 cannot be caused by any signal', async () => {
    const entity_id = freshName();
    const before = await caller.python('kept = 1', { entity_id });
    const all = 'for n in range(1, 65):\n    try: os.kill(1, n)\n    except OSError: pass';
    const { run } = await attack('py', `import os\n${all}`, { entity_id });
    expect(run.code).toBe(0);
    await attack('bash', 'for n in $(seq 1 64); do kill -$n 1; done 2>/dev/null; true', { entity_id });
    const after = await caller.python('print(kept)', { entity_id });
    expect([after.stdout, after.session_id]).toEqual(['1\n', before.session_id]);
    await expectNextCallWorks(entity_id);
  });

  test('while no call runs is reported by the next call, which works', async () => {
    const entity_id = freshName();
    const code = 'import os, threading; threading.Timer(0.3, os._exit, [3]).start()';
    await attack('py', code, { entity_id });
    await sleep(800);
    const next = await caller.python('print(6 * 7)', { entity_id });
    expect(next.stdout).toBe('42\n');
    expect(`${next.run.message}`).toMatch(/lost|fresh/);
    await expectNextCallWorks(entity_id);
  });

  test('ten times in a row leaves the session working', async () => {
    const entity_id = freshName();
    for (let round = 0; round < 10; round += 1) {
      const { run } = await attack('py', 'import os; os.kill(os.getpid(), 9)', { entity_id });
      expect(run.reason).toBe('signal');
    }
    await expectNextCallWorks(entity_id);
  });

  test.each([
    ['sys.exit()', null],
    ['sys.exit(3)', 'exit'],
    ['quit()', null],
    ['exit(4)', 'exit'],
    ['raise SystemExit("words")', 'exit'],
    ['raise KeyboardInterrupt', 'exception'],
    ['raise GeneratorExit', 'exception'],
  ])('does not follow from %s, and variables survive', async (code, reason) => {
    const entity_id = freshName();
    await caller.python('kept = 1', { entity_id });
    const { run } = await attack('py', `import sys\n${code}`, { entity_id });
    expect(run.reason).toBe(reason);
    expect((await caller.python('print(kept)', { entity_id })).stdout).toBe('1\n');
    await expectNextCallWorks(entity_id);
  });
});

describe('the channel between a session and its server', () => {
  test.each([
    'import sys; sys.stdout.close()',
    'import sys; sys.stdout = sys.stderr = None',
    'import sys; sys.__stdout__ = sys.stdout = open("/dev/full", "w")',
    'import sys, io; sys.stdout = io.StringIO()',
    'import sys; sys.stdin.close(); sys.stdout.buffer.close()',
    'import os; os.close(1)',
    'import os; os.close(0); os.close(1); os.close(2)',
    'import os; os.closerange(0, 3); [os.open("/dev/null", os.O_RDWR) for _ in range(3)]',
    'import os; os.closerange(3, 1000)',
    'import os; os.dup2(os.open("/dev/zero", os.O_RDONLY), 0)',
    'import builtins; builtins.print = builtins.exec = builtins.compile = None',
    'import json, socket, select, os; json.dumps = json.loads = socket.socket = select.select = None',
    'import sys; sys.modules.clear()',
    'import gc, socket\nfor one in gc.get_objects():\n    if isinstance(one, socket.socket): one.close()',
    'import sys; sys.settrace(lambda *_: 1 / 0); sys.setprofile(lambda *_: 1 / 0)',
    'import threading, os\n[threading.Thread(target=lambda: [os.write(fd, b"x" * 99) for fd in range(3, 9)]).start() for _ in range(3)]',
    'import sys; sys.excepthook = sys.displayhook = None\n1 / 0',
    'import atexit, time; atexit.register(time.sleep, 1000)',
    'import os; os.chdir("/proc/self"); os.environ.clear()',
    'import os, shutil; shutil.rmtree("/mnt/data", ignore_errors=True); os.chdir("/")',
    'import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))',
    'import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0)); resource.setrlimit(resource.RLIMIT_CPU, (1, 1))',
    'import os; os.setpgid(0, 0); os.nice(19); os.umask(0o777)',
  ])('is repaired after %s, or the session can be deleted', async (code) => {
    const entity_id = freshName();
    await attack('py', code, { entity_id, timeout: 5000 });
    // The interpreter may be of no more use to its owner, who can still get rid of it.
    const { stdout, session_id } = await attack('py', 'print(6 * 7)', { entity_id, timeout: 240_000 });
    if (stdout !== '42\n') expect((await caller.send('DELETE', `/sessions/${session_id}`)).status).toBe(200);
    await expectNextCallWorks(entity_id);
  });

  test('does not take garbage on every descriptor for an answer', async () => {
    const entity_id = freshName();
    const forged = JSON.stringify({ ev: 'done', op: 'done', id: '1', status: 'ok', seq: 1 });
    const code = `import os
for fd in range(3, 256):
    for text in (b"\\x00\\xff garbage\\n", ${JSON.stringify(`${forged}\n`)}.encode(), b"{" * 70_000):
        try: os.set_blocking(fd, False); os.write(fd, text)
        except OSError: break
raise ValueError("the true end")`;
    const answer = await attack('py', code, { entity_id, timeout: 5000 });
    expect(answer.run.code).not.toBe(0);
    await expectNextCallWorks(entity_id);
  });

  test('carries what children and C code write to the right stream', async () => {
    const code = `import ctypes, subprocess
subprocess.run(["sh", "-c", "echo child; echo error >&2"])
ctypes.CDLL(None).write(1, b"by C\\n", 5)
ctypes.CDLL(None).write(2, b"also by C\\n", 10); None`;
    const { stdout, stderr } = await attack('py', code);
    expect([stdout, stderr]).toEqual(['child\nby C\n', 'error\nalso by C\n']);
  });

  test.each<[string, Lang, string]>([
    ['input()', 'py', 'input("name? ")'],
    ['getpass', 'py', 'import getpass; getpass.getpass()'],
    ['the terminal', 'py', 'open("/dev/tty").read()'],
    ['standard input', 'py', 'import sys; print([sys.stdin.read()]); 1 / 0'],
    ['read', 'bash', 'read x && echo "read $x"; read y < /dev/tty; false'],
  ])('answers code that asks for input through %s at once', async (_, lang, code) => {
    const { run } = await attack(lang, code, { timeout: 240_000 });
    expect(run.reason).not.toBe('timeout');
    expect(run.code).not.toBe(0);
  });
});

describe('an interrupt', () => {
  const SLOW: [string, string][] = [
    ['sleep', 'import time; time.sleep(60)'],
    ['an import', 'open("slow.py", "w").write("import time; time.sleep(60)")\nimport slow'],
    ['C code', 'import numpy; x = numpy.random.rand(500, 500)\nwhile True: x = x @ x / 500'],
    ['a wait for a lock', 'import threading; x = threading.Lock(); x.acquire(); x.acquire()'],
    ['a wait for a child', 'import subprocess; subprocess.run(["sleep", "60"])'],
    ['a finally block', 'try:\n    while True: pass\nfinally:\n    import time; time.sleep(1)'],
  ];

  test.each(SLOW)('during %s leaves variables intact, and the call right after it works', async (_, code) => {
    const entity_id = freshName();
    await caller.python('kept = 1', { entity_id });
    const { run } = await attack('py', code, { entity_id, timeout: 1000 });
    expect([run.reason, run.status]).toEqual(['timeout', 'TO']);
    expect(run.message).toMatch(/Variables survived/);
    expect((await caller.python('print(kept)', { entity_id })).stdout).toBe('1\n');
    await expectNextCallWorks(entity_id);
  });

  test.each(SLOW)('during %s by callers that disconnect, twice, leaves variables intact', async (_, code) => {
    const entity_id = freshName();
    await caller.python('kept = 1', { entity_id });
    for (let round = 0; round < 2; round += 1) {
      const stream = await caller.stream({ lang: 'py', code: `print("begun", flush=True)\n${code}`, entity_id });
      await stream.event('stream');
      stream.close();
    }
    expect((await caller.python('print(kept)', { entity_id })).stdout).toBe('1\n');
    await expectNextCallWorks(entity_id);
  });
});

describe('a server', () => {
  test.each(['SIGTERM', 'SIGKILL'] as const)(
    'that is killed by %s hands its sessions to the next server, which ends without an error',
    async (signal) => {
      const home = createHome();
      const options = { home, args: ['--sandbox', 'on'], env: SMALL_LIMITS };
      try {
        const before = await startService(options);
        const headers = { 'x-api-key': KEY };
        await before.as(headers).python('kept = 1; open("f", "w").write("f"); None', { entity_id: 'live' });
        const busy = await before.as(headers).stream({ lang: 'bash', code: 'echo on; sleep 60', entity_id: 'busy' });
        await busy.event('stream');
        await before.stop(signal);
        const after = await startService(options);
        const next = await after.as(headers).python('print(kept, open("f").read())', { entity_id: 'live' });
        expect(next.stdout).toBe('1 f\n');
        expect((await after.as(headers).bash('echo on', { entity_id: 'busy' })).stdout).toBe('on\n');
        const { code, stderr } = await after.stop('SIGINT');
        expect([code, stderr]).toEqual([0, '']);
      } finally {
        await endConfinedHome(home);
      }
    },
  );

  test('whose zygotes and keepers are killed from outside goes on', async () => {
    const home = createHome();
    try {
      const service = await startService({ home, args: ['--sandbox', 'on'], env: SMALL_LIMITS });
      const call = () => service.as({ 'x-api-key': KEY }).python('print(6 * 7)', { entity_id: 'live' });
      expect((await call()).stdout).toBe('42\n');
      for (const pid of pidsAround(home)) if (pid !== service.pid) kill(pid);
      const answers = [await call(), await call()];
      await service.stop('SIGINT');
      expect(answers.map(({ stdout, stderr }) => stdout + stderr)).toContain('42\n');
      expect(answers[1]?.stdout).toBe('42\n');
    } finally {
      await endConfinedHome(home);
    }
  });
});
