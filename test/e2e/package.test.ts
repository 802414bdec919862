/** Packs the package, installs it into a fresh folder and runs it from there, as users do. */

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { isBuilt } from '../prepare.ts';
import { ROOT, runOutside, useHome } from './harness.ts';

const home = useHome();

test('the next suite finds everything built, and does not build it anew under the suites that run', () => {
  expect(isBuilt()).toBe(true);
});

test('the packed package works where it is installed', async () => {
  const target = home.project('packed');
  // The build is already there; building it again would pull it away from under the other tests.
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', target], {
    cwd: ROOT,
    stdio: 'pipe',
  });
  const [tarball = ''] = readdirSync(target);
  const listed = execFileSync('tar', ['-tzf', join(target, tarball)], { encoding: 'utf8' })
    .trim()
    .split('\n');
  expect(listed).toContain('package/dist/main.js');
  expect(listed).toContain('package/dist/search-worker.js');
  expect(listed).toContain('package/python/cuvette_driver/__main__.py');
  for (const path of [
    'dist/web/index.html',
    'dist/web/app-execution.html',
    'dist/kernel-simd.wasm',
    'dist/lab-worker.js',
    'models/demo/model.safetensors',
    'python/cuvette_torch/server.py',
  ])
    expect(listed).toContain(`package/${path}`);
  expect(listed, 'models of known structure are for the tests alone').not.toContain('package/dist/lab.js');
  const allowed =
    /^package\/(dist\/[\w.-]+\.(js|wasm)|dist\/web\/(ui\/)?[\w.-]+\.(html|css|js)|models\/demo\/[\w./]+|python\/cuvette_(driver|torch)\/\w+\.py|package\.json|README\.md|LICENSE|NOTICE)$/;
  expect(listed.filter((path) => !allowed.test(path))).toEqual([]);

  const fresh = home.project('fresh');
  const flags = ['--no-audit', '--no-fund', '--silent', '--prefix', fresh];
  execFileSync('npm', ['install', ...flags, join(target, tarball)], { cwd: fresh, stdio: 'pipe' });
  const options = { home, cwd: fresh, command: [join(fresh, 'node_modules', '.bin', 'cuvette')] };
  expect(await runOutside(['run', '-c', 'x = 1\nprint("one")\n1 + 1'], options)).toEqual({
    code: 0,
    stdout: 'one\n2\n',
    stderr: '',
  });
  expect((await runOutside(['run', '-c', 'x + 1'], options)).stdout).toBe('2\n');
  const oldName = { ...options, command: [join(fresh, 'node_modules', '.bin', 'mcp-py-client')], input: 'x + 2\n' };
  expect((await runOutside([], oldName)).stdout).toBe('3\n');
  const search = await runOutside(['call', 'get_output', '{"execution": 1, "pattern": "^2"}'], options);
  expect(search.stdout).toMatch(/^2: 2\n/);
  expect((await runOutside(['call', 'colab_status'], options)).stdout).toContain('"model_id":"demo"');
  expect((await runOutside(['doctor'], options)).code).toBe(0);
});
