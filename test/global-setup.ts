/** Makes ready, once, what all the tests share: the build, the managed Python environment, and the tools that check results. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { createEnvironment } from '../src/interpreters/python/environment.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** XDG_CACHE_HOME of all tests: the managed environment is in it. */
    cacheHome: string;
    /** The Python of the managed environment. */
    managedPython: string;
    /** A virtual environment with nbformat and uv. */
    tools: string;
  }
}

const ROOT = fileURLToPath(new URL('..', import.meta.url));

export default async function setup({ provide }: TestProject): Promise<void> {
  execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  const folder = join(realpathSync(join(ROOT, 'node_modules')), '.cache', 'cuvette-test');
  mkdirSync(folder, { recursive: true });
  const cacheHome = join(folder, 'cache');
  provide('cacheHome', cacheHome);
  provide('managedPython', await makeEnvironment(cacheHome));
  provide('tools', makeTools(join(folder, 'tools')));
}

async function makeEnvironment(cacheHome: string): Promise<string> {
  const environment = createEnvironment({
    cache: join(cacheHome, 'cuvette'),
    python: undefined,
    signal: new AbortController().signal,
  });
  const state = await environment.settled();
  if (state.phase !== 'ready') throw new Error(`The managed environment is not ready: ${JSON.stringify(state)}`);
  const python = state.python.executable;
  // matplotlib looks through the machine's fonts once, which takes long.
  execFileSync(python, ['-c', 'import matplotlib.pyplot'], { env: { ...process.env, XDG_CACHE_HOME: cacheHome } });
  return python;
}

function makeTools(folder: string): string {
  if (existsSync(join(folder, 'ready'))) return folder;
  execFileSync('python3', ['-m', 'venv', '--clear', folder], { stdio: 'inherit' });
  execFileSync(join(folder, 'bin', 'python'), ['-m', 'pip', 'install', '--quiet', 'nbformat', 'uv'], {
    stdio: 'inherit',
  });
  writeFileSync(join(folder, 'ready'), '');
  return folder;
}
