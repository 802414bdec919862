import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { CuvetteError, ERROR_CODES } from '../src/errors.ts';
import { packageFile } from '../src/package-root.ts';

test('every error is in the documentation, with its status and exit code', () => {
  const page = readFileSync(packageFile('docs', 'troubleshooting.md'), 'utf8');
  const rows = [...page.matchAll(/^\| `(\w+)` +\| (\d+) +\| (\d+) +\|/gm)];
  const documented = rows.map(([, code, status, exit]) => ({ code, status: Number(status), exit: Number(exit) }));
  const known = ERROR_CODES.map((code) => {
    const { status, exitCode } = new CuvetteError(code, '');
    return { code, status, exit: exitCode };
  });
  expect(documented).toEqual(known);
});
