/** Sorts the test files into vitest's projects by what they need. A new file is sorted by itself: by its folder, else by what it imports. */

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

export type Project = 'unit' | 'live' | 'lab' | 'attack' | 'soak' | 'torch' | 'docker' | 'browser';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** The first that fits counts. */
const BY_PATH: [RegExp, Project][] = [
  [/^test\/attack\/soak\.test\.ts$/, 'soak'],
  [/^test\/attack\//, 'attack'],
  // The page's own logic needs no browser.
  [/^test\/web\/(state|terminal)\//, 'unit'],
  [/^test\/web\//, 'browser'],
  [/^test\/docker\/image\.test\.ts$/, 'docker'],
  [/^test\/lab\/engines\/torch\//, 'torch'],
  [/^test\/lab\/engines\//, 'lab'],
  // Whole protocols and sweeps, one after the other: they take seconds each.
  [
    /^test\/lab\/(site-sweep\/run-sweep|report\/several-classes|handlers\/(causality-protocol|several-classes|sweep)|causality\/(protocol|subspaces|several-classes|interchange-fit|two-classes|more-data))\./,
    'lab',
  ],
  // Seconds of arithmetic, or of waiting for connections that are cut.
  [/^test\/lab\/(sae\/reading|ground-truth\/models\/toy-model|remote\/remote-lab)\./, 'lab'],
  // Trees of tens of thousands of folders.
  [/^test\/files\/remove-tree\./, 'live'],
  [/^test\/e2e\/lab\//, 'lab'],
  [/^test\/e2e\//, 'live'],
];

/** Modules that start the built program, a worker from dist/, or an interpreter. Whoever imports one, itself or through a helper of the tests, is not a unit test. */
const BY_IMPORT: [RegExp, Project][] = [
  [/^src\/lab\/(labs\/(labs|callers-labs)|local\/lab-thread)\.ts$|^src\/lab\/engines\//, 'lab'],
  [
    /^test\/e2e\/harness\.ts$|^test\/interpreters\/process\/run-plan\.ts$|^src\/interpreters\/python\/zygotes\.ts$/,
    'live',
  ],
];

/** Every test file, from the root of the repository, with its project. */
export function sortTests(): Map<string, Project> {
  const files = readdirSync(join(ROOT, 'test'), { recursive: true, encoding: 'utf8' });
  const tests = files.filter((file) => file.endsWith('.test.ts')).map((file) => join('test', file));
  return new Map(tests.sort().map((file) => [file, projectOf(file)]));
}

function projectOf(file: string): Project {
  const byPath = BY_PATH.find(([pattern]) => pattern.test(file));
  if (byPath) return byPath[1];
  const imported = [...importsBelow(file, new Set())];
  const byImport = BY_IMPORT.find(([pattern]) => imported.some((path) => pattern.test(path)));
  return byImport?.[1] ?? 'unit';
}

/** What a file imports, itself or through the tests' own helpers. */
function importsBelow(file: string, found: Set<string>): Set<string> {
  const text = readFileSync(join(ROOT, file), 'utf8');
  for (const [, type, specifier = ''] of text.matchAll(/^(?:import|export)( type)?[^;]*? from '(\.[^']+)';/gms)) {
    const path = relative(ROOT, join(ROOT, dirname(file), specifier));
    if (type || found.has(path)) continue;
    found.add(path);
    if (path.startsWith('test/')) importsBelow(path, found);
  }
  return found;
}
