import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as written } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { connectDriver } from '../../../src/interpreters/python/driver.ts';
import { findPython } from '../../../src/interpreters/python/probe.ts';
import { createZygotes, type Zygotes } from '../../../src/interpreters/python/zygotes.ts';
import { allGone, kill, processesOf } from '../../e2e/harness.ts';

let runtime: string;
let zygotes: Zygotes;

beforeEach(() => {
  runtime = mkdtempSync(join(tmpdir(), 'cuvette-'));
  zygotes = createZygotes(runtime);
});

afterEach(async () => {
  await zygotes.dismiss(true);
  await allGone(runtime);
  rmSync(runtime, { recursive: true, force: true });
});

describe('a zygote', () => {
  test('that ends in the middle of a request is replaced, and the session starts', async () => {
    const spec = { python: (await findPython(undefined)).executable, preload: [] };
    await zygotes.prepare(spec);
    const first = processesOf(runtime).map(({ pid }) => pid);
    expect(first).not.toEqual([]);
    // It hears the request, and cannot answer any more.
    for (const pid of first) kill(pid, 'SIGSTOP');
    const socket = join(runtime, 'k', 'one', 'sock');
    const starting = zygotes.spawn(spec, { socket, cwd: runtime, env: {}, linger: 1, startup: null });
    await written();
    for (const pid of first) kill(pid);
    await starting;
    const session = await connectDriver(socket);
    expect(session).toBeDefined();
    await session?.stop();
    expect(processesOf(runtime).filter(({ pid }) => first.includes(pid))).toEqual([]);
  });

  test('that cannot start says why, and is not tried again and again', async () => {
    const spec = { python: '/bin/false', preload: [] };
    const socket = join(runtime, 'k', 'one', 'sock');
    const request = { socket, cwd: runtime, env: {}, linger: 1, startup: null };
    await expect(zygotes.spawn(spec, request)).rejects.toThrow(
      'could not be started as an interpreter: it ended with code 1',
    );
    expect(existsSync(socket)).toBe(false);
  });
});
