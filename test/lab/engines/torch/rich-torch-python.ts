/** A Python that has all that the one with torch has, what spreads a model over devices and loads it in 8 or 4 bit, and matplotlib. It is made once, and kept. */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inject } from 'vitest';
import { messageOf } from '../../../../src/errors.ts';
import { withLock } from '../../../../src/file-lock.ts';
import { probePython } from '../../../../src/interpreters/python/probe.ts';
import { runCommand } from '../../../../src/run-command.ts';

const PACKAGES = ['bitsandbytes==0.50.2', 'accelerate==1.15.0', 'psutil==7.2.2', 'matplotlib==3.10.8'];
const BUILD_TIME = 5 * 60_000;

/** Nothing where it cannot be made; that is told, and on CI an error. */
export async function findRichTorchPython(): Promise<string | undefined> {
  try {
    return await make(inject('torchPython'), inject('cacheHome'));
  } catch (error) {
    if (process.env.CI) throw error;
    process.stderr.write(
      `Without accelerate, bitsandbytes and matplotlib, some things are not tested: ${messageOf(error)}\n`,
    );
    return undefined;
  }
}

async function make(torchPython: string, cache: string): Promise<string> {
  const { site, version } = await probePython(torchPython);
  const folder = join(cache, `rich-torch-${version}-${createHash('sha256').update(site).digest('hex').slice(0, 8)}`);
  const python = join(folder, 'bin', 'python');
  const ready = join(folder, 'ready');
  mkdirSync(cache, { recursive: true });
  await withLock(`${folder}.lock`, undefined, async () => {
    if (existsSync(ready)) return;
    await run([torchPython, '-m', 'venv', '--clear', folder]);
    writeFileSync(join((await probePython(python)).site, 'torch.pth'), `${site}\n`);
    await run([python, '-m', 'pip', 'install', '--no-input', ...PACKAGES]);
    writeFileSync(ready, '');
  });
  return python;

  async function run(argv: string[]): Promise<void> {
    const { ok, output } = await runCommand(argv, { timeout: BUILD_TIME, scratch: `${folder}.scratch` });
    if (!ok) throw new Error(`${argv.join(' ')} failed: ${output}`);
  }
}
