/** Checks whether a service confines code, what it says of that, and that it does not start with less than it was told to. */

import { describe, expect, test } from 'vitest';
import { BARE_TOOLS, environmentWith } from '../harness.ts';
import { connectMcp } from './mcp-client.ts';
import { anotherService, ok, refusalOf, type Service, useService } from './service.ts';

const service = await useService();
const INSTALL = /Install bubblewrap: (sudo )?\S+ (install|add|-S) bubblewrap/;
const withoutBubblewrap = environmentWith(service.home, BARE_TOOLS);

/** What a service says of it: in its first line, in /health, and to agents. */
async function told(by: Service): Promise<string[]> {
  const [, line = ''] = /^.* · sandbox: (.*) · Python 3\.\d+ /.exec(by.stdout()) ?? [];
  const { sandbox: health } = ok(await by.get('/health')).json<{ sandbox: string }>();
  const { structured } = await (await connectMcp(by)).call('get_session_info');
  const { sandbox: info } = structured as { sandbox: string };
  return [line, health, info];
}

/** Whether code shares the processes of this machine. */
async function seesServer(by: Service): Promise<boolean> {
  const look = `import os; print(any("main.js" in open("/proc/%s/cmdline" % pid).read() for pid in os.listdir("/proc") if pid == "${by.pid}"))`;
  return (await by.python(look)).stdout === 'True\n';
}

test('a service confines code by default where the machine can, and says with what', async () => {
  const [line, ...others] = await told(service);
  expect(line).toMatch(/^on \(bubblewrap \d[\d.]*, (cgroup v[12] \(.*\)|no cgroup), .*seccomp.*, no network\)$/);
  expect(others).toEqual([line, line]);
  expect(await seesServer(service)).toBe(false);
});

test('a service that is told not to confine code does not, and says so', async () => {
  const off = await anotherService({ home: service.home, args: ['--sandbox', 'off'] });
  const [line, ...others] = await told(off);
  expect(line).toMatch(/^none \(code runs as you: --sandbox off\)/);
  expect(others).toEqual([line, line]);
  expect(await seesServer(off)).toBe(true);
  await off.python('x = 1; open("/mnt/data/f", "w").write("kept"); None', { entity_id: 'unconfined' });
  expect((await off.bash('pwd; cat f', { entity_id: 'unconfined' })).stdout).toBe('/mnt/data\nkept');
  expect((await off.python('print(x)', { entity_id: 'unconfined' })).stdout).toBe('1\n');
});

describe('a service without bubblewrap', () => {
  test('starts for this machine alone and says what is missing and how to install it', async () => {
    const open = await anotherService({ home: service.home, env: withoutBubblewrap });
    const [line, ...others] = await told(open);
    expect(line).toMatch(/^none \(code runs as you, unconfined: bubblewrap is not installed\. /);
    expect(line).toMatch(INSTALL);
    expect(others).toEqual([line, line]);
  });

  test('does not start if it is told to confine code', async () => {
    const { code, stdout, stderr } = await refusalOf(service.home, ['--sandbox', 'on'], withoutBubblewrap);
    expect([code, stdout]).toEqual([69, '']);
    expect(stderr).toMatch(/^cuvette: Code cannot be confined on this machine: bubblewrap is not installed\. /);
    expect(stderr).toMatch(INSTALL);
    expect(stderr).toContain('--sandbox off');
  });

  test.each(['192.0.2.1', '0.0.0.0'])('does not open itself to others on %s, even with a key', async (host) => {
    const env = { ...withoutBubblewrap, CUVETTE_API_KEY: 'a-key-0123456789' };
    const { code, stdout, stderr } = await refusalOf(service.home, ['--host', host], env);
    expect([code, stdout]).toEqual([69, '']);
    expect(stderr).toMatch(/bubblewrap is not installed.*not opened to others than this machine/);
    expect(stderr).toMatch(INSTALL);
    expect(stderr).toContain('--sandbox off');
  });
});
