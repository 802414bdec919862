/** Finds a Python with torch for the tests, or makes one. Where that is not possible, the suite says so and exits with 75: it cannot run. */

import { mkdirSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { TestProject } from 'vitest/node';
import { messageOf } from '../../../../src/errors.ts';
import { findTorchPython } from '../../../../src/lab/engines/torch/torch-python.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** A Python that has torch and transformers. */
    torchPython: string;
  }
}

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const CANNOT_RUN = 75;

export default async function setup({ provide }: TestProject): Promise<void> {
  const cache = join(realpathSync(join(ROOT, 'node_modules')), '.cache', 'cuvette-test');
  mkdirSync(cache, { recursive: true });
  provide('cacheHome', join(cache, 'cache'));
  try {
    const wanted = process.env.CUVETTE_TORCH_PYTHON;
    const signal = new AbortController().signal;
    provide('torchPython', await findTorchPython({ wanted, cache, signal, progress: say }));
  } catch (error) {
    say(`The torch engine was not tested: ${messageOf(error)}`);
    process.exit(CANNOT_RUN);
  }
}

function say(message: string): void {
  process.stderr.write(`${message}\n`);
}
