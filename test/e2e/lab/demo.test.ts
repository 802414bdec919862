/** Runs `cuvette lab demo` as a newcomer would. */

import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runCli, startCli, useHome } from '../harness.ts';
import { PATIENCE } from './patience.ts';

const home = useHome({ preload: 'none' });

test(
  'cuvette lab demo finds one direction causal and two not, and writes what its verdicts rest on',
  async () => {
    const cwd = home.project();
    const { code, stdout, stderr } = await runCli(['lab', 'demo'], {
      home,
      cwd,
      env: { LANG: 'C.UTF-8' },
      timeout: PATIENCE,
    });
    expect(stderr).toBe('');
    expect(code).toBe(0);
    expect(stdout).toMatch(/causal: sufficient-and-necessary/);
    expect(stdout).toMatch(/epiphenomenal-softmax/);
    expect(stdout).toMatch(/epiphenomenal-template/);
    expect(stdout).toContain('1 of them the model uses');
    expect(readdirSync(cwd).sort()).toEqual([
      'cuvette-lab-report-feeling.html',
      'cuvette-lab-report-text-kind.html',
      'cuvette-lab-report.html',
      'cuvette-lab-report.svg',
    ]);
    expect(readFileSync(join(cwd, 'cuvette-lab-report.html'), 'utf8')).toContain('sufficient-and-necessary');
    // Its questions are not the user's.
    expect(existsSync(join(home.data, 'lab'))).toBe(false);
  },
  PATIENCE,
);

test('cuvette lab demo refuses a seed that is not a whole number', async () => {
  const { code, stderr } = await runCli(['lab', 'demo', '--seed', 'x'], { home, cwd: home.project() });
  expect(code).toBe(2);
  expect(stderr).toContain('--seed x is not a whole number');
});

test(
  'cuvette lab demo leaves no temporary files when its reader closes the pipe',
  async () => {
    const temporary = join(home.root, 'temporary');
    mkdirSync(temporary);
    const cwd = home.project();
    const { child, done } = startCli(['lab', 'demo'], { home, cwd, env: { TMPDIR: temporary }, timeout: PATIENCE });
    child.stdout?.once('data', () => child.stdout?.destroy());
    expect((await done).stderr).toBe('');
    expect(readdirSync(temporary)).toEqual([]);
    expect(readdirSync(cwd)).toEqual([]);
  },
  PATIENCE,
);
