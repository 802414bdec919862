/** Imports packages that are missing, which are installed or answered with what to do, and checks the environment that they go into. */

import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createServer } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { type Agent, HANGS_AFTER, processesOf, startAgent, useHome, waitFor } from './harness.ts';

const PACKAGES = ['humanize', 'python-dotenv', 'tinydb'];
const NOWHERE = {
  PIP_INDEX_URL: 'http://127.0.0.1:9/simple',
  UV_INDEX_URL: 'http://127.0.0.1:9/simple',
  UV_DEFAULT_INDEX: 'http://127.0.0.1:9/simple',
  PIP_FIND_LINKS: undefined,
  PIP_NO_INDEX: undefined,
};
const home = useHome();
let agent: Agent;

const python = () => inject('managedPython');
const uninstall = () =>
  execFileSync(python(), ['-m', 'pip', 'uninstall', '--quiet', '--yes', ...PACKAGES], { stdio: 'pipe' });
const isInstalled = (module: string) =>
  execFileSync(python(), ['-c', `import importlib.util as u; print(u.find_spec("${module}") is not None)`], {
    encoding: 'utf8',
  }).trim() === 'True';

beforeAll(async () => {
  uninstall();
  agent = await startAgent({ home, cwd: home.project() });
});
afterAll(uninstall);

describe('in the managed environment,', () => {
  test('a missing package is installed at its import, and the answer says so', async () => {
    const answer = await agent.execute('import humanize\nhumanize.intcomma(1234567)');
    expect(answer.text).toMatch(/^'1,234,567'\n\[installed humanize \d+[\d.]* in \d+\.\d s\]$/);
    expect(answer.structured).toMatchObject({
      outcome: 'ok',
      installed: [{ module: 'humanize', distribution: 'humanize', version: expect.stringMatching(/^\d/) }],
    });
    expect((await agent.execute('import humanize')).text).toBe('');
    await agent.call('reset');
    expect((await agent.execute('import humanize; humanize.intcomma(1000)')).text).toBe("'1,000'");
  });

  test('a package with another name than its module is found, for two sessions at once', async () => {
    const other = await startAgent({ home, cwd: home.project() });
    const code = 'from dotenv import dotenv_values\ncallable(dotenv_values)';
    const answers = await Promise.all([agent.execute(code), other.execute(code)]);
    for (const { text, structured } of answers) {
      expect(text.split('\n')[0]).toBe('True');
      expect(structured.outcome).toBe('ok');
    }
    expect(answers.some(({ text }) => text.includes('[installed python-dotenv '))).toBe(true);
    await other.close();
  });

  test('a misspelt package name is not installed but answered with the right one', async () => {
    const answer = await agent.execute('import reqeusts');
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain("No module named 'reqeusts'");
    expect(answer.text).toContain('Did you mean requests? Nothing was installed');
    expect(answer.structured).toMatchObject({ installed: [], reason: { code: 'exception' } });
    expect(isInstalled('reqeusts')).toBe(false);
  });

  test('a package name that nobody has ever had is answered clearly', async () => {
    const answer = await agent.execute('import zzqx_no_such_thing_17');
    expect(answer.text).toContain("ModuleNotFoundError: No module named 'zzqx_no_such_thing_17'");
    expect(answer.text).toContain('There is no installable package named zzqx-no-such-thing-17');
  });

  test.each([
    ['try', 'try:\n    import tinydb\nexcept ImportError:\n    tinydb = None\ntinydb'],
    ['suppress', 'import contextlib\nwith contextlib.suppress(ImportError):\n    import tinydb\n    print("imported")'],
    ['find_spec', 'import importlib.util\nimportlib.util.find_spec("tinydb")'],
    [
      'a function that is called in try',
      'def load():\n    import tinydb\ntry:\n    load()\nexcept ModuleNotFoundError:\n    pass',
    ],
  ])('code that expects the import to fail (%s) is left alone', async (_, code) => {
    const answer = await agent.execute(code);
    expect(answer.text).toBe('');
    expect(answer.structured).toMatchObject({ outcome: 'ok', installed: [] });
    expect(isInstalled('tinydb')).toBe(false);
  });

  test('with automatic installs off, the answer says what to run', async () => {
    const other = await startAgent({ home, cwd: home.project(), args: ['--no-auto-install'] });
    const answer = await other.execute('import tinydb');
    expect(answer.text).toContain('Automatic installs are off; run: %pip install tinydb');
    expect(isInstalled('tinydb')).toBe(false);
    await other.close();
  });

  test('without a network, the answer says that there is none', async () => {
    const other = await startAgent({ home, cwd: home.project(), env: NOWHERE });
    const answer = await other.execute('import tinydb');
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain('tinydb could not be installed: the package index cannot be reached');
    expect((await other.execute('1')).text).toBe('1');
    await other.close();
  });

  test('an install that never ends is stopped with the call, and leaves no process', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const { port } = silent.address() as { port: number };
    const index = `http://127.0.0.1:${port}/simple`;
    const env = { ...NOWHERE, PIP_INDEX_URL: index, UV_INDEX_URL: index, UV_DEFAULT_INDEX: index };
    const other = await startAgent({ home, cwd: home.project(), env });
    await other.execute('kept = 1');
    const installers = () => processesOf(home.root).filter(({ command }) => /pip install/.test(command));
    const { execution } = (await other.execute('import tinydb', { background: true })).structured;
    await waitFor('the installer runs', () => installers().length > 0);
    const answer = await other.call('interrupt', { execution });
    expect(answer.structured).toMatchObject({ outcome: 'cancelled', variables_survived: true });
    await waitFor('the installer ends', () => installers().length === 0);
    expect((await other.execute('kept')).text).toBe('1');
    await other.close();
    silent.close();
  });
});

test('a session that began before uv made the environment needs no reset', async () => {
  const cache = home.project('uv-cache-home');
  const bin = home.project('uv-bin');
  symlinkSync(join(inject('tools'), 'bin', 'uv'), join(bin, 'uv'));
  const env = {
    XDG_CACHE_HOME: cache,
    UV_CACHE_DIR: join(dirname(inject('tools')), 'uv'),
    PATH: [bin, process.env.PATH].join(delimiter),
  };
  const other = await startAgent({ home, cwd: home.project(), env });
  expect((await other.execute('early = 1\nimport sys; sys.prefix == sys.base_prefix')).text).toBe('True');
  expect((await other.call('get_session_info')).text).toContain('while the managed environment is being made');
  const answer = await other.execute('import pandas as pd\npd.DataFrame({"a": [1, 2]}).a.sum() + early');
  expect(answer.structured.outcome).toBe('ok');
  expect(answer.text.split('\n').at(-1)).toMatch(/^(np\.int64\()?4\)?$/);
  expect((await other.call('get_session_info')).text).toContain('environment: ready');
  const made = join(cache, 'cuvette', 'python');
  const [name] = readdirSync(made).filter((entry) => existsSync(join(made, entry, 'ready')));
  expect(readFileSync(join(made, name ?? '', 'pyvenv.cfg'), 'utf8')).toMatch(/^uv = /m);
  expect((await other.execute('import tinydb; tinydb.__name__')).text).toMatch(/^'tinydb'\n\[installed tinydb /);
  // A fresh interpreter starts in the environment, IPython and all.
  await other.call('stop_interpreter', { name: 'builtin' });
  expect((await other.execute('get_ipython() is not None')).text).toMatch(/^True/);
  await other.close();
});

test.each(['/dev/null/nope', '/proc/nope'])(
  'where the environment can have no folder (%s), sessions run on plain Python and say why',
  async (folder) => {
    const other = await startAgent({ home, cwd: home.project(), env: { XDG_CACHE_HOME: folder } });
    expect((await other.execute('6 * 7', {}, { timeout: HANGS_AFTER })).text).toBe('42');
    const info = await waitFor('the reason', async () => {
      const { text } = await other.call('get_session_info');
      return !text.includes('being made') && text;
    });
    expect(info).toMatch(/environment: plain Python 3\.\d+\.\d+: .*\/nope\/cuvette cannot be written/);
    const answer = await other.execute('import tinydb');
    expect(answer.text).toContain('Nothing can be installed');
    expect(answer.text).toContain(folder);
    await other.close();
  },
);

test('where Python is missing, every call says what to do', async () => {
  const other = await startAgent({ home, cwd: home.project(), args: ['--python', '/nowhere/python3'] });
  const answer = await other.execute('1');
  expect(answer.isError).toBe(true);
  expect(answer.text).toContain('There is no Python at /nowhere/python3');
  expect((await other.call('get_session_info')).text).toContain('no Python: There is no Python at /nowhere/python3');
  expect((await other.call('list_interpreters')).text).toContain('no Python found');
  await other.close();
});
