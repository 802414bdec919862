/** Stops code by its time limit, by its caller and by its own output, and checks what it leaves running. */

import { existsSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Agent, gone, processesOf, startAgent, useHome, waitFor } from './harness.ts';

const home = useHome({ preload: 'none' });
const cwd = home.project();
let agent: Agent;

beforeAll(async () => {
  agent = await startAgent({ home, cwd, args: ['--max-output', '200000'] });
  await agent.execute('import time, os, subprocess');
});

/** A test that fails leaves nothing that the next one would have to wait for. */
afterEach(async () => {
  const { running } = (await agent.call('get_session_info')).structured;
  for (const execution of running as number[]) await agent.call('interrupt', { execution });
});

const TICK = (file: string) =>
  `while True:\n    with open("${file}", "a") as file: file.write("x")\n    print("tick", flush=True)\n    time.sleep(0.02)`;

/** The code writes to the file no more. */
async function expectStill(path: string): Promise<void> {
  const { size } = statSync(path);
  await sleep(200);
  expect(statSync(path).size).toBe(size);
}

describe('the time limit', () => {
  test('interrupts code that sleeps, and variables survive', async () => {
    await agent.execute('kept = 1');
    const answer = await agent.execute('started = True\ntime.sleep(600)', { timeout: 0.3 });
    expect(answer.structured).toMatchObject({
      outcome: 'timeout',
      exit_code: 124,
      variables_survived: true,
      reason: { code: 'timeout' },
    });
    expect(answer.text).toContain('Timed out after 0.3 s: it was interrupted. Variables survived.');
    expect((await agent.execute('kept, started')).text).toBe('(1, True)');
  });

  test('is a setting of the server, and each call may set its own', async () => {
    const other = await startAgent({ home, cwd: home.project(), env: { CUVETTE_TIMEOUT: '0.3' } });
    const answer = await other.execute('import time; time.sleep(600)');
    expect(answer.structured.outcome).toBe('timeout');
    expect((await other.execute('time.sleep(0.6)', { timeout: 0 })).structured.outcome).toBe('ok');
    expect((await other.execute('time.sleep(0.6)', { timeout: 200 })).structured.outcome).toBe('ok');
    await other.close();
  });

  test('ends the processes that keep code from being interrupted, and variables survive', async () => {
    await agent.execute('kept = 2');
    const answer = await agent.execute('os.system("sleep 600")', { timeout: 0.3 });
    expect(answer.structured).toMatchObject({ outcome: 'timeout', variables_survived: true });
    expect(answer.text).toContain('the processes it had started were ended');
    expect((await agent.execute('kept')).text).toBe('2');
  });

  test('ends the interpreter of code that swallows interrupts and says that variables are lost', async () => {
    await agent.execute('kept = 3');
    const answer = await agent.execute(
      'while True:\n    try:\n        time.sleep(600)\n    except KeyboardInterrupt:\n        print("not me")',
      { timeout: 0.3 },
    );
    expect(answer.structured).toMatchObject({ outcome: 'timeout', variables_survived: false, exit_code: 124 });
    expect(answer.text).toContain('not me');
    expect(answer.text).toContain('did not react to interrupts');
    expect(answer.text).toContain('variables are lost');
    expect((await agent.execute('"kept" in dir()')).text).toBe('False');
    await agent.execute('import time, os, subprocess');
  });
});

describe.each(['legacy', 'modern'] as const)('the caller, in the %s protocol,', (era) => {
  const folder = home.project(era);
  let agent: Agent;
  beforeAll(async () => {
    agent = await startAgent({ home, cwd: folder, era });
    await agent.execute('import time, os');
  });

  test('can cancel a call, which interrupts the code and keeps the variables', async () => {
    await agent.execute('kept = 4');
    const caller = new AbortController();
    const call = agent.execute(`inside = 5\n${TICK('cancelled')}`, {}, { signal: caller.signal });
    await waitFor('the code runs', () => existsSync(join(folder, 'cancelled')));
    caller.abort('enough');
    await expect(call).rejects.toThrow();
    expect((await agent.execute('kept, inside')).text).toBe('(4, 5)');
    await expectStill(join(folder, 'cancelled'));
    const last = (await agent.execute('1')).structured.execution - 2;
    const { structured } = await agent.call('get_output', { execution: last });
    expect(structured).toMatchObject({ outcome: 'cancelled', variables_survived: true, reason: { code: 'cancelled' } });
  });

  test('can cancel a call that waits for its turn, which then never runs', async () => {
    const first = await agent.execute(TICK('first'), { background: true });
    const caller = new AbortController();
    const call = agent.execute('open("never", "w")', {}, { signal: caller.signal });
    await waitFor('the first runs', () => existsSync(join(folder, 'first')));
    caller.abort();
    await expect(call).rejects.toThrow();
    await agent.call('interrupt', { execution: first.structured.execution });
    expect((await agent.execute('os.path.exists("never")')).text).toBe('False');
  });

  test('gets the latest output while the code runs', async () => {
    const told: string[] = [];
    const go = join(folder, 'go-on');
    const answer = agent.execute(
      `print("a" * 1000)\nprint("the last line", flush=True)\nwhile not os.path.exists(r"${go}"): time.sleep(0.01)`,
      {},
      { onprogress: ({ message }) => told.push(message ?? '') },
    );
    await waitFor('progress', () => told.some((message) => message.includes('the last line')));
    for (const message of told) expect(message.length).toBeLessThanOrEqual(400);
    writeFileSync(go, '');
    expect((await answer).text).toContain('the last line');
  });
});

test('a reset while code runs stops it and clears its variables', async () => {
  const { structured } = await agent.execute(`old = 1\n${TICK('reset')}`, { background: true });
  await waitFor('the code runs', () => existsSync(join(cwd, 'reset')));
  expect((await agent.call('reset')).text).toMatch(/^Scope cleared \(\d+ items removed\)$/);
  await expectStill(join(cwd, 'reset'));
  expect((await agent.call('list_vars')).text).toBe('No variables defined');
  expect((await agent.call('get_output', { execution: structured.execution })).structured.state).toBe('done');
  await agent.execute('import time, os, subprocess');
});

describe('a call whose interpreter is still being started', () => {
  // It comes to its end by itself, so that a failure does not take forever.
  const code = 'import time\nfor i in range(200): time.sleep(0.02)\nran = "to its end"\nprint(ran)';

  /** The next call finds it cancelled, and that it did not run to its end. */
  async function expectStopped(other: Agent): Promise<void> {
    expect((await other.execute('"ran" in dir()')).text).toBe('False');
    const { structured } = await other.call('get_output', { execution: 1 });
    expect(structured).toMatchObject({ outcome: 'cancelled', output: expect.not.stringContaining('to its end\n') });
    await other.close();
  }

  test('is stopped when it is interrupted', async () => {
    const other = await startAgent({ home, cwd: home.project() });
    await other.execute(code, { background: true });
    expect((await other.call('interrupt', { execution: 1 })).structured.outcome).toBe('cancelled');
    await expectStopped(other);
  });

  test('is stopped when its caller cancels it', async () => {
    const other = await startAgent({ home, cwd: home.project() });
    const caller = new AbortController();
    const call = other.execute(code, {}, { signal: caller.signal });
    await other.call('get_output', { execution: 1 });
    caller.abort();
    await expect(call).rejects.toThrow();
    await expectStopped(other);
  });

  test('is stopped when the session is reset', async () => {
    const other = await startAgent({ home, cwd: home.project() });
    await other.execute(code, { background: true });
    await other.call('reset');
    await expectStopped(other);
  });
});

describe('in the background,', () => {
  test('a call returns its number at once, and its output is read as it comes', async () => {
    const steps = [0, 1, 2].map((step) => join(cwd, `step${step}`));
    const started = await agent.execute(
      `for number, path in enumerate(${JSON.stringify(steps)}):\n    while not os.path.exists(path): time.sleep(0.01)\n    print(f"line {number}\\n", end="")\nprint("over")`,
      { background: true },
    );
    expect(started.structured).toMatchObject({ outcome: null });
    expect(started.structured.state).not.toBe('done');
    const { execution } = started.structured;
    expect(started.text).toContain(`get_output(execution=${execution})`);
    const read = (args: object) => agent.call('get_output', { execution, ...args });

    for (const [step, path] of steps.entries()) {
      const waiting = read({ wait: 40, offset: step * 7 });
      writeFileSync(path, '');
      const { structured } = await waiting;
      expect(structured.output).toMatch(new RegExp(`^line ${step}\n`));
      if (step < 2) expect(structured).toMatchObject({ state: 'running', next: null, output_length: step * 7 + 7 });
    }
    await waitFor('it ends', async () => (await read({ wait: 30, offset: 26 })).structured.state === 'done');
    expect((await read({})).text).toBe('line 0\nline 1\nline 2\nover');
    expect((await read({ line: 2, lines: 2 })).structured.output).toBe('line 1\nline 2');
    expect((await read({ line: -1 })).structured.output).toBe('over');
    expect((await read({ pattern: '[12]$' })).structured.output).toBe('2: line 1\n3: line 2');
    expect((await read({ offset: -5 })).structured.output).toBe('over\n');
  });

  test('a reader who asks for output that is already there does not wait', async () => {
    const { execution } = (await agent.execute('print("there")\ntime.sleep(600)', { background: true })).structured;
    const read = (args: object) => agent.call('get_output', { execution, ...args });
    await waitFor('output', async () => (await read({})).structured.output_length > 0);
    let isAnswered = false;
    const answer = read({ offset: 0, wait: 50 }).finally(() => {
      isAnswered = true;
    });
    await waitFor('the answer, while nothing new comes', () => isAnswered);
    expect((await answer).structured).toMatchObject({ state: 'running', output: 'there\n' });
  });

  test('a call has no time limit of its own unless it is given one', async () => {
    const { execution } = (await agent.execute('time.sleep(600)', { background: true, timeout: 0.2 })).structured;
    const { structured } = await waitFor('it ends', async () => {
      const answer = await agent.call('get_output', { execution, wait: 30 });
      return answer.structured.state === 'done' && answer;
    });
    expect(structured.outcome).toBe('timeout');
  });

  test('an interrupted call ends, and the next one works', async () => {
    const { execution } = (await agent.execute(TICK('background'), { background: true })).structured;
    await waitFor('the code runs', () => existsSync(join(cwd, 'background')));
    const answer = await agent.call('interrupt');
    expect(answer.structured).toMatchObject({ execution, outcome: 'cancelled', variables_survived: true });
    expect(answer.isError).toBe(false);
    await expectStill(join(cwd, 'background'));
    expect((await agent.call('interrupt', { execution })).text).toContain('had already ended (cancelled)');
    expect((await agent.execute('1')).text).toBe('1');
  });

  test('a waiting call that is interrupted does not run', async () => {
    const first = await agent.execute(TICK('ahead'), { background: true });
    const second = await agent.execute('open("skipped", "w")', { background: true });
    expect(second.structured.state).toBe('queued');
    const answer = await agent.call('interrupt', { execution: second.structured.execution });
    expect(answer.structured).toMatchObject({ outcome: 'cancelled', reason: { code: 'not-started' } });
    expect(answer.text).toContain('did not run');
    await agent.call('interrupt', { execution: first.structured.execution });
    expect((await agent.execute('os.path.exists("skipped")')).text).toBe('False');
  });
});

describe('after a call,', () => {
  test('the processes that it left running are ended and named', async () => {
    const answer = await agent.execute(`
os.system("sleep 311 &")
a = subprocess.Popen(["sleep", "322"])
b = subprocess.Popen(["setsid", "sleep", "333"])
c = subprocess.Popen(["sh", "-c", "sleep 344 & echo > forked; exec sleep 355"], start_new_session=True)
while not os.path.exists("forked"): time.sleep(0.01)
print(a.pid, b.pid, c.pid)`);
    const pids = answer.structured.output.trim().split(' ').map(Number);
    expect(pids).toHaveLength(3);
    for (const pid of pids) await gone(pid);
    const ended = answer.structured.ended_processes.join('; ');
    for (const seconds of [311, 322, 333, 344, 355]) expect(ended).toContain(`sleep ${seconds}`);
    expect(answer.text).toContain('[ended with the call: ');
    expect(answer.structured.outcome).toBe('ok');
    await waitFor('all have ended', () => !processesOf(home.root).some(({ command }) => command.startsWith('sleep')));
  });

  test('endless output has ended it with a reason, and the session goes on', async () => {
    const answer = await agent.execute('kept = 6\nwhile True: print("y" * 99)', { timeout: 200 });
    expect(answer.structured).toMatchObject({
      outcome: 'error',
      variables_survived: true,
      reason: { code: 'output-limit' },
    });
    expect(answer.text).toContain('It printed more than 200,000 characters');
    expect(answer.structured.output_length).toBeGreaterThanOrEqual(200_000);
    expect(answer.structured.output_length).toBeLessThan(225_000);
    expect((await agent.execute('kept')).text).toBe('6');
  });
});
