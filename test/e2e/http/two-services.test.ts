/** Runs two services of one user at the same time, with settings by which their sessions see or reach different things. */

import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { kill } from '../harness.ts';
import { anotherService, type Service, useService } from './service.ts';

const service = await useService({ preload: 'none' });
const { home } = service;

/** A session that writes from Python and from a program, and what stands then in its workspace below a folder. */
async function filesOf(by: Service, folder: string): Promise<Record<string, string>> {
  const python = await by.python('open("by-python", "w").write("p"); print("done")');
  expect([python.stdout, python.stderr]).toEqual(['done\n', '']);
  const { session_id } = python;
  const shell = await by.bash('cat by-python; echo -n b > by-bash', { session_id });
  expect([shell.stdout, shell.stderr]).toEqual(['p', '']);
  const workspace = join(folder, session_id, 'workspace');
  return Object.fromEntries(readdirSync(workspace).map((name) => [name, readFileSync(join(workspace, name), 'utf8')]));
}

const BOTH = { 'by-python': 'p', 'by-bash': 'b' };

test('each of two services has its workspaces where its own UPLOADS_DIR says', async () => {
  const folder = join(home.root, 'notebooks');
  const other = await anotherService({ home, env: { UPLOADS_DIR: folder } });
  expect(await filesOf(other, folder)).toEqual(BOTH);
  expect(await filesOf(service, join(home.data, 'sessions'))).toEqual(BOTH);
  expect(await filesOf(other, folder)).toEqual(BOTH);
});

test('a service works with a folder that was removed and made anew since the one before', async () => {
  const folder = join(home.root, 'made-anew');
  const first = await anotherService({ home, env: { UPLOADS_DIR: folder } });
  expect(await filesOf(first, folder)).toEqual(BOTH);
  kill(first.pid, 'SIGKILL');
  rmSync(folder, { recursive: true });
  mkdirSync(folder, { mode: 0o700 });
  const second = await anotherService({ home, env: { UPLOADS_DIR: folder } });
  expect(await filesOf(second, folder)).toEqual(BOTH);
});

test('each of two services lets code reach the hosts of its own list and no host of the other', async () => {
  const server = createServer((_, response) => response.end('reached'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const code = `import http.client
proxy = http.client.HTTPConnection("127.0.0.1", 3128)
proxy.request("GET", "http://${address}/")
answer = proxy.getresponse()
print(answer.status, answer.read().decode()[:7])`;
  const narrow = await anotherService({ home, args: ['--network', 'example.org'] });
  const wide = await anotherService({ home, args: ['--network', `example.org,${address}`] });
  for (const [by, answer] of [
    [wide, /^200 reached\n$/],
    [narrow, /^403 /],
    [wide, /^200 reached\n$/],
  ] as const) {
    const { stdout, stderr } = await by.python(code);
    expect(stdout, stderr).toMatch(answer);
  }
});
