/** Whether two engines say the same: words to the letter, numbers as far as float32 carries. */

import { expect } from 'vitest';

/** How far apart the numbers of two engines may be. */
export const CLOSE = 1e-4;

/** Every word and number of one in the other, but for those whose path is of no account. */
export function expectClose(ours: unknown, theirs: unknown, ignored = /^$/): void {
  const [found, expected] = [leaves(ours), leaves(theirs)];
  expect([...found.keys()]).toEqual([...expected.keys()]);
  for (const [path, value] of found) {
    if (ignored.test(path)) continue;
    if (typeof value === 'number') expect(Math.abs(value - Number(expected.get(path))), path).toBeLessThan(CLOSE);
    else expect(value, path).toBe(expected.get(path));
  }
}

/** Everything in a value that is no object itself, by its path. */
function leaves(value: unknown, path = ''): Map<string, unknown> {
  if (typeof value !== 'object' || value === null) return new Map([[path, value]]);
  return new Map(Object.entries(value).flatMap(([key, part]) => [...leaves(part, `${path}.${key}`)]));
}
