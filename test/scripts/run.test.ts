/** How the test command runs a suite: what it counts, and when it takes one for hung. */

import { readFileSync } from 'node:fs';
import { expect, test, vi } from 'vitest';
import { run } from '../../scripts/testing/run.mjs';

vi.spyOn(process.stdout, 'write').mockReturnValue(true);

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

test.runIf(process.platform === 'linux')('a suite that shows no progress is ended, with what it started', async () => {
  const code = `console.log(require('child_process').spawn('sleep', ['600']).pid); setInterval(() => {}, 1000)`;
  const { problem, lines } = await node(code, { hungAfter: 3000 });
  expect(problem).toMatch(/it hangs, and was ended/);
  await expect.poll(() => stateOf(lines[0])).toMatch(/^[XZ]?$/);
});

test('a suite that shows progress goes on for longer than silence is borne', async () => {
  const code = `let n = 0; const t = setInterval(() => { process.send({ passed: 1 }); if (++n === 40) { clearInterval(t); process.disconnect(); } }, 100)`;
  const { problem, counts } = await node(code, { hungAfter: 3000 });
  expect([problem, counts.passed]).toEqual([undefined, 40]);
});

test('tests are counted as they end, and a status that is not 0 is a problem', async () => {
  const code = `process.send({ passed: 2, failed: 1 }, () => process.exit(3))`;
  const { problem, counts, status } = await node(code);
  expect([problem, status, counts]).toEqual(['exit code 3', 3, { passed: 2, failed: 1, skipped: 0 }]);
});
