/** Shells share the session of the agent that started them, and of no other. */

import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { startFakeAgent } from './fake-agent.ts';
import { gone, isAlive, MAIN, runCli, runOutside, startAgent, useHome, waitFor } from './harness.ts';

const home = useHome({ preload: 'none' });
const RUN = `${process.execPath} ${MAIN} run`;

describe('between agents and shells,', () => {
  test('variables of a session go both ways', async () => {
    const agent = await startFakeAgent(home, home.project());
    await agent.tool('execute', { code: 'x = 41' });
    expect(await agent.shell(`${RUN} -c 'x += 1; x'`)).toEqual({ code: 0, stdout: '42\n', stderr: '' });
    await agent.shell(`${RUN} <<'PY'\nfrom_shell = "multi-line\\n" * 2\nPY`);
    expect((await agent.tool('execute', { code: 'x, from_shell' })).content[0]?.text).toBe(
      "(42, 'multi-line\\nmulti-line\\n')",
    );
    await agent.close();
  });

  test('a shell of one of three agents in three folders gets the session of its own agent, wherever it stands', async () => {
    const folders = [home.project('one'), home.project('two'), home.project('three')];
    const agents = await Promise.all(folders.map((folder) => startFakeAgent(home, folder)));
    await Promise.all(agents.map((agent, index) => agent.tool('execute', { code: `who = ${index}` })));
    const answers = await Promise.all(
      agents.flatMap((agent) => [agent.shell(`${RUN} -c who`), agent.shell(`${RUN} -c who`, folders[0])]),
    );
    expect(answers.map(({ stdout }) => stdout.trim())).toEqual(['0', '0', '1', '1', '2', '2']);
    await Promise.all(agents.map((agent) => agent.close()));
  });

  test('a shell of one of three agents in the same folder gets the session of its own agent', async () => {
    const folder = home.project();
    const agents = await Promise.all([1, 2, 3].map(() => startFakeAgent(home, folder)));
    await Promise.all(agents.map((agent, index) => agent.tool('execute', { code: `who = ${index}` })));
    const answers = await Promise.all(
      agents.flatMap((agent) => [
        agent.shell(`${RUN} -c who`),
        agent.shell(`bash -c "true; bash -c 'true; ${RUN} -c who'"`, '/'),
      ]),
    );
    expect(answers.map(({ stdout }) => stdout.trim())).toEqual(['0', '0', '1', '1', '2', '2']);
    const outside = await runOutside(['run', '-c', 'who'], { home, cwd: folder });
    expect(outside.code).toBe(2);
    expect(outside.stderr).toContain('Several servers fit');
    for (const agent of agents) expect(outside.stderr).toContain(`--server ${agent.server}`);
    const chosen = ['run', '--server', String(agents[1]?.server), '-c', 'who'];
    expect((await runOutside(chosen, { home, cwd: folder })).stdout).toBe('1\n');
    await Promise.all(agents.map((agent) => agent.close()));
  });

  test('a shell that no agent started gets the session of the folder it stands in', async () => {
    const folder = home.project();
    const inner = join(folder, 'src', 'deep');
    mkdirSync(inner, { recursive: true });
    const agent = await startFakeAgent(home, folder);
    await agent.tool('execute', { code: 'who = "the project\'s"' });
    for (const cwd of [folder, inner])
      expect((await runOutside(['run', '-c', 'who'], { home, cwd })).stdout).toBe('"the project\'s"\n');
    await agent.close();
  });

  test('the interpreters of an agent that is gone end by themselves', async () => {
    const agent = await startFakeAgent(home, home.project());
    const worker = Number((await agent.tool('execute', { code: 'import os; os.getpid()' })).content[0]?.text);
    expect(isAlive(worker)).toBe(true);
    await agent.close();
    await gone(worker);
  });
});

describe('code of a session', () => {
  test('is refused to run in that same session, which would wait for itself', async () => {
    const agent = await startAgent({ home, cwd: home.project() });
    const answer = await agent.execute(`!${RUN} -c 1`, { timeout: 200 });
    expect(answer.structured.outcome).toBe('ok');
    expect(answer.text).toContain('would wait for itself');
    await agent.close();
  });
});

describe('after a server is gone,', () => {
  test('its record is ignored and removed, with its socket', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    await agent.execute('here = 1');
    const socket = join(home.runtime, 'b', 'stale.sock');
    const record = join(home.runtime, 'servers', '999999.json');
    writeFileSync(socket, '');
    const stale = { pid: 999_999, started: '1', version: '0', kind: 'agent', lineage: [], project: cwd, socket };
    writeFileSync(record, JSON.stringify(stale));
    const broken = join(home.runtime, 'servers', '999998.json');
    writeFileSync(broken, '{"pid": 99');
    expect(await runCli(['run', '-c', 'here'], { home, cwd })).toEqual({ code: 0, stdout: '1\n', stderr: '' });
    expect([record, socket, broken].filter((path) => existsSync(path))).toEqual([]);
    await agent.close();
  });

  test('its record is not trusted when another process has its process id', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    await agent.execute('here = 2');
    const reused = {
      pid: process.pid,
      started: '1',
      version: '0',
      kind: 'agent',
      lineage: [],
      project: cwd,
      socket: '/nowhere',
    };
    writeFileSync(join(home.runtime, 'servers', `${process.pid}.json`), JSON.stringify(reused));
    expect((await runCli(['run', '-c', 'here'], { home, cwd })).stdout).toBe('2\n');
    await agent.close();
  });

  test('its record does not mislead the next shell if the server was killed', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    await agent.execute('here = 3');
    const record = join(home.runtime, 'servers', `${agent.pid}.json`);
    await waitFor('its record', () => existsSync(record));
    await agent.kill();
    const result = await runCli(['run', '-c', '1'], { home, cwd, env: { CLAUDECODE: '1' } });
    expect(result.code).toBe(69);
    expect(existsSync(record)).toBe(false);
  });
});
