import { expect, it } from 'vitest';
import { stepIn } from '../../../src/interpreters/python/environment.ts';

it.each([
  ['Collecting ipython', 'Collecting ipython'],
  ['Downloading numpy-2.4.0-cp311-manylinux.whl (17.1 MB)', 'Downloading numpy-2.4.0-cp311-manylinux.whl'],
  ['Installing collected packages: pytz, pure-eval, ptyprocess', 'Installing 3 packages'],
  ['Installed 23 packages in 41ms', 'Installed 23 packages in 41ms'],
  ['   ━━━━━━━━━━ 17.1/17.1 MB 80 MB/s', undefined],
  ['WARNING: Running pip as root', undefined],
])('an installer that says %j is told as %j', (line, step) => {
  expect(stepIn(line)).toBe(step);
});
