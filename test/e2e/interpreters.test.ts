/** Checks Pythons of the user's own beside the builtin one: how they are added, saved, discovered, stopped and refused. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Agent, gone, isAlive, startAgent, useHome, waitFor } from './harness.ts';

const home = useHome({ preload: 'none' });
const cwd = home.project();
let agent: Agent;

const makeVenv = (path: string) => execFileSync('python3', ['-m', 'venv', '--without-pip', path]);
const entry = async (from: Agent, name: string) =>
  (await from.call('list_interpreters')).structured.interpreters.find((one) => one.name === name);
const add = (name: string, args: Record<string, unknown>, to = agent) => to.call('add_interpreter', { name, ...args });

beforeAll(async () => {
  makeVenv(join(cwd, 'env'));
  agent = await startAgent({ home, cwd });
});
afterAll(() => agent.close());

test('sessions of the builtin interpreter find loaded what --preload names, and nothing that it does not name', async () => {
  const look = async (from: Agent) => {
    const code = 'import sys; print([name in sys.modules for name in ("colorsys", "pandas")])';
    return (await from.execute(code, { session: 'new' })).structured.output;
  };
  const loading = await startAgent({ home, cwd: home.project(), args: ['--preload', 'colorsys, no_such_module'] });
  // A session that begins before all is loaded does not wait for it.
  await waitFor('a session finds the module', async () => (await look(loading)) === '[True, False]\n');
  expect(await look(agent)).toBe('[False, False]\n');
  await loading.close();
});

describe('an interpreter that is added', () => {
  test('runs with a path relative to the project, apart from the builtin one', async () => {
    const answer = await add('mine', { python_path: 'env/bin/python', description: 'for tests' });
    expect(answer.structured).toMatchObject({
      name: 'mine',
      source: 'transient',
      state: 'running',
      python_path: join(cwd, 'env/bin/python'),
      version: expect.stringMatching(/^3\.\d+\.\d+/),
      description: 'for tests',
      cwd,
    });
    await agent.execute('where = "mine"', { interpreter: 'mine' });
    await agent.execute('where = "builtin"');
    expect((await agent.execute('where', { interpreter: 'mine' })).text).toBe("'mine'");
    const place = await agent.execute(
      'import sys, os, shutil\nprint(sys.prefix, os.environ["VIRTUAL_ENV"], shutil.which("python"))',
      {
        interpreter: 'mine',
      },
    );
    expect(place.text).toBe(`${join(cwd, 'env')} ${join(cwd, 'env')} ${join(cwd, 'env/bin/python')}`);
    expect((await agent.call('list_vars', { interpreter: 'mine' })).text).toBe('os, shutil, sys, where');
    expect((await agent.call('reset', { interpreter: 'mine' })).text).toBe('Scope cleared (4 items removed)');
    expect((await agent.execute('where')).text).toBe("'builtin'");
  });

  test('installs nothing and says which command would', async () => {
    const answer = await agent.execute('import requests', { interpreter: 'mine' });
    expect(answer.text).toContain('ModuleNotFoundError');
    expect(answer.text).toContain(`${join(cwd, 'env/bin/python')} -m pip install requests`);
    expect((await agent.execute('import yaml', { interpreter: 'mine' })).text).toContain('-m pip install pyyaml');
    expect((await agent.execute('import reqeusts', { interpreter: 'mine' })).text).toContain('Did you mean requests?');
  });

  test('takes a folder, variables and startup code of its own', async () => {
    mkdirSync(join(cwd, 'elsewhere'), { recursive: true });
    const answer = await add('configured', {
      python_path: 'env/bin/python',
      cwd: 'elsewhere',
      env: { GREETING: 'hello' },
      startup_script: 'import os\nready = os.environ["GREETING"].upper()\nprint("started")',
    });
    expect(answer.structured).toMatchObject({ has_startup_script: true, cwd: join(cwd, 'elsewhere') });
    const run = (code: string) => agent.execute(code, { interpreter: 'configured' });
    expect((await run('ready, os.getcwd()')).text).toBe(`started\n('HELLO', '${join(cwd, 'elsewhere')}')`);
    expect((await run('ready')).text).toBe("'HELLO'");
    await agent.call('reset', { interpreter: 'configured' });
    expect((await run('ready')).text).toContain("'HELLO'");
  });

  test('is not replaced by another of its name while it runs', async () => {
    const other = await add('mine', { python_path: 'env/bin/python', env: { A: '1' } });
    expect(other.isError).toBe(true);
    expect(other.text).toContain('stop_interpreter');
    expect((await add('builtin', { python_path: 'env/bin/python' })).text).toContain('choose another');
  });

  test('is forgotten when it is stopped unless it was saved', async () => {
    const pid = (await entry(agent, 'configured'))?.pid ?? 0;
    expect(isAlive(pid)).toBe(true);
    expect((await agent.call('stop_interpreter', { name: 'configured' })).text).toContain(
      'its configuration is removed',
    );
    await gone(pid);
    expect(await entry(agent, 'configured')).toBeUndefined();
    expect((await agent.execute('1', { interpreter: 'configured' })).text).toContain(
      'There is no interpreter named configured',
    );
    expect((await agent.call('stop_interpreter', { name: 'configured' })).isError).toBe(true);
  });
});

test('a saved interpreter is there for later servers and starts again when it is used', async () => {
  const folder = home.project();
  makeVenv(join(folder, 'tools-env'));
  const first = await startAgent({ home, cwd: folder });
  const added = await add('saved', { python_path: 'tools-env/bin/python', env: { MARK: 'kept' }, save: true }, first);
  expect(added.structured).toMatchObject({ source: 'saved', state: 'running' });
  await add('transient', { python_path: 'tools-env/bin/python' }, first);
  for (const name of ['saved', 'transient']) await first.call('stop_interpreter', { name });
  await first.close();

  const second = await startAgent({ home, cwd: folder });
  expect(await entry(second, 'saved')).toMatchObject({ source: 'saved', state: 'stopped', pid: null });
  expect(await entry(second, 'transient')).toBeUndefined();
  const answer = await second.execute('import os; os.environ["MARK"]', { interpreter: 'saved' });
  expect(answer.text.split('\n')[0]).toBe("'kept'");
  expect(await entry(second, 'saved')).toMatchObject({ state: 'running' });
  // Another session of the project has it as well, and no transient one of this session.
  await add('transient', { python_path: 'tools-env/bin/python' }, second);
  const third = await startAgent({ home, cwd: folder });
  expect(await entry(third, 'saved')).toMatchObject({ source: 'saved' });
  expect(await entry(third, 'transient')).toBeUndefined();

  await second.call('stop_interpreter', { name: 'saved' });
  expect(await entry(second, 'saved')).toMatchObject({ state: 'stopped' });
  const removed = await second.call('stop_interpreter', { name: 'saved', remove: true });
  expect(removed.text).toContain('configuration is removed');
  expect(await entry(second, 'saved')).toBeUndefined();
  await second.close();
  await third.close();
});

test("an interpreter that runs survives its server's restart with its variables", async () => {
  const folder = home.project();
  makeVenv(join(folder, 'env'));
  const first = await startAgent({ home, cwd: folder });
  await add('mine', { python_path: 'env/bin/python' }, first);
  await first.execute('kept = 1', { interpreter: 'mine' });
  await first.kill();
  const second = await startAgent({ home, cwd: folder });
  expect((await second.execute('kept', { interpreter: 'mine' })).text).toBe('1');
  await second.close();
});

test('the virtual environments of the project are discovered', async () => {
  const folder = home.project();
  makeVenv(join(folder, '.venv'));
  const other = await startAgent({ home, cwd: folder });
  expect(await entry(other, '.venv')).toMatchObject({ source: 'discovered', state: 'stopped' });
  expect((await other.execute('import sys; sys.prefix', { interpreter: '.venv' })).text).toBe(
    `'${join(folder, '.venv')}'`,
  );
  expect(await entry(other, '.venv')).toMatchObject({ source: 'discovered', state: 'running' });
  rmSync(join(folder, '.venv'), { recursive: true });
  await other.call('stop_interpreter', { name: '.venv' });
  expect(await entry(other, '.venv')).toBeUndefined();
  await other.close();
});

test("the SDKs of JetBrains' IDEs are discovered", async () => {
  const user = home.project('user');
  makeVenv(join(user, 'sdk & more'));
  const options = join(user, '.config/JetBrains/PyCharm2026.1/options');
  mkdirSync(options, { recursive: true });
  const jdk = (name: string, type: string, path: string) =>
    `<jdk version="2"><name value="${name}" /><type value="${type}" /><version value="Python 3" /><homePath value="${path}" /></jdk>`;
  writeFileSync(
    join(options, 'jdk.table.xml'),
    `<application><component name="ProjectJdkTable">${jdk('Python &quot;work&quot;', 'Python SDK', '$USER_HOME$/sdk &amp; more/bin/python')}${jdk('21', 'JavaSDK', '/usr')}${jdk('gone', 'Python SDK', '/nowhere/python')}</component></application>`,
  );
  const other = await startAgent({ home, cwd: home.project(), env: { HOME: user } });
  const { interpreters } = (await other.call('list_interpreters')).structured;
  expect(interpreters.filter(({ source }) => source === 'discovered').map(({ name }) => name)).toEqual([
    'Python "work"',
  ]);
  const answer = await other.execute('import sys; sys.prefix', { interpreter: 'Python "work"' });
  expect(answer.text).toBe(`'${join(user, 'sdk & more')}'`);
  await other.close();
});

describe('an interpreter is refused with the reason', () => {
  test('if its Python does not exist', async () => {
    const answer = await add('bad', { python_path: 'nowhere/bin/python' });
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain(`There is no Python at ${join(cwd, 'nowhere/bin/python')}`);
  });

  test.each([
    ['another program', () => '/bin/true'],
    ['a program that fails', () => '/bin/false'],
    ['a folder', () => cwd],
    ['a file that cannot be run', () => join(cwd, 'notes.txt')],
  ])('if it is %s', async (_, path) => {
    writeFileSync(join(cwd, 'notes.txt'), 'hello');
    const answer = await add('bad', { python_path: path() });
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain(path());
    expect(answer.text).toMatch(/does not work as a Python|not a Python/);
    expect(answer.structured).not.toMatchObject({ error: { code: 'internal' } });
  });

  test('if the folder to start in does not exist', async () => {
    expect((await add('bad', { python_path: 'env/bin/python', cwd: 'nowhere' })).text).toContain(
      'nowhere does not exist',
    );
  });

  const old =
    ['/root/.pyenv/versions/3.7.16/bin/python', '/root/.pyenv/versions/3.8.18/bin/python'].find(existsSync) ?? '';
  test.runIf(old)('if its Python is too old', async () => {
    const answer = await add('bad', { python_path: old });
    expect(answer.isError).toBe(true);
    expect(answer.text).toMatch(/is Python 3\.[78]\.\d+; Cuvette needs Python 3\.9 or later/);
  });

  test('and is not listed afterwards', async () => {
    expect(await entry(agent, 'bad')).toBeUndefined();
  });

  test('if it was saved and its Python has been deleted since', async () => {
    makeVenv(join(cwd, 'short-lived'));
    await add('short', { python_path: 'short-lived/bin/python', save: true });
    await agent.call('stop_interpreter', { name: 'short' });
    rmSync(join(cwd, 'short-lived'), { recursive: true });
    const answer = await agent.execute('1', { interpreter: 'short' });
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain('There is no Python at');
    expect((await agent.execute('1')).text).toBe('1');
    await agent.call('stop_interpreter', { name: 'short', remove: true });
  });
});

test('the builtin interpreter can be stopped, even in the middle of a call, and comes back', async () => {
  await agent.execute('old = 1');
  expect((await agent.call('stop_interpreter', { name: 'builtin' })).text).toContain(
    'starts afresh on the next execute',
  );
  expect(await entry(agent, 'builtin')).toMatchObject({ state: 'stopped' });
  expect((await agent.execute('"old" in dir()')).text).toMatch(/^False/);
  const { execution } = (await agent.execute('print("runs")\nwhile True: pass', { background: true })).structured;
  const read = async () => (await agent.call('get_output', { execution })).structured;
  await waitFor('it runs', async () => (await read()).output_length > 0);
  await agent.call('stop_interpreter', { name: 'builtin' });
  const ended = await waitFor('it ends', async () => {
    const structured = await read();
    return structured.state === 'done' && structured;
  });
  expect(ended.outcome).toMatch(/^(cancelled|died)$/);
  expect(ended.variables_survived).toBe(false);
  expect((await agent.execute('2')).text.split('\n')[0]).toBe('2');
});

const versions = '/root/.pyenv/versions';
const pythons = (existsSync(versions) ? readdirSync(versions) : []).filter((name) => /^3\.(9|1\d)\./.test(name));
test.runIf(pythons.length > 0).each(pythons)('Python %s works without any package', async (version) => {
  const interpreter = `python-${version}`;
  const python = realpathSync(join(versions, version, 'bin', 'python'));
  await add(interpreter, { python_path: python });
  const run = async (code: string) => (await agent.execute(code, { interpreter })).text;
  expect(await run('import sys\nx = 6 * 7\nx')).toBe('42');
  expect(await run('sys.version.split()[0]')).toBe(`'${version}'`);
  expect(await run('def f():\n    1/0\nf()')).toMatch(
    /Traceback[\s\S]*in f[\s\S]*ZeroDivisionError: division by zero$/,
  );
  expect(await run('import asyncio\nawait asyncio.sleep(0, "awaited")')).toBe("'awaited'");
  expect((await agent.execute('import time\ntime.sleep(600)', { interpreter, timeout: 0.2 })).structured).toMatchObject(
    {
      outcome: 'timeout',
      variables_survived: true,
    },
  );
  expect((await agent.call('list_vars', { interpreter })).text).toBe('asyncio, f, sys, time, x');
  await agent.call('stop_interpreter', { name: interpreter });
});
