/** The checker of imports and exported names, on small trees with one fault each. */

import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { checkLayout } from '../../scripts/check-layout.mjs';
import { temporaryFolder } from '../temporary-folder.ts';

function check(files: Record<string, string>): string[] {
  const root = temporaryFolder();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, name)), { recursive: true });
    writeFileSync(join(root, name), text);
  }
  return checkLayout(root);
}

test('check-layout accepts imports that point down', () => {
  expect(
    check({
      'main.ts': "import './cli/run.ts';",
      'cli/run.ts': "import { a } from '../lab/labs/a.ts';\nexport function main() {}",
      'cli/serve.ts': 'export async function main() {}',
      'lab/labs/a.ts': "import type { B } from '../core/b.ts';\nexport const a = 1;",
      'lab/core/b.ts': "import { c } from '../../errors.ts';\nexport type B = typeof c;",
      'errors.ts': 'export const c = 1;',
    }),
  ).toEqual([]);
});

test.each([
  ["import { a } from '../sessions/a.ts';"],
  ["import type { A } from '../sessions/a.ts';"],
  ["const { a } = await import('../sessions/a.ts');"],
  ["export { a } from '../sessions/a.ts';"],
])('check-layout rejects an import from a lower room into a higher one: %s', (text) => {
  expect(check({ 'interpreters/b.ts': text, 'sessions/a.ts': '' })).toEqual([
    'interpreters/b.ts imports sessions/a.ts, which is not in a room below it',
  ]);
});

test('check-layout rejects an import from the lab into the sessions, which are beside it', () => {
  expect(check({ 'lab/b.ts': "import '../sessions/a.ts';", 'sessions/a.ts': '' })).toEqual([
    'lab/b.ts imports sessions/a.ts, which is not in a room below it',
  ]);
});

test('check-layout rejects a cycle between a folder and one inside it', () => {
  const files = {
    'lab/models/open.ts': "import './families/llama.ts';",
    'lab/models/rotary.ts': '',
    'lab/models/families/llama.ts': "import '../rotary.ts';",
  };
  expect(check(files)).toEqual([
    'lab/models/families → lab/models → lab/models/families is a cycle between folders: ' +
      'lab/models/families/llama.ts → lab/models/rotary.ts, lab/models/open.ts → lab/models/families/llama.ts',
  ]);
});

test('check-layout rejects a name that two modules export', () => {
  const files = { 'lab/a.ts': 'export interface Store {}', 'sessions/b.ts': 'export const Store = 1;' };
  expect(check(files)).toEqual([
    'Store is exported by lab/a.ts and sessions/b.ts: give each meaning a name of its own',
  ]);
});

test('check-layout refuses a folder of src that no row of the rooms names', () => {
  expect(() => check({ 'attic/a.ts': "import '../errors.ts';", 'errors.ts': '' })).toThrow('attic/ has no place');
});
