/** How the test command runs a suite: what it counts, and when it takes one for hung. */

import { readFileSync } from 'node:fs';
import { expect, onTestFinished, test, vi } from 'vitest';
import { run } from '../../scripts/testing/run.mjs';

vi.spyOn(process.stdout, 'write').mockReturnValue(true);

const HUNG_AFTER = 3 * 60_000;

/** Of a process: empty, or Z, once it has ended. */
function stateOf(pid: string | undefined): string | undefined {
  try {
    return /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8'))?.[1];
  } catch {
    return '';
  }
}

function node(code: string, more = {}) {
  return run({ name: 'suite', command: process.execPath, args: ['-e', code], ...more });
}

/** Time stands still but for what a line of the suite makes pass. */
function passing(minutes: number) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
  onTestFinished(() => void vi.useRealTimers());
  return { hungAfter: HUNG_AFTER, countLine: () => void vi.advanceTimersByTime(minutes * 60_000) };
}

test.runIf(process.platform === 'linux')('a suite that shows no progress is ended, with what it started', async () => {
  const code = `console.log(require('child_process').spawn('sleep', ['600']).pid); setInterval(() => {}, 1000)`;
  const { problem, lines } = await node(code, passing(4));
  expect(problem).toMatch(/it hangs, and was ended/);
  expect(lines[0]).toMatch(/^[0-9]+$/);
  await expect.poll(() => stateOf(lines[0])).toMatch(/^[XZ]?$/);
});

test('a suite that shows progress goes on for longer than silence is borne', async () => {
  const code = `for (let n = 0; n < 10; n++) console.log(n)`;
  const { problem, lines } = await node(code, passing(2));
  expect([problem, lines.length]).toEqual([undefined, 10]);
});

test('tests are counted as they end, and a status that is not 0 is a problem', async () => {
  const code = `process.send({ passed: 2, failed: 1 }, () => process.exit(3))`;
  const { problem, counts, status } = await node(code);
  expect([problem, status, counts]).toEqual(['exit code 3', 3, { passed: 2, failed: 1, skipped: 0 }]);
});
