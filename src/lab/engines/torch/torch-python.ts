/** Finds a Python with torch and transformers: the one asked for, one on PATH, or an environment that is made once in the cache. */

import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import * as z from 'zod';
import { CuvetteError } from '../../../errors.ts';
import { withLock } from '../../../file-lock.ts';
import { scratchOf, stepIn } from '../../../interpreters/python/environment.ts';
import { findPython, type PythonInfo, probePython } from '../../../interpreters/python/probe.ts';
import { runCommand } from '../../../run-command.ts';
import { findProgram } from '../../../search-path.ts';

export interface FindTorchOptions {
  /** A Python by its path. */
  wanted?: string | undefined;
  /** Cuvette's cache folder. */
  cache: string;
  signal: AbortSignal;
  /** Tells the user what goes on. */
  progress(message: string): void;
}

const PACKAGES = ['torch==2.13.0', 'transformers==5.22.2', 'safetensors==0.8.0'];
/** Spreads a model over several GPUs. */
const FOR_GPUS = ['accelerate==1.15.0'];
/** uv knows where torch is without what GPUs need, a tenth of the size. pip knows no other index than the one that it is configured for. */
const WITHOUT_GPUS = ['--torch-backend', 'cpu'];
/** Major and minor. */
const OLDEST: Record<string, [number, number]> = { torch: [2, 6], transformers: [5, 0], safetensors: [0, 4] };
const BUILD_TIME = 60 * 60_000;

export async function findTorchPython({ wanted, cache, signal, progress }: FindTorchOptions): Promise<string> {
  if (wanted) {
    const { executable } = await probePython(wanted);
    const lacking = await lackingIn(executable);
    if (lacking.length === 0) return executable;
    const install = `${wanted} -m pip install ${PACKAGES.join(' ')}`;
    throw new CuvetteError('runtime_missing', `${wanted} lacks ${lacking.join(', ')}. Install: ${install}`);
  }
  const base = await findPython(undefined);
  if ((await lackingIn(base.executable)).length === 0) return base.executable;
  const folder = join(cache, 'torch', nameOf(base));
  return withLock(`${folder}.lock`, signal, async () => {
    if (!existsSync(join(folder, 'ready'))) await build(base, folder, signal, progress);
    return pythonIn(folder);
  });
}

const QUESTION = `
import importlib.metadata as m, json
def version(name):
    try: return m.version(name)
    except m.PackageNotFoundError: return None
print(json.dumps({name: version(name) for name in ${JSON.stringify(Object.keys(OLDEST))}}))
`;

/** What it does not have, or only too old. */
async function lackingIn(python: string): Promise<string[]> {
  const { stdout } = await promisify(execFile)(python, ['-c', QUESTION], { timeout: 20_000 });
  const versions = z.record(z.string(), z.string().nullable()).parse(JSON.parse(stdout));
  return Object.entries(OLDEST).flatMap(([name, [major, minor]]) => {
    const version = versions[name];
    if (!version) return [name];
    const [foundMajor = 0, foundMinor = 0] = version.split('.').map(Number);
    const isNewEnough = foundMajor > major || (foundMajor === major && foundMinor >= minor);
    return isNewEnough ? [] : [`${name} ${major}.${minor} or later (it has ${version})`];
  });
}

async function build(base: PythonInfo, folder: string, signal: AbortSignal, progress: FindTorchOptions['progress']) {
  rmSync(folder, { recursive: true, force: true });
  progress('Making an environment for torch, once; that may take minutes.');
  const uv = findProgram('uv');
  const python = pythonIn(folder);
  await step(
    uv ? [uv, 'venv', '--seed', '--python', base.executable, folder] : [base.executable, '-m', 'venv', folder],
  );
  const install = [
    ...(uv ? [uv, 'pip', 'install', '--python', python] : [python, '-m', 'pip', 'install', '--no-input']),
  ];
  const [torch = ''] = PACKAGES;
  // Where that place cannot be reached, the usual one has it, too.
  if (uv && !hasGpu()) await run([...install, ...WITHOUT_GPUS, torch]);
  await step([...install, ...PACKAGES, ...(hasGpu() ? FOR_GPUS : [])]);
  writeFileSync(join(folder, 'ready'), '');

  function run(argv: string[]) {
    const onLine = (line: string) => {
      const step = stepIn(line);
      if (step !== undefined) progress(step);
    };
    return runCommand(argv, { signal, timeout: BUILD_TIME, scratch: scratchOf(folder), onLine });
  }

  async function step(argv: string[]): Promise<void> {
    const { ok, output } = await run(argv);
    signal.throwIfAborted();
    if (ok) return;
    const last = output.split('\n').filter(Boolean).at(-1)?.slice(0, 300) ?? 'no reason given';
    throw new CuvetteError(
      'runtime_missing',
      `An environment with ${PACKAGES.join(', ')} could not be made (${last}). Make one yourself, and name its Python by CUVETTE_TORCH_PYTHON.`,
    );
  }
}

/** NVIDIA's driver shows itself there. */
function hasGpu(): boolean {
  return process.platform === 'linux' && existsSync('/proc/driver/nvidia/version');
}

function pythonIn(folder: string): string {
  return join(folder, 'bin', 'python');
}

function nameOf(base: PythonInfo): string {
  const mark = createHash('sha256').update(`${base.executable}\n${PACKAGES.join()}`).digest('hex').slice(0, 8);
  return `${base.version}-${mark}`;
}
