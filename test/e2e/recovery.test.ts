/** Kills servers, zygotes and keepers at the worst moment, and checks that sessions go on. */

import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startFakeAgent } from './fake-agent.ts';
import {
  type Agent,
  type Answer,
  differenceOf,
  gone,
  isAlive,
  kill,
  pidsOf,
  runCli,
  startAgent,
  startCli,
  useHome,
  waitFor,
} from './harness.ts';

const home = useHome();

/** Reads an execution until it has ended. */
async function ended(agent: Agent, execution: number): Promise<Answer> {
  return waitFor(`execution ${execution} ends`, async () => {
    const answer = await agent.call('get_output', { execution, wait: 5, offset: 0, limit: 1 });
    return answer.structured.state === 'done' && agent.call('get_output', { execution });
  });
}

/** The whole output of an execution, page by page. */
async function wholeOutput(agent: Agent, execution: number): Promise<string> {
  let text = '';
  for (let next: number | null = 0; next !== null; ) {
    const { structured }: Answer = await agent.call('get_output', { execution, offset: next });
    text += structured.output;
    next = structured.next;
  }
  return text;
}

/** Code that counts until it is told to stop, prints each number with some ballast, and notes in a file how far it is. */
const counting = (cwd: string, ballast: number) => `import itertools, os, time
for i in itertools.count():
    print(f"{i}:" + "x" * ${ballast})
    with open(r"${cwd}/count.new", "w") as file: file.write(str(i))
    os.replace(r"${cwd}/count.new", r"${cwd}/count")
    if os.path.exists(r"${cwd}/stop"): break
    time.sleep(0.02)
finished = i`;
const stopCounting = (cwd: string) => writeFileSync(join(cwd, 'stop'), '');
const countOf = (cwd: string) => {
  const path = join(cwd, 'count');
  return existsSync(path) ? Number(readFileSync(path, 'utf8') || 0) : -1;
};

describe('when the server is killed in the middle of a call,', () => {
  test.each([
    ['little output', 'SIGKILL', 3],
    ['output too long for an answer', 'SIGKILL', 2000],
    ['output too long for an answer', 'SIGTERM', 2000],
  ] as const)('a call with %s goes on after %s, and no character is lost or doubled', async (_, signal, ballast) => {
    const cwd = home.project();
    let agent = await startAgent({ home, cwd });
    await agent.execute('before = "kept"');
    const call = agent.execute(counting(cwd, ballast)).catch(() => 'lost');
    for (const steps of [5, 10, 20]) {
      const start = countOf(cwd);
      await waitFor('it counts', () => countOf(cwd) >= start + steps);
      await agent.kill(signal);
      // It goes on while no server is there.
      const alone = countOf(cwd);
      await waitFor('it counts on', () => countOf(cwd) >= alone + 5);
      agent = await startAgent({ home, cwd });
      const { state, output } = await waitFor('its output', async () => {
        const { structured } = await agent.call('get_output', { execution: 2, limit: 1000 });
        return structured.output_length >= alone * (ballast + 3) && structured;
      });
      expect([state, output.startsWith('0:x')]).toEqual(['running', true]);
    }
    expect(await call).toBe('lost');
    stopCounting(cwd);
    const { structured } = await ended(agent, 2);
    expect(structured).toMatchObject({ outcome: 'ok', execution: 2, variables_survived: true });
    const count = Number((await agent.execute('finished')).text) + 1;
    const expected = Array.from({ length: count }, (_, index) => `${index}:${'x'.repeat(ballast)}\n`).join('');
    expect(differenceOf(await wholeOutput(agent, 2), expected)).toBe('');
    expect(structured.output_length).toBe(expected.length);
    if (structured.output_file) expect(differenceOf(readFileSync(structured.output_file, 'utf8'), expected)).toBe('');
    expect((await agent.execute('before')).text).toBe("'kept'");
    await agent.close();
  });

  test('a call that ended while no server ran is found ended', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    agent.execute(`${counting(cwd, 1)}\nprint("over")\nopen(r"${join(cwd, 'over')}", "w")\n1/0`).catch(() => {});
    await waitFor('it runs', () => countOf(cwd) >= 2);
    await agent.kill();
    stopCounting(cwd);
    await waitFor('it is over', () => existsSync(join(cwd, 'over')));
    const next = await startAgent({ home, cwd });
    const answer = await ended(next, 1);
    expect(answer.structured).toMatchObject({ outcome: 'error', reason: { code: 'exception' } });
    expect(answer.text).toMatch(/^0:x\n1:x\n2:x\n[\s\S]*\nover\n[\s\S]*ZeroDivisionError/);
    expect(Number((await next.execute('finished')).text)).toBeGreaterThanOrEqual(2);
    await next.close();
  });

  test('the call can be interrupted by the next server', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    agent.execute(counting(cwd, 1)).catch(() => {});
    await waitFor('it runs', () => countOf(cwd) >= 2);
    await agent.kill();
    const next = await startAgent({ home, cwd });
    const answer = await next.call('interrupt', { execution: 1 });
    expect(answer.structured).toMatchObject({ outcome: 'cancelled', variables_survived: true });
    expect(Number((await next.execute('i')).text)).toBeGreaterThan(1);
    await next.close();
  });

  test('the answer has both ends of an output that an earlier server received', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    const code = 'import time\nprint("the beginning" + "-" * 60_000 + "the end")\ntime.sleep(600)';
    await agent.execute(code, { background: true });
    await waitFor('its output', async () => {
      return (await agent.call('get_output', { execution: 1, limit: 1 })).structured.output_length > 60_000;
    });
    // Long enough for the server to have noted it down; were it not, the keeper would tell it again.
    await sleep(1000);
    await agent.kill();
    const next = await startAgent({ home, cwd });
    await next.call('get_output', { execution: 1, limit: 1 });
    const { output } = (await next.call('interrupt', { execution: 1 })).structured;
    expect([output.startsWith('the beginning-'), output.includes('-the end\n')]).toEqual([true, true]);
    await next.close();
  });

  test('calls that were waiting are marked as not run', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    const go = join(cwd, 'go-on');
    const first = `import time, os\nprint("first runs")\nwhile not os.path.exists(r"${go}"): time.sleep(0.01)\nprint("first over")`;
    await agent.execute(first, { background: true });
    await waitFor('the first runs', async () => {
      return (await agent.call('get_output', { execution: 1 })).structured.output_length > 0;
    });
    await agent.execute(`open(r"${join(cwd, 'second')}", "w")`, { background: true });
    await agent.execute(`open(r"${join(cwd, 'third')}", "w")`, { background: true });
    await agent.kill();
    const next = await startAgent({ home, cwd });
    await next.call('get_session_info');
    writeFileSync(go, '');
    expect((await ended(next, 1)).text).toBe('first runs\nfirst over');
    for (const execution of [2, 3]) {
      const answer = await ended(next, execution);
      expect(answer.structured).toMatchObject({ outcome: 'cancelled', reason: { code: 'not-started' } });
      expect(answer.text).toContain('did not run');
    }
    expect((await next.execute('os.listdir(".")')).text).not.toMatch(/second|third/);
    await next.close();
  });

  test('a call whose interpreter was not started yet either runs or is marked as not run', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    await agent.execute('print("ran")', { background: true });
    await agent.kill();
    const next = await startAgent({ home, cwd });
    const { structured } = await ended(next, 1);
    if (structured.outcome === 'ok') expect(structured.output).toBe('ran\n');
    else expect(structured).toMatchObject({ outcome: 'cancelled', output: '', reason: { code: 'not-started' } });
    expect((await next.execute('1')).text).toBe('1');
    await next.close();
  });

  test('the shell that waited for the code is told so', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    await agent.execute('1');
    const shell = startCli(['run', '-c', counting(cwd, 1)], { home, cwd });
    await waitFor('it runs', () => shell.stdout().includes('2:x'));
    await agent.kill();
    const { code, stderr } = await shell.done;
    expect(code).not.toBe(0);
    expect(stderr).toMatch(/server/i);
    expect(stderr).not.toMatch(/^\s+at /m);
    stopCounting(cwd);
    const next = await startAgent({ home, cwd });
    expect((await ended(next, 2)).structured.outcome).toBe('ok');
    await next.close();
  });
});

describe('when the server ends between calls', () => {
  test.each(['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
    'by %s, variables, history and files remain',
    async (signal) => {
      const cwd = home.project();
      const agent = await startAgent({ home, cwd });
      await agent.execute('kept = {"a": 1}\ndef double(x): return 2 * x');
      const long = await agent.execute('print("z" * 60_000)');
      const { session } = long.structured;
      await agent.kill(signal);
      const next = await startAgent({ home, cwd });
      expect((await next.execute('double(kept["a"])')).text).toBe('2');
      const info = (await next.call('get_session_info')).structured;
      expect(info).toMatchObject({ session, executions: 3 });
      expect(differenceOf(await wholeOutput(next, 2), `${'z'.repeat(60_000)}\n`)).toBe('');
      expect(statSync(long.structured.output_file).size).toBe(60_001);
      await next.close();
    },
  );

  test('in good order, the agent finds its variables when it starts the next server', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    await agent.execute('kept = 1');
    await agent.close();
    const next = await startAgent({ home, cwd });
    expect((await next.execute('kept')).text).toBe('1');
    await next.close();
  });

  test('together with its agent, the next agent in the folder finds what they had', async () => {
    const cwd = home.project();
    const one = await startFakeAgent(home, cwd);
    await one.tool('execute', { code: 'kept = 2' });
    await one.crash();
    const two = await startFakeAgent(home, cwd);
    expect((await two.tool('execute', { code: 'kept' })).content[0]?.text).toBe('2');
    await two.close();
  });

  test('for longer than interpreters wait, history remains and the loss of variables is reported', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd, args: ['--linger', '1'] });
    await agent.execute('lost = 1');
    const { worker } = await pidsOf(agent);
    await agent.kill();
    await gone(worker);
    const next = await startAgent({ home, cwd });
    const answer = await next.execute('"lost" in dir()');
    expect(answer.text).toMatch(/^False\n\[a fresh interpreter: .* lost\]$/);
    expect((await next.call('get_output', { execution: 1 })).structured.outcome).toBe('ok');
    await next.close();
  });
});

describe('killing', () => {
  test('the zygote lets sessions go on and new ones start', async () => {
    const agent = await startAgent({ home, cwd: home.project() });
    await agent.execute('kept = 3');
    const { zygote, worker } = await pidsOf(agent);
    kill(zygote);
    await gone(zygote);
    expect((await agent.execute('kept')).text).toBe('3');
    expect(isAlive(worker)).toBe(true);
    const other = await startAgent({ home, cwd: home.project() });
    expect((await other.execute('import numpy; 4')).text).toBe('4');
    expect((await agent.call('reset')).text).toMatch(/^Scope cleared/);
    expect((await agent.execute('5')).text).toBe('5');
    await agent.call('stop_interpreter', { name: 'builtin' });
    expect((await agent.execute('6')).text).toContain('6');
    await other.close();
    await agent.close();
  });

  test('the keeper in the middle of a call ends the call, leaves nothing behind, and the next call works', async () => {
    const cwd = home.project();
    const agent = await startAgent({ home, cwd });
    const { keeper, worker } = await pidsOf(agent);
    const call = agent.execute(counting(cwd, 1));
    await waitFor('it runs', () => countOf(cwd) >= 2);
    kill(keeper);
    const answer = await call;
    expect(answer.structured).toMatchObject({
      outcome: 'died',
      variables_survived: false,
      reason: { code: 'interpreter-lost' },
    });
    expect(answer.text).toContain('lost');
    await gone(worker);
    expect((await agent.execute('"i" in dir()')).text).toMatch(/^False/);
    expect((await agent.execute('7')).text).toBe('7');
    await agent.close();
  });

  test('the keeper between calls is reported in the next answer', async () => {
    const agent = await startAgent({ home, cwd: home.project() });
    await agent.execute('lost = 1');
    const { keeper } = await pidsOf(agent);
    kill(keeper);
    await gone(keeper);
    await sleep(200);
    const answer = await agent.execute('"lost" in dir()');
    expect(answer.text).toMatch(/^False\n\[.*lost.*\]$/);
    await agent.close();
  });
});

test('a shell that comes while no server runs finds the next one', async () => {
  const cwd = home.project();
  const agent = await startAgent({ home, cwd });
  await agent.execute('kept = 8');
  await agent.kill();
  const next = await startAgent({ home, cwd });
  await next.execute('1');
  expect((await runCli(['run', '-c', 'kept'], { home, cwd })).stdout).toBe('8\n');
  await next.close();
});
