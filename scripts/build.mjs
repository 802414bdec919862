/** Builds dist/: the program, by tsdown with its own settings file, the lab's WebAssembly kernel, and the page, by Vite. Says only what went wrong. */

import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { build } from 'tsdown';

const ROOT = resolve(import.meta.dirname, '..');

await build({ cwd: ROOT, logLevel: 'error' });
await import('./kernel.mjs');
// Not in an image's first stage, which has the sources of the program alone.
if (existsSync(resolve(ROOT, 'web/vite.config.ts'))) await (await import('./build-page.mjs')).buildPage();
