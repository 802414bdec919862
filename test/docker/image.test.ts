/** Builds the Docker image by its own Dockerfile without Docker, and runs it as compose.yaml would: as an ordinary user, without capabilities, here without any network. */

import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packageFile } from '../../src/package-root.ts';
import { waitFor } from '../e2e/harness.ts';
import { buildImage, homeOf, type Image, prepareLayers } from './build-image.ts';
import { endOf, execInside, firstInside, startInside } from './container.ts';

const KEY = 'image-key-2f9d64';
const folder = mkdtempSync(join(tmpdir(), 'cuvette-image-'));
let image: Image;
let container: ChildProcess;
let ended: ReturnType<typeof endOf>;
let pid: number;

beforeAll(async () => {
  const env = { PORT: String(await freePort()) };
  const say = (line: string) => console.log(line);
  await prepareLayers(packageFile(), say);
  image = await buildImage({ context: packageFile(), folder, env, say });
  const settings = { ...image.env, ...composeEnvironment(), HOME: homeOf(image.root, image.uid) };
  image = { ...image, env: settings };
  container = startInside({ ...image, isConfined: true });
  ended = endOf(container);
  pid = await waitFor('the container starts', () => firstInside(container));
});

afterAll(() => {
  container?.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
  const mounts = readFileSync('/proc/self/mountinfo', 'utf8');
  expect(mounts).not.toContain(folder);
});

test('the Docker image becomes healthy by its own health check', async () => {
  await waitFor('it is healthy', async () => {
    if (container.exitCode !== null) throw new Error(`It ended: ${JSON.stringify(await ended)}`);
    return (await inside(image.health)).code === 0;
  });
});

test('the Docker image runs as an ordinary user with the sandbox on', async () => {
  expect((await inside(['id', '-u'])).stdout).toBe('1000\n');
  const { sandbox } = JSON.parse((await ask('/health')).stdout);
  expect(sandbox).toMatch(/^on\b/);
});

test.each([
  ['py', 'import numpy, pandas, matplotlib.pyplot; print(6 * 7)'],
  ['bash', 'echo $((6 * 7))'],
  ['js', 'console.log(6 * 7)'],
  ['ts', 'const x: number = 6; console.log(x * 7)'],
  ['go', 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println(6 * 7)\n}\n'],
  ['cpp', '#include <iostream>\nint main() { std::cout << 6 * 7 << std::endl; }'],
])('the Docker image answers a call in %s', async (lang, code) => {
  const { stdout, stderr } = await ask('/exec', { lang, code });
  expect(JSON.parse(stdout), stderr).toMatchObject({ stdout: '42\n', run: { code: 0 } });
});

test("the Docker image runs the lab's demo", async () => {
  const { code, stdout, stderr } = await inside(['cuvette', 'lab', 'demo'], '/tmp');
  expect([code, stderr]).toEqual([0, '']);
  expect(stdout).toContain('causal: sufficient-and-necessary');
});

test('the Docker image ends when it is told to and leaves no process behind', async () => {
  process.kill(pid, 'SIGTERM');
  const { code, stderr } = await ended;
  expect([code, stderr]).toEqual([0, '']);
  const left = readdirSync('/proc').filter((id) => /^\d+$/.test(id) && isInRoot(id));
  expect(left).toEqual([]);
});

function inside(argv: string[], cwd = image.cwd) {
  return endOf(execInside(pid, { ...image, argv, cwd }));
}

/** A request from inside, since the container has a network of its own. */
function ask(path: string, body?: unknown) {
  const data = body === undefined ? [] : ['--json', JSON.stringify(body)];
  return inside(['curl', '-sS', '-H', `x-api-key: ${KEY}`, ...data, `http://127.0.0.1:8000${path}`]);
}

function isInRoot(id: string): boolean {
  try {
    return readlinkSync(`/proc/${id}/root`).startsWith(folder);
  } catch {
    return false;
  }
}

/** What compose.yaml sets, with its own defaults. */
function composeEnvironment(): Record<string, string> {
  const text = readFileSync(packageFile('compose.yaml'), 'utf8');
  const lines = [...text.matchAll(/^ {6}(\w+): \$\{\w+:([-?])([^}]*)\}$/gm)];
  const all = lines.map(([, name = '', how, value = '']) => [name, how === '?' ? KEY : value] as const);
  return Object.fromEntries(all.filter(([, value]) => value !== ''));
}

function freePort(): Promise<number> {
  const server = createServer();
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0));
    });
  });
}
