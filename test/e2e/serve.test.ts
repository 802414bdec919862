/** Runs `cuvette serve` as a service for the shells of one person, in the foreground and in the background. */

import { existsSync, readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { gone, isAlive, kill, parentOf, runOutside, startCli, useHome, waitFor } from './harness.ts';

const home = useHome();
const WHO = 'import os; print(os.getpid())';

test.each(['SIGINT', 'SIGTERM'] as const)(
  'a service in the foreground says how to use it and ends with its sessions on %s',
  async (signal) => {
    const cwd = home.project();
    const service = startCli(['serve'], { home, cwd });
    await waitFor('it is ready', () => service.stdout().includes('Ctrl-C stops it.'));
    expect(service.stdout()).toMatch(/ · sandbox: on \(bubblewrap .*\) · /);
    expect(service.stdout()).toMatch(/· Python 3\.\d+ \(IPython, numpy, pandas, matplotlib\) · bash ·/);
    expect(service.stdout()).toMatch(/claude mcp add cuvette -- .* mcp/);
    const { stdout } = await runOutside(['run', '-c', WHO], { home, cwd });
    expect(service.child.exitCode, 'it goes on').toBeNull();
    const worker = Number(stdout);
    expect(isAlive(worker)).toBe(true);
    const keeper = parentOf(worker);
    service.child.kill(signal);
    const { code, stderr } = await service.done;
    expect([code, stderr]).toEqual([0, '']);
    await gone(worker);
    await gone(keeper);
    expect(existsSync(join(home.runtime, 'servers', `${service.child.pid}.json`))).toBe(false);
  },
);

test('a service in the background ends when nobody has used it for a while, but not while code runs', async () => {
  const cwd = home.project();
  const service = startCli(['serve', '--idle', '1'], { home, cwd });
  const record = join(home.runtime, 'servers', `${service.child.pid}.json`);
  await waitFor('it is ready', () => existsSync(record));
  // Somebody is there until the code runs, however long a shell takes to come.
  const { socket } = JSON.parse(readFileSync(record, 'utf8')) as { socket: string };
  const somebody = connect(socket);
  const begun = join(cwd, 'begun');
  const code = `import time\nopen(${JSON.stringify(begun)}, "w").close()\nfor i in range(30): time.sleep(0.1)\nprint("not cut off")`;
  const run = runOutside(['run', '-c', code], { home, cwd });
  await waitFor('the code runs', () => existsSync(begun));
  somebody.destroy();
  expect((await run).stdout).toBe('not cut off\n');
  expect((await service.done).code).toBe(0);
  expect(existsSync(record)).toBe(false);
});

test('a service that was killed is replaced by the next shell, with the session it had', async () => {
  const cwd = home.project();
  const options = { home, cwd };
  await runOutside(['run', '-c', 'kept = 1'], options);
  const info = await runOutside(['call', '--json', 'get_session_info'], options);
  const { server_pid: pid } = JSON.parse(info.stdout) as { server_pid: number };
  kill(pid);
  await gone(pid);
  expect(await runOutside(['run', '-c', 'kept'], options)).toEqual({ code: 0, stdout: '1\n', stderr: '' });
});
