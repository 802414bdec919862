import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { ancestorsOf, findProcess, isRunning } from '../src/process-tree.ts';
import { temporaryFolder } from './temporary-folder.ts';

async function started(command: string, args: string[]): Promise<ChildProcess & { pid: number }> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'ignore'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  if (child.pid === undefined) throw new Error(`${command} did not start`);
  return Object.assign(child, { pid: child.pid });
}

describe('a process', () => {
  it('is found with its parent and its name', async () => {
    const child = await started('sleep', ['60']);
    await expect.poll(() => findProcess(child.pid)?.name).toBe('sleep');
    expect(findProcess(child.pid)).toMatchObject({ pid: child.pid, parent: process.pid });
  });

  it.runIf(process.platform === 'linux')('is found when its name holds parentheses and spaces', async () => {
    const program = join(temporaryFolder(), 'a) (b 1 2');
    copyFileSync('/bin/sleep', program);
    const child = await started(program, ['60']);
    await expect.poll(() => findProcess(child.pid)?.name).toBe('a) (b 1 2');
    expect(findProcess(child.pid)?.parent).toBe(process.pid);
    expect(findProcess(child.pid)?.started).toMatch(/^\d+$/);
  });

  it('is not found once it has ended', async () => {
    const child = await started('true', []);
    if (child.exitCode === null) await once(child, 'exit');
    expect(findProcess(child.pid)).toBeUndefined();
  });

  it.runIf(process.platform === 'linux')('that ended but was not yet waited for counts as ended', async () => {
    // By the time the first sleep ends, its parent has turned into a sleep too, which waits for nobody.
    const parent = await started('sh', ['-c', 'sleep 0.3 & echo $!; exec sleep 60']);
    if (!parent.stdout) throw new Error('no output');
    const [line] = await once(parent.stdout, 'data');
    await expect.poll(() => findProcess(Number(line))).toBeUndefined();
    expect(() => process.kill(Number(line), 0)).not.toThrow();
  });
});

describe('a process that was noted down', () => {
  it('runs while that very process does', async () => {
    const child = await started('sleep', ['60']);
    const note = { pid: child.pid, started: findProcess(child.pid)?.started ?? '' };
    expect(isRunning(note)).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isRunning(note)).toBe(false);
  });

  it('is not taken for a later one with its pid', () => {
    expect(isRunning({ pid: process.pid, started: 'at another time' })).toBe(false);
  });
});

describe('ancestors', () => {
  it('of a process come nearest first', async () => {
    const outer = await started('sh', ['-c', 'sh -c "sleep 60 & echo \\$!; wait"; true']);
    if (!outer.stdout) throw new Error('no output');
    const [line] = await once(outer.stdout, 'data');
    const ancestors = ancestorsOf(Number(line)).map(({ pid }) => pid);
    expect(ancestors.slice(1, 3)).toEqual([outer.pid, process.pid]);
  });

  it('do not include the first process of the machine, nor the process itself', () => {
    const ancestors = ancestorsOf(process.pid).map(({ pid }) => pid);
    expect(ancestors[0]).toBe(process.ppid);
    expect(ancestors).not.toContain(1);
    expect(ancestors).not.toContain(process.pid);
  });

  it('of a process that is not there are none', () => {
    expect(ancestorsOf(2 ** 22 + 1)).toEqual([]);
  });
});
