/** Repeats what is known to break servers of this kind: each of these cases has stopped, confused or endangered one. */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { resolvePackage } from '../../src/interpreters/python/package-names.ts';
import { type Agent, startAgent, useHome } from './harness.ts';

const home = useHome();
const cwd = home.project();
const PACKAGE = 'cowsay';
let agent: Agent;

const uninstall = () =>
  execFileSync(inject('managedPython'), ['-m', 'pip', 'uninstall', '--quiet', '--yes', PACKAGE], { stdio: 'pipe' });

beforeAll(async () => {
  uninstall();
  agent = await startAgent({ home, cwd });
});
afterAll(uninstall);

/** The next call gets its own answer, and nothing of an earlier one. */
async function expectOwnAnswer(): Promise<void> {
  const mark = Math.random().toString(36).slice(2);
  expect((await agent.execute(`print('${mark}')`)).text).toBe(mark);
}

describe('the channel of the server', () => {
  test.each([
    ['a child process', 'import subprocess; subprocess.run(["echo", "written past Python"])'],
    ['a shell', 'import os; os.system("echo written past Python; echo written past Python >&2")'],
    ['a descriptor', 'import os; os.write(1, b"written past Python\\n{}\\n"); os.write(2, b"[1, 2]\\n")'],
    ['C', 'import ctypes; ctypes.CDLL(None).puts(b"written past Python"); ctypes.CDLL(None).fflush(None)'],
    [
      'a forked copy',
      'import os\nif os.fork() == 0:\n    os.write(1, b"written past Python\\n")\n    os._exit(0)\nos.wait()',
    ],
    [
      'forged messages',
      'import os; os.write(1, b\'written past Python\\n{"ev": "done", "id": "1", "seq": 1}\\n\' * 50)',
    ],
  ])('takes what %s writes for output, and the next call gets its own answer', async (_, code) => {
    const answer = await agent.execute(code);
    expect(answer.text).toContain('written past Python');
    expect(answer.structured.outcome).toBe('ok');
    await expectOwnAnswer();
  });

  test('is not blocked by a child that writes much to standard error', async () => {
    const answer = await agent.execute(
      'import subprocess, sys\nsubprocess.run([sys.executable, "-c", "import sys; sys.stderr.write(chr(101) * 200_000)"]).returncode',
    );
    expect(answer.structured).toMatchObject({ outcome: 'ok', output_length: 200_002 });
    expect(readFileSync(answer.structured.output_file, 'utf8')).toBe(`${'e'.repeat(200_000)}0\n`);
    await expectOwnAnswer();
  });

  test('survives code that closes the standard streams', async () => {
    await agent.execute('import os, sys; os.close(1); os.close(2); sys.stdout.close(); os.close(0)');
    await expectOwnAnswer();
  });
});

describe('code that asks for input', () => {
  test.each([
    ['input()', 'input("name? ")', 'EOFError'],
    ['sys.stdin', 'import sys; repr(sys.stdin.read())', "''"],
    ['a child that reads', 'import subprocess; subprocess.run(["cat"], capture_output=True).stdout', "b''"],
    ['a password prompt', 'import getpass; getpass.getpass()', 'Error'],
  ])('through %s is answered at once, and the next call works', async (_, code, expected) => {
    expect((await agent.execute(code, { timeout: 200 })).text).toContain(expected);
    await expectOwnAnswer();
  });
});

test('after a time-out, the code is dead and the next call gets its own answer', async () => {
  await agent.execute('kept = "still here"');
  const answer = await agent.execute(
    'import time\nwhile True:\n    with open("ticks", "a") as file: file.write("x")\n    print("tick", flush=True)\n    time.sleep(0.02)',
    { timeout: 2 },
  );
  expect(answer.structured).toMatchObject({ outcome: 'timeout', variables_survived: true });
  expect(answer.isError).toBe(true);
  const ticks = statSync(join(cwd, 'ticks')).size;
  expect(ticks).toBeGreaterThan(0);
  await expectOwnAnswer();
  await sleep(200);
  expect(statSync(join(cwd, 'ticks')).size).toBe(ticks);
  expect((await agent.execute('kept')).text).toBe("'still here'");
});

test.each(['import sys; sys.exit(3)', 'raise SystemExit', 'exit()', 'quit(0)', 'import sys; sys.exit("a message")'])(
  'code that runs "%s" keeps its variables',
  async (code) => {
    await agent.execute(`before = ${JSON.stringify(code)}`);
    const answer = await agent.execute(code);
    expect(answer.structured).toMatchObject({ variables_survived: true, state: 'done' });
    expect((await agent.execute('print(before)')).text).toBe(code);
  },
);

test('an install at an import does not run the cell twice', async () => {
  const answer = await agent.execute(
    `with open("runs", "a") as file: file.write("run\\n")\nimport ${PACKAGE}\n${PACKAGE}.__name__`,
  );
  expect(answer.text).toContain(`'${PACKAGE}'`);
  expect(answer.text).toContain(`[installed ${PACKAGE}`);
  expect(readFileSync(join(cwd, 'runs'), 'utf8')).toBe('run\n');
});

test('the socket lies in a folder that only its owner can enter, under a name that nobody can guess', async () => {
  const other = await startAgent({ home, cwd: home.project() });
  await other.execute('1');
  const infos = await Promise.all([agent, other].map((one) => one.call('get_session_info')));
  const paths = infos.map(({ structured }) => String(structured.socket_path));
  for (const path of paths) {
    expect(statSync(path).isSocket()).toBe(true);
    const folder = statSync(dirname(path));
    expect(folder.mode & 0o777).toBe(0o700);
    expect(folder.uid).toBe(process.getuid?.());
    expect(basename(path)).toMatch(/^[\w-]{10}\.sock$/);
  }
  expect(new Set(paths).size).toBe(2);
  expect(paths.join()).not.toContain(String(agent.pid));
  expect(statSync(home.runtime).mode & 0o777).toBe(0o700);
  const keepers = readdirSync(join(home.runtime, 'k')).map((name) => join(home.runtime, 'k', name));
  const zygotes = readdirSync(join(home.runtime, 'z')).map((name) => join(home.runtime, 'z', name));
  expect(keepers.length * zygotes.length).toBeGreaterThan(0);
  for (const folder of [...keepers, ...zygotes]) expect(statSync(folder).mode & 0o777, folder).toBe(0o700);
  await other.close();
});

test('the very first call already knows the path of the socket', async () => {
  const other = await startAgent({ home, cwd: home.project() });
  const { structured } = await other.call('get_session_info');
  expect(structured.socket_path).toMatch(/\.sock$/);
  await other.close();
});

test.each([
  ['cv2', 'opencv-python'],
  ['yaml', 'pyyaml'],
  ['sklearn', 'scikit-learn'],
  ['sklearn.linear_model', 'scikit-learn'],
  ['skimage', 'scikit-image'],
  ['PIL', 'pillow'],
  ['PIL.Image', 'pillow'],
  ['bs4', 'beautifulsoup4'],
  ['dateutil', 'python-dateutil'],
  ['docx', 'python-docx'],
  ['pptx', 'python-pptx'],
  ['fitz', 'pymupdf'],
  ['dotenv', 'python-dotenv'],
  ['jwt', 'pyjwt'],
  ['serial', 'pyserial'],
  ['usb', 'pyusb'],
  ['Crypto', 'pycryptodome'],
  ['OpenSSL', 'pyopenssl'],
  ['attr', 'attrs'],
  ['magic', 'python-magic'],
  ['googleapiclient', 'google-api-python-client'],
  ['google.cloud.storage', 'google-cloud-storage'],
  ['psycopg2', 'psycopg2-binary'],
  ['MySQLdb', 'mysqlclient'],
])('an import of %s asks for the package %s', (module, distribution) => {
  const resolution = resolvePackage(module);
  expect(resolution.kind).toBe('known');
  expect('distribution' in resolution && resolution.distribution).toMatch(new RegExp(`^${distribution}(-headless)?$`));
});
