/** Builds dist/: the program, by tsdown with its own settings file, and the lab's WebAssembly kernel. Says only what went wrong. */

import { resolve } from 'node:path';
import { build } from 'tsdown';

const ROOT = resolve(import.meta.dirname, '..');

await build({ cwd: ROOT, logLevel: 'error' });
await import('./kernel.mjs');
