import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ROUTED } from '../../../src/lab/primitives/table.ts';

const page = readFileSync(new URL('../../../docs/lab.md', import.meta.url), 'utf8');

test.each(ROUTED.map(({ route }) => `${route.method} ${route.path}`))('the page of the lab names %s', (route) => {
  expect(page).toContain(`\`${route}\``);
});
