/** Builds dist/: the program, by tsdown with its own settings file, the lab's WebAssembly kernel, and the page, by Vite. Says only what went wrong. */

import { resolve } from 'node:path';
import { build } from 'tsdown';
import { buildPage } from './build-page.mjs';

const ROOT = resolve(import.meta.dirname, '..');

await build({ cwd: ROOT, logLevel: 'error' });
await import('./kernel.mjs');
await buildPage();
