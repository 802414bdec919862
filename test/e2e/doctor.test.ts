/** Runs `cuvette doctor` and the small commands. */

import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, inject, test } from 'vitest';
import { linkTree } from '../link-tree.ts';
import { environmentWith, ROOT, runCli, startAgent, useHome } from './harness.ts';

const home = useHome();
const cwd = home.project();
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { version: string };
const doctor = (env: Record<string, string | undefined> = {}, ...args: string[]) =>
  runCli(['doctor', ...args], { home, cwd, env });

/** The line on one subject. */
const line = (text: string, name: string) => text.split('\n').find((one) => one.slice(2).startsWith(name)) ?? '';

describe('cuvette doctor', () => {
  test('says what works and exits with 0', async () => {
    const { code, stdout, stderr } = await doctor();
    expect([code, stderr]).toEqual([0, '']);
    expect(line(stdout, 'program')).toContain(`✓ program         Cuvette ${version} on Node ${process.versions.node}`);
    expect(line(stdout, 'Python')).toMatch(/^✓ Python {10}3\.\d+\.\d+ at \//);
    expect(line(stdout, 'environment')).toMatch(/^✓ .*IPython, numpy, pandas and matplotlib in \//);
    expect(line(stdout, 'environment')).toContain(inject('cacheHome'));
    expect(line(stdout, 'runtime folder')).toBe(`✓ runtime folder  ${home.runtime}`);
    expect(line(stdout, 'data folder')).toBe(`✓ data folder     ${home.data}`);
    expect(line(stdout, 'sandbox')).toMatch(
      /^✓ sandbox {9}on \(bubblewrap \d.*\); kernel \d.*, user namespaces: \d+\. .*cuvette mcp runs code as you/,
    );
    expect(line(stdout, 'servers')).toMatch(/^– .*none running/);
    expect(stdout).not.toContain('✗');
  });

  test('runs a call in each language, confined as a service with the same settings would be', async () => {
    const { code, stdout } = await doctor();
    expect(code, stdout).toBe(0);
    for (const language of ['Python', 'bash', 'JavaScript', 'TypeScript', 'Go', 'C++'])
      expect(line(stdout, `run ${language} `)).toMatch(
        /^(✓ .* a call was answered in \d+ ms|– .* is not installed\. .*)$/,
      );
    expect(line(stdout, 'run Python')).toMatch(/^✓/);
    expect(readdirSync(join(home.data, 'sessions'))).toEqual([]);
  });

  test('reports a language in which no call of a service would work, with the reason', async () => {
    // It says its version, and that is all that it does.
    const folder = home.project('tools');
    const broken = join(folder, 'bash');
    writeFileSync(
      broken,
      '#!/bin/sh\n[ "$1" = --version ] && exec /bin/bash --version\necho "broken on purpose" >&2; exit 3\n',
      {
        mode: 0o755,
      },
    );
    const { code, stdout } = await doctor({ PATH: `${folder}:${process.env.PATH}` });
    expect(code).toBe(1);
    expect(line(stdout, 'run bash')).toMatch(/^✗ .*a call failed: .*broken on purpose/);
    expect(line(stdout, 'run Python')).toMatch(/^✓/);
  });

  test('reports a folder that a service is told to use and cannot', async () => {
    const file = join(home.root, 'a-file');
    writeFileSync(file, '');
    const { code, stdout } = await doctor({ NOTEBOOKS_DIR: join(file, 'below') });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^✗ .*ENOTDIR.*a-file/m);
  });

  test('names the servers and the one that this shell would use', async () => {
    const agent = await startAgent({ home, cwd });
    await agent.execute('1');
    const { code, stdout } = await doctor();
    expect(code).toBe(0);
    expect(line(stdout, 'servers')).toBe(
      `✓ servers         ${agent.pid} (agent) in ${cwd}, which is the one that cuvette run uses here`,
    );
    await agent.close();
  });

  test('prints its findings as JSON', async () => {
    const { stdout } = await doctor({}, '--json');
    const findings = JSON.parse(stdout) as { name: string; state: string; detail: string }[];
    expect(findings.find(({ name }) => name === 'Python')).toMatchObject({ state: 'works' });
    expect(findings.every(({ detail }) => detail.length > 0)).toBe(true);
  });

  test('does not count a missing sandbox as a fault and says what to do', async () => {
    const { code, stdout } = await doctor(environmentWith(home, ['node']));
    expect(code).toBe(0);
    expect(line(stdout, 'sandbox')).toMatch(
      /^– .*none: bubblewrap is not installed.*cuvette serve runs code as you.*Install bubblewrap: .*\S bubblewrap$/,
    );
  });

  test('does not count an environment that is not made yet as a fault and does not make it', async () => {
    const cache = home.project('empty-cache');
    // But for what Go has compiled: that takes a minute, and is another matter.
    mkdirSync(join(cache, 'cuvette'), { mode: 0o700 });
    linkTree(join(inject('cacheHome'), 'cuvette', 'programs'), join(cache, 'cuvette', 'programs'));
    const { code, stdout } = await doctor({ XDG_CACHE_HOME: cache });
    expect(code).toBe(0);
    expect(line(stdout, 'environment')).toMatch(/^– .*not made yet/);
    expect(readdirSync(join(cache, 'cuvette', 'python'))).toEqual([]);
  });

  test.each([
    ['runtime folder', 'XDG_RUNTIME_DIR'],
    ['data folder', 'XDG_DATA_HOME'],
    ['cache folder', 'XDG_CACHE_HOME'],
  ])('reports a %s that cannot be used and exits with 1', async (name, variable) => {
    const file = join(home.root, 'a-file');
    writeFileSync(file, '');
    const { code, stdout, stderr } = await doctor({ [variable]: file });
    expect([code, stderr]).toEqual([1, '']);
    expect(line(stdout, name)).toMatch(/^✗ .*cannot be written.*CUVETTE_HOME/);
  });

  test('reports a missing Python and exits with 1', async () => {
    const { code, stdout } = await doctor({ PATH: home.project('empty-path') });
    expect(code).toBe(1);
    expect(line(stdout, 'Python')).toMatch(/^✗ .*No Python 3\.9 or later was found.*apt install python3/);
  });
});

describe('cuvette', () => {
  test('help lists every command and setting', async () => {
    const { code, stdout, stderr } = await runCli(['help'], { home, cwd });
    expect([code, stderr]).toEqual([0, '']);
    for (const word of ['mcp', 'run', 'serve', 'call', 'doctor', '--timeout', '--python', 'CUVETTE_HOME', '--start'])
      expect(stdout).toContain(word);
    for (const args of [['--help'], ['-h'], []]) expect((await runCli(args, { home, cwd })).stdout).toBe(stdout);
  });

  test('--version and -v print the version', async () => {
    for (const flag of ['--version', '-v'])
      expect(await runCli([flag], { home, cwd })).toEqual({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  test('exits with 2 on an unknown command, an unknown flag or a setting that makes no sense', async () => {
    const unknown = await runCli(['dance'], { home, cwd });
    expect([unknown.code, unknown.stdout]).toEqual([2, '']);
    expect(unknown.stderr).toBe('cuvette: There is no command dance. Run: cuvette help\n');
    const flag = await runCli(['mcp', '--dance'], { home, cwd });
    expect([flag.code, flag.stderr]).toEqual([2, expect.stringContaining('--dance')]);
    const setting = await runCli(['mcp', '--timeout', 'soon'], { home, cwd });
    expect([setting.code, setting.stderr]).toEqual([2, expect.stringContaining('--timeout, CUVETTE_TIMEOUT')]);
    const variable = await runCli(['mcp'], { home, cwd, env: { CUVETTE_MAX_OUTPUT: 'much' } });
    expect([variable.code, variable.stderr]).toEqual([2, expect.stringContaining('CUVETTE_MAX_OUTPUT')]);
    const project = await runCli(['mcp', '--project', '/nowhere'], { home, cwd });
    expect([project.code, project.stderr]).toEqual([2, expect.stringContaining('/nowhere does not exist')]);
    for (const name of ['toString', '__proto__', 'constructor'])
      expect((await runCli([name], { home, cwd })).code).toBe(2);
  });
});
