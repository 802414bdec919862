/**
 * Checks what leaves the machine: nothing once the environment is made, and only requests to the package index until then. The real programs run in a
 * network namespace in which every name and every address that they try to reach is seen.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { symlinkSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { findProgram } from '../../src/search-path.ts';
import { gone, HANGS_AFTER, kill, MAIN, type RunningCli, startCli, useHome, waitFor } from './harness.ts';

const WATCHER = fileURLToPath(new URL('watch-network.py', import.meta.url));
const LONG = 120_000;
const INDEX = 'index.example.org';
/** What would send programs elsewhere than they would go by themselves. */
const NO_PROXIES = Object.fromEntries(
  ['http_proxy', 'https_proxy', 'all_proxy', 'HTTP_PROXY', 'HTTPS_PROXY', 'ALL_PROXY'].map((name) => [name, undefined]),
);
const LANGUAGES = [
  ['py', 'import pandas, matplotlib.pyplot as plt\nplt.plot([1])\nprint("hello")'],
  ['bash', 'echo hello'],
  ['js', 'console.log("hello")'],
  ['ts', 'const word: string = "hello"; console.log(word)'],
  ['go', 'package main\nimport "fmt"\nfunc main() { fmt.Println("hello") }'],
  ['cpp', '#include <iostream>\nint main() { std::cout << "hello\\n"; }'],
] as const;
const INTERPRETERS = { py: 'builtin', bash: 'bash', js: 'node', ts: 'typescript', go: 'go', cpp: 'cpp' };

/** uv, where it is on PATH, is preferred. */
const INSTALLERS = findProgram('uv') ? ['uv'] : ['pip', 'uv'];
const isRoot = process.getuid?.() === 0;
const NEW = isRoot ? ['--net'] : ['--user', '--map-root-user', '--net'];
const problem = spawnSync('unshare', [...NEW, 'ip', 'link', 'set', 'lo', 'up'], { encoding: 'utf8' });
const canWatch = problem.status === 0;
if (!canWatch)
  process.stderr.write(
    `SKIPPED: what leaves the machine cannot be watched here: unshare ${NEW.join(' ')} ip link set lo up failed. ${problem.stderr ?? problem.error}\n`,
  );

interface Watch {
  /** Before a command that is to run there. */
  readonly inside: string[];
  /** What was tried to be reached since it was last asked. */
  seen(): string[];
}

async function startWatch(children: ChildProcess[]): Promise<Watch> {
  const child = spawn('unshare', [...NEW, 'python3', WATCHER], { stdio: ['ignore', 'pipe', 'inherit'] });
  children.push(child);
  let lines = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    lines += text;
  });
  await waitFor('it watches', () => lines.startsWith('ready\n'));
  lines = '';
  const place = `/proc/${child.pid}/ns`;
  const user = isRoot ? [] : [`--user=${place}/user`, '--preserve-credentials'];
  return {
    inside: ['nsenter', ...user, `--net=${place}/net`, '--'],
    seen() {
      const all = lines.split('\n').filter(Boolean);
      lines = '';
      return [...new Set(all)];
    },
  };
}

describe.skipIf(!canWatch)('what leaves the machine', { timeout: 2 * LONG }, () => {
  const home = useHome();
  const cwd = home.project();
  const children: ChildProcess[] = [];
  let watch: Watch;

  beforeAll(async () => {
    watch = await startWatch(children);
  });
  afterAll(() => {
    for (const { pid } of children) if (pid) kill(pid);
  });

  const cuvette = (args: string[], env: Record<string, string | undefined> = {}): RunningCli =>
    startCli(args, {
      home,
      cwd,
      env: { ...NO_PROXIES, ...env },
      command: [...watch.inside, process.execPath, MAIN],
      timeout: LONG,
    });

  test('is seen by this test when something does', async () => {
    for (const url of ['http://tracker.example.org/', 'http://192.0.2.7:81/'])
      spawnSync(watch.inside[0] ?? '', [...watch.inside.slice(1), 'curl', '-s', '-m', '5', url]);
    const seen = new Set<string>();
    await waitFor('both are seen', () => {
      for (const line of watch.seen()) seen.add(line);
      return seen.has('packet tcp 192.0.2.7 81') && seen.has('name tracker.example.org');
    });
    expect([...seen].sort()).toEqual(['name tracker.example.org', 'packet tcp 192.0.2.7 81']);
  });

  test('is nothing from the start of a service to its end, with calls in each language', async () => {
    const service = cuvette(['serve', '--port', '0']);
    onTestFinished(() => void service.child.kill('SIGINT'));
    await waitFor('it is ready', () => service.stdout().includes('Ctrl-C stops it.'));
    const [, url = ''] = / · (http:\/\/127\.0\.0\.1:\d+) · /.exec(service.stdout()) ?? [];
    for (const [lang, code] of LANGUAGES) {
      const body = JSON.stringify({ lang, code, entity_id: 'network' });
      const [program = '', ...before] = watch.inside;
      const { stdout } = spawnSync(
        program,
        [...before, 'curl', '-s', `${url}/exec`, '-H', 'content-type: application/json', '-d', body],
        { encoding: 'utf8' },
      );
      expect(JSON.parse(stdout), stdout).toMatchObject({ stdout: 'hello\n' });
    }
    service.child.kill('SIGINT');
    expect((await service.done).code).toBe(0);
    expect(watch.seen()).toEqual([]);
  });

  test('is nothing while an agent works with cuvette mcp, the lab included', async () => {
    const [command = '', ...before] = watch.inside;
    const transport = new StdioClientTransport({
      command,
      args: [...before, process.execPath, MAIN, 'mcp'],
      env: home.env(NO_PROXIES),
      cwd,
    });
    const client = new Client({ name: 'network', version: '1' });
    await client.connect(transport);
    const call = async (name: string, args: Record<string, unknown>) =>
      JSON.stringify((await client.callTool({ name, arguments: args }, { timeout: LONG })).content);
    for (const [lang, code] of LANGUAGES)
      expect(await call('execute', { code, interpreter: INTERPRETERS[lang] }), lang).toContain('hello');
    expect(await call('colab_status', {})).toContain('demo');
    expect(await call('capture_acts', { prompts: ['The lamp', 'The lamps'], layers: [1] })).toContain('cap_');
    const { pid } = transport;
    await client.close();
    await gone(pid ?? 0);
    expect(watch.seen()).toEqual([]);
  });

  test.each([
    ['the lab demo', ['lab', 'demo', '--out', 'report.html'], 'Written in'],
    ['cuvette doctor', ['doctor'], 'sandbox'],
    ['a shell with a server in the background', ['run', '--start', '-c', 'print("from", "a shell")'], 'from a shell'],
  ])('is nothing during a run of %s', async (_, args, says) => {
    const { stdout, stderr } = await cuvette(args).done;
    expect(stdout, stderr).toContain(says);
    expect(watch.seen()).toEqual([]);
  });

  test.each(INSTALLERS)(
    'is only requests to the package index when %s makes the first environment',
    async (installer) => {
      const cache = home.project(installer);
      const bin = home.project(join(installer, 'bin'));
      if (installer === 'uv') symlinkSync(join(inject('tools'), 'bin', 'uv'), join(bin, 'uv'));
      const service = cuvette(['serve', '--port', '0'], {
        XDG_CACHE_HOME: cache,
        PATH: [bin, process.env.PATH].join(delimiter),
        PIP_CONFIG_FILE: '/dev/null',
        PIP_INDEX_URL: `https://${INDEX}/simple`,
        PIP_FIND_LINKS: undefined,
        PIP_RETRIES: '0',
        UV_DEFAULT_INDEX: `https://${INDEX}/simple`,
        UV_NO_CONFIG: '1',
        UV_HTTP_RETRIES: '0',
      });
      onTestFinished(() => void service.child.kill('SIGINT'));
      await expect.poll(() => service.stdout(), { timeout: HANGS_AFTER }).toMatch(/could not be (made|installed)/);
      service.child.kill('SIGINT');
      await service.done;
      expect(watch.seen()).toEqual([`name ${INDEX}`]);
    },
  );
});
