/** Checks what the image is built from, without building it. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageFile } from '../../src/package-root.ts';
import { contextFiles, copiedFiles } from './context.ts';
import { parseDockerfile } from './dockerfile.ts';

const root = packageFile();
const files = contextFiles(root);
const [build] = parseDockerfile(readFileSync(join(root, 'Dockerfile'), 'utf8'));
const copied = (build?.instructions ?? []).flatMap((one) => (one.kind === 'copy' ? one.sources : []));

test('every file that the Dockerfile copies is let through by .dockerignore', () => {
  expect(copied.length).toBeGreaterThan(0);
  expect(copied.filter((source) => copiedFiles(files, source).length === 0)).toEqual([]);
});

test('no file is sent to the build that the Dockerfile does not copy', () => {
  const used = new Set(copied.flatMap((source) => copiedFiles(files, source)));
  expect(files.filter((file) => !used.has(file) && file !== 'Dockerfile')).toEqual([]);
});

test.each([
  'scripts/build.mjs',
  'scripts/kernel.mjs',
  'scripts/build-page.mjs',
  'web/index.html',
  'models/demo/model.safetensors',
  'python/cuvette_driver/__main__.py',
  'python/cuvette_torch/server.py',
  'src/lab/engines/embedded/kernel/kernel.as',
])('%s, which the package is built from, is in the build context', (file) => {
  expect(files).toContain(file);
});
