/**
 * Makes the managed environment of the builtin interpreter, once, in the background, in the user's cache folder. Until it is there, sessions
 * run on the plain Python that it is made from, and see its packages as soon as it is ready.
 */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from '../../file-lock.ts';
import { privateFolder } from '../../paths.ts';
import { runCommand } from '../../run-command.ts';
import { findProgram } from '../../search-path.ts';
import { findPython, type PythonInfo, probePython } from './probe.ts';
import type { ZygoteSpec } from './zygotes.ts';

const PACKAGES = ['ipython', 'numpy', 'pandas', 'matplotlib'];
const BUILD_TIMEOUT_MS = 15 * 60_000;
const RETRY_AFTER_MS = 60_000;

export type EnvironmentState =
  | { phase: 'ready'; python: PythonInfo; folder: string; preload: string[] }
  | { phase: 'making'; base: PythonInfo; progress: string; since: number }
  | { phase: 'failed'; base: PythonInfo; problem: string };

export interface Environment {
  /** What there is now; starts the making if need be. Rejects if there is no Python at all. */
  state(): Promise<EnvironmentState>;
  /** Resolves when the making has come to its end, one way or the other. */
  settled(signal?: AbortSignal): Promise<EnvironmentState>;
  /** The command that installs distributions into the environment, with what is preloaded held at its version. */
  installCommand(python: PythonInfo, distributions: string[], onlyWheels: boolean): string[];
  onProgress(listener: (state: EnvironmentState) => void): void;
}

export function createEnvironment(options: {
  cache: string;
  python: string | undefined;
  /** Modules that sessions find already imported. */
  preload: string[];
  signal: AbortSignal;
}): Environment {
  const listeners = new Set<(state: EnvironmentState) => void>();
  let current: Promise<EnvironmentState> | undefined;
  let making: Promise<EnvironmentState> | undefined;
  let failedAt = 0;

  const set = (state: EnvironmentState) => {
    current = Promise.resolve(state);
    for (const listener of listeners) listener(state);
    return state;
  };

  async function open(): Promise<EnvironmentState> {
    const base = await findPython(options.python);
    const found = await findEnvironment(options.cache, base, options.preload);
    if (found) return found;
    const folder = folderOf(options.cache, base);
    making = make(base, folder).then(set);
    return { phase: 'making', base, progress: 'starting', since: Date.now() };
  }

  async function make(base: PythonInfo, folder: string): Promise<EnvironmentState> {
    const since = Date.now();
    try {
      privateFolder(options.cache);
      return await withLock(join(environmentsIn(options.cache), `${nameOf(base)}.lock`), options.signal, async () => {
        if (!isReady(folder)) {
          await build(base, folder, options.signal, (progress) => set({ phase: 'making', base, progress, since }));
        }
        return { phase: 'ready', python: await probePython(pythonIn(folder)), folder, preload: options.preload };
      });
    } catch (error) {
      failedAt = Date.now();
      return { phase: 'failed', base, problem: error instanceof Error ? error.message : String(error) };
    }
  }

  return {
    async state() {
      current ??= open();
      const state = await current;
      // What failed for want of a network or of space may work by now.
      if (state.phase === 'failed' && Date.now() - failedAt > RETRY_AFTER_MS) current = open();
      return state;
    },
    async settled(signal) {
      const state = await this.state();
      if (state.phase !== 'making' || !making) return state;
      return signal ? Promise.race([making, aborted(signal).then(() => state)]) : making;
    },
    installCommand: (python, distributions, onlyWheels) => [
      ...installer(python.executable),
      ...(onlyWheels ? ['--only-binary', ':all:'] : []),
      '--constraint',
      join(python.prefix, 'held.txt'),
      ...distributions,
    ],
    onProgress: (listener) => void listeners.add(listener),
  };
}

/** One that is taken as it is: nothing is made, and nothing is installed into it. */
export function standingEnvironment(state: EnvironmentState): Environment {
  return {
    state: async () => state,
    settled: async () => state,
    installCommand: () => {
      throw new Error('nothing is installed into an environment that is only looked at');
    },
    onProgress: () => {},
  };
}

/** The environment for this Python, if it has been made. */
export async function findEnvironment(
  cache: string,
  base: PythonInfo,
  preload: string[],
): Promise<Extract<EnvironmentState, { phase: 'ready' }> | undefined> {
  const folder = folderOf(cache, base);
  return isReady(folder) ? { phase: 'ready', python: await probePython(pythonIn(folder)), folder, preload } : undefined;
}

/** Where all of them are. */
export function environmentsIn(cache: string): string {
  return join(cache, 'python');
}

/** What a zygote for the builtin interpreter is made of in this state. */
export function zygoteSpec(state: EnvironmentState): ZygoteSpec {
  if (state.phase === 'ready') return { python: state.python.executable, preload: state.preload };
  return { python: state.base.executable, preload: [] };
}

/** Versions of what is installed: distribution name, normalised, to version. */
export function installedVersions(site: string): Map<string, string> {
  const versions = new Map<string, string>();
  for (const entry of readdirSync(site)) {
    const match = /^(.+)-([^-]+)\.dist-info$/.exec(entry);
    if (match?.[1] && match[2]) versions.set(normalise(match[1]), match[2]);
  }
  return versions;
}

export function normalise(distribution: string): string {
  return distribution.toLowerCase().replace(/[-_.]+/g, '-');
}

/** What an installer says it is doing now, shortened; nothing of its progress bars and reasons. */
export function stepIn(line: string): string | undefined {
  const [, names] = /^Installing collected packages: (.*)/.exec(line) ?? [];
  if (names !== undefined) return `Installing ${names.split(', ').length} packages`;
  const step = /^(Collecting|Downloading|Installing|Resolved|Prepared|Installed)\b[^(]*/.exec(line);
  return step?.[0].trim().slice(0, 80);
}

/** For temporary files of what is installed there. */
export function scratchOf(folder: string): string {
  return `${folder}.scratch`;
}

async function build(
  base: PythonInfo,
  folder: string,
  signal: AbortSignal,
  report: (progress: string) => void,
): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  report('making the environment');
  const uv = findProgram('uv');
  const made = await runCommand(
    uv ? [uv, 'venv', '--seed', '--python', base.executable, folder] : [base.executable, '-m', 'venv', folder],
    { signal, timeout: BUILD_TIMEOUT_MS, scratch: scratchOf(folder) },
  );
  if (!made.ok)
    throw new Error(`the environment could not be made (${lastLine(made.output)})${adviceFor(made.output)}`);
  report(`installing ${PACKAGES.join(', ')}`);
  const installed = await runCommand([...installer(pythonIn(folder)), ...PACKAGES], {
    signal,
    timeout: BUILD_TIMEOUT_MS,
    scratch: scratchOf(folder),
    onLine: (line) => {
      const step = stepIn(line);
      if (step !== undefined) report(step);
    },
  });
  if (!installed.ok) throw new Error(`${PACKAGES.join(', ')} could not be installed (${lastLine(installed.output)})`);
  const { site } = await probePython(pythonIn(folder));
  // Sessions share these modules in memory: no later install may change them underneath.
  const held = [...installedVersions(site)].filter(([name]) => name !== 'pip' && name !== 'setuptools');
  writeFileSync(join(folder, 'held.txt'), held.map(([name, version]) => `${name}==${version}\n`).join(''));
  writeFileSync(join(folder, 'ready'), '');
}

function installer(python: string): string[] {
  const uv = findProgram('uv');
  if (uv) return [uv, 'pip', 'install', '--python', python];
  return [
    python,
    '-m',
    'pip',
    'install',
    '--disable-pip-version-check',
    '--no-input',
    '--retries',
    '1',
    '--timeout',
    '15',
  ];
}

function folderOf(cache: string, base: PythonInfo): string {
  return join(environmentsIn(cache), nameOf(base));
}

function isReady(folder: string): boolean {
  return existsSync(join(folder, 'ready'));
}

function pythonIn(folder: string): string {
  return join(folder, 'bin', 'python');
}

function nameOf(base: PythonInfo): string {
  const mark = createHash('sha256').update(`${base.executable}\n${PACKAGES.join()}`).digest('hex').slice(0, 8);
  return `${base.version}-${mark}`;
}

function lastLine(output: string): string {
  return output.split('\n').filter(Boolean).at(-1)?.slice(0, 300) ?? 'no reason given';
}

function adviceFor(output: string): string {
  return /ensurepip/.test(output) ? '. On Debian and Ubuntu: apt install python3-venv' : '';
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
