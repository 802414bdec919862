/** `cuvette run` behaves as if the code were a program of its own: its streams, its exit codes, its signals. */

import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  type Agent,
  type CliOptions,
  createHome,
  HANGS_AFTER,
  MAIN,
  runCli,
  runOutside,
  startAgent,
  startCli,
  useHome,
  waitFor,
} from './harness.ts';

const home = useHome();
const cwd = home.project();
let agent: Agent;

beforeAll(async () => {
  agent = await startAgent({ home, cwd });
  await agent.execute('import time, sys, os');
});

const run = (args: string[], options: Partial<CliOptions> = {}) => runCli(['run', ...args], { home, cwd, ...options });

describe('cuvette run', () => {
  test('writes to standard output what the program printed and showed, and nothing else', async () => {
    const code = 'print("out")\nprint("err", file=sys.stderr)\nos.system("echo child; echo child-err >&2")\n"value"';
    const { code: exit, stdout, stderr } = await run(['-c', code]);
    expect(exit).toBe(0);
    expect(stdout).toBe("out\nchild\n'value'\n");
    expect(stderr).toBe('err\nchild-err\n');
  });

  test('writes errors and remarks to standard error', async () => {
    const failed = await run(['-c', 'print("before"); 1/0']);
    expect(failed.stdout).toBe('before\n');
    expect(failed.stderr).toContain('ZeroDivisionError: division by zero');
    const left = await run(['-c', 'import subprocess; p = subprocess.Popen(["sleep", "377"]); print("left")']);
    expect(left.stdout).toBe('left\n');
    expect(left.stderr).toBe('[ended with the call: sleep 377]\n');
  });

  test('delivers much output whole', async () => {
    const { code, stdout } = await run(['-c', 'for i in range(200_000): print(i)']);
    expect(code).toBe(0);
    expect(stdout === Array.from({ length: 200_000 }, (_, index) => `${index}\n`).join('')).toBe(true);
  });

  test('writes output while the code runs', async () => {
    const go = join(cwd, 'go-on');
    const running = startCli(['run', '-c', `print("first")\nwhile not os.path.exists(r"${go}"): time.sleep(0.01)`], {
      home,
      cwd,
    });
    await waitFor('the first line', () => running.stdout() === 'first\n');
    writeFileSync(go, '');
    expect((await running.done).code).toBe(0);
  });

  test('does not crash when its reader, such as head, has enough', () => {
    const command = `"$0" "${MAIN}" run -c 'for i in range(100_000): print(i)' | head -n 2; echo "status \${PIPESTATUS[0]}"`;
    const { stdout, stderr } = spawnSync('bash', ['-c', command, process.execPath], {
      cwd,
      env: home.env(),
      encoding: 'utf8',
      timeout: HANGS_AFTER,
    });
    expect(stdout).toMatch(/^0\n1\nstatus \d+\n$/);
    expect(stderr).not.toContain('node:');
    expect(stderr).not.toMatch(/^\s+at /m);
  });

  test('saves figures and writes their paths to standard error', async () => {
    const { stdout, stderr } = await run(['-c', 'import matplotlib.pyplot as plt\nplt.plot([1, 2]);']);
    expect(stdout).toBe('');
    const path = /^\[figure: (.*\.png)\]\n$/.exec(stderr)?.[1] ?? '';
    expect(readFileSync(path).subarray(1, 4).toString()).toBe('PNG');
  });
});

describe('the code for cuvette run', () => {
  test('comes from a file, from standard input, or from the command line', async () => {
    writeFileSync(join(cwd, 'script.py'), 'source = "a file"\nprint(source)\n');
    expect((await run(['script.py'])).stdout).toBe('a file\n');
    expect((await run([], { input: 'print("standard input")\n' })).stdout).toBe('standard input\n');
    expect((await run(['-'], { input: 'print("a dash")' })).stdout).toBe('a dash\n');
    expect((await run(['-c', 'print("a flag")'])).stdout).toBe('a flag\n');
    expect((await agent.execute('source')).text).toBe("'a file'");
  });

  test('that does not exist, or flags that make no sense, end it with status 2', async () => {
    const missing = await run(['nowhere.py']);
    expect([missing.code, missing.stdout]).toEqual([2, '']);
    expect(missing.stderr).toContain('nowhere.py cannot be read');
    expect((await run(['--what'])).code).toBe(2);
    expect((await run(['-c', '1', '--timeout', 'soon'])).stderr).toContain('--timeout takes seconds');
  });

  test('for a session or an interpreter that does not exist is refused with the reason', async () => {
    const session = await run(['--session', 'nobody', '-c', '1']);
    expect([session.code, session.stdout]).toEqual([2, '']);
    expect(session.stderr).toContain('There is no session nobody');
    const interpreter = await run(['-i', 'nothing', '-c', '1']);
    expect(interpreter.code).not.toBe(0);
    expect(interpreter.stderr).toContain('There is no interpreter named nothing');
    const server = await run(['--server', '999999', '-c', '1']);
    expect([server.code, server.stderr]).toEqual([69, expect.stringContaining('no server with pid 999999')]);
  });
});

describe('the exit code of cuvette run', () => {
  test.each([
    ['success', 'x = 1', 0],
    ['an exception', 'raise ValueError("x")', 1],
    ['a syntax error', 'for', 1],
    ['sys.exit(7)', 'sys.exit(7)', 7],
    ['sys.exit()', 'sys.exit()', 0],
    ['sys.exit("message")', 'sys.exit("message")', 1],
    ['os._exit(9)', 'import os; os._exit(9)', 9],
    ['a segmentation fault', 'import ctypes; ctypes.string_at(0)', 139],
    ['SIGKILL', 'import os; os.kill(os.getpid(), 9)', 137],
  ])('is right after %s', async (_, code, expected) => {
    expect((await run(['-c', `import sys\n${code}`])).code).toBe(expected);
  });

  test('is right after a time-out', async () => {
    const { code, stderr } = await run(['--timeout', '0.3', '-c', 'import time; time.sleep(600)']);
    expect(code).toBe(124);
    expect(stderr).toContain('Timed out after 0.3 s');
  });
});

describe('cuvette run that is ended', () => {
  const loop = (file: string) =>
    `import time\nkept = "${file}"\nwhile True:\n    with open("${file}", "a") as out: out.write("x")\n    print("tick")\n    time.sleep(0.02)`;
  async function expectStill(file: string): Promise<void> {
    expect((await agent.execute('kept')).text).toBe(`'${file}'`);
    const size = statSync(join(cwd, file)).size;
    await sleep(200);
    expect(statSync(join(cwd, file)).size).toBe(size);
  }

  test('by Ctrl-C interrupts the code, and the session lives on', async () => {
    const running = startCli(['run', '-c', loop('ctrl-c')], { home, cwd });
    await waitFor('the code runs', () => running.stdout().includes('tick'));
    running.child.kill('SIGINT');
    const { code, stderr } = await running.done;
    expect(code).toBe(130);
    expect(stderr).toContain('Cancelled');
    await expectStill('ctrl-c');
  });

  test.each(['SIGKILL', 'SIGTERM', 'SIGHUP'] as const)('by %s takes its code with it', async (signal) => {
    const running = startCli(['run', '-c', loop(signal)], { home, cwd });
    await waitFor('the code runs', () => running.stdout().includes('tick'));
    running.child.kill(signal);
    await running.done;
    await expectStill(signal);
  });

  test('while it waits for its turn takes its code with it', async () => {
    const { execution } = (await agent.execute(loop('ahead'), { background: true })).structured;
    await waitFor('the first runs', () => existsSync(join(cwd, 'ahead')));
    const waiting = startCli(['run', '-c', 'open("never", "w")'], { home, cwd });
    await waitFor('it waits', async () => {
      const { running } = (await agent.call('get_session_info')).structured;
      return (running as number[]).length === 2;
    });
    waiting.child.kill('SIGKILL');
    await waiting.done;
    await sleep(100);
    await agent.call('interrupt', { execution });
    expect((await agent.execute('import os; os.path.exists("never")')).text).toBe('False');
  });
});

describe('cuvette call', () => {
  test("prints the text of a tool's answer, or its structure", async () => {
    await agent.call('reset');
    await agent.execute('only = 1');
    expect(await runCli(['call', 'list_vars'], { home, cwd })).toEqual({ code: 0, stdout: 'only\n', stderr: '' });
    const { stdout } = await runCli(['call', '--json', 'list_vars'], { home, cwd });
    expect(JSON.parse(stdout)).toMatchObject({ variables: [{ name: 'only', type: 'int' }] });
    expect((await runCli(['call', 'execute', '{"code": "1/0"}'], { home, cwd })).code).toBe(1);
    for (const args of [['call'], ['call', 'nothing'], ['call', 'execute', '{']])
      expect((await runCli(args, { home, cwd })).code).toBe(2);
  });
});

describe('without a server,', () => {
  test('cuvette run inside an agent says how to add one and exits with 69, and --start starts one', async () => {
    const folder = home.project();
    const env = { CLAUDECODE: '1' };
    const refused = await runOutside(['run', '-c', '1 + 1'], { home, cwd: folder, env });
    expect([refused.code, refused.stdout]).toEqual([69, '']);
    expect(refused.stderr).toContain('claude mcp add cuvette');
    expect(refused.stderr).toContain('--start');
    const started = await runOutside(['run', '--start', '-c', '1 + 1'], { home, cwd: folder, env });
    expect(started).toEqual({ code: 0, stdout: '2\n', stderr: '' });
  });

  test('cuvette run outside an agent starts one in the background, which two shells share', async () => {
    const other = createHome();
    try {
      const folder = other.project();
      mkdirSync(join(folder, '.git'));
      const inner = join(folder, 'inner');
      mkdirSync(inner);
      const options = { home: other, cwd: folder };
      const code = 'import os; print(os.getpid())';
      const results = await Promise.all([
        runOutside(['run', '-c', code], options),
        runOutside(['run', '-c', code], { ...options, cwd: inner }),
      ]);
      expect(results.map((result) => result.code)).toEqual([0, 0]);
      expect(Number(results[0]?.stdout)).toBeGreaterThan(1);
      expect(results[1]?.stdout).toBe(results[0]?.stdout);
      expect(readdirSync(join(other.runtime, 'servers'))).toHaveLength(1);
      await runOutside(['run', '-c', 'kept = 8'], options);
      expect((await runOutside(['run', '-c', 'kept'], options)).stdout).toBe('8\n');
    } finally {
      await other.close();
    }
  });
});

describe('a runtime folder that cannot be used because it is', () => {
  const notFolder = () => {
    const path = join(home.root, 'a-file');
    writeFileSync(path, '');
    return path;
  };
  const openToAll = () => {
    const path = home.project('open');
    mkdirSync(join(path, 'cuvette'), { recursive: true, mode: 0o755 });
    return path;
  };

  test.each([
    ['a file', notFolder, 'cannot be written'],
    ['open to others', openToAll, 'chmod 700'],
  ])('%s is reported by every command with what to do', async (_, make, expected) => {
    const env = { XDG_RUNTIME_DIR: make() };
    const folder = home.project();
    const outside = await runOutside(['run', '-c', '1'], { home, cwd: folder, env });
    const server = await runCli(['mcp'], { home, cwd: folder, env });
    for (const { code, stdout, stderr } of [outside, server]) {
      expect([code, stdout]).toEqual([73, '']);
      expect(stderr).toContain(expected);
      expect(stderr).toContain('CUVETTE_HOME');
      expect(stderr.trim().split('\n')).toHaveLength(1);
    }
  });
});
