/** Checks the calls of one session and of several: their order, their records and how they die. */

import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Agent, childrenOf, isAlive, kill, pidsOf, startAgent, useHome, waitFor } from './harness.ts';

const home = useHome();
let agent: Agent;

beforeAll(async () => {
  agent = await startAgent({ home, cwd: home.project() });
});

describe('when calls come at once,', () => {
  test('ten calls of one session run in order, each with its own output', async () => {
    await agent.execute('seen = []');
    const numbers = Array.from({ length: 10 }, (_, index) => index);
    const answers = await Promise.all(
      numbers.map((index) =>
        agent.execute(
          `import time\nprint("begin", ${index}); time.sleep(0.02); seen.append(${index}); print("end", ${index})`,
        ),
      ),
    );
    expect(answers.map(({ text }) => text)).toEqual(numbers.map((index) => `begin ${index}\nend ${index}`));
    expect((await agent.execute('seen')).text).toBe(`[${numbers.join(', ')}]`);
    const executions = answers.map(({ structured }) => structured.execution);
    expect(executions).toEqual(numbers.map((index) => (executions[0] ?? 0) + index));
  });

  test('two sessions run side by side', async () => {
    const cwd = home.project();
    const other = await startAgent({ home, cwd });
    // Each waits for the other's file: one after the other, neither would come to its end.
    const meet = (mine: string, theirs: string) =>
      `import time, pathlib\npathlib.Path(r"${cwd}/${mine}").touch()\nwhile not pathlib.Path(r"${cwd}/${theirs}").exists(): time.sleep(0.01)\nprint("met")`;
    const answers = await Promise.all([
      agent.execute(meet('a', 'b'), { timeout: 200 }),
      other.execute(meet('b', 'a'), { timeout: 200 }),
    ]);
    expect(answers.map(({ text }) => text)).toEqual(['met', 'met']);
    await agent.execute('mine = 1');
    expect((await other.execute('mine')).text).toContain('NameError');
    await other.close();
  });

  test('two agents in one folder have a session each', async () => {
    const cwd = home.project();
    const [one, two] = [await startAgent({ home, cwd }), await startAgent({ home, cwd })];
    await one.execute('who = "one"');
    await two.execute('who = "two"');
    expect([(await one.execute('who')).text, (await two.execute('who')).text]).toEqual(["'one'", "'two'"]);
    await one.close();
    await two.close();
  });
});

describe('in the records of a session,', () => {
  test('a call that succeeds has its output, exit code, times and memory', async () => {
    const { structured } = await agent.execute('sum(i * i for i in range(300_000))');
    expect(structured).toMatchObject({
      state: 'done',
      outcome: 'ok',
      reason: null,
      exit_code: 0,
      variables_survived: true,
      interpreter: 'builtin',
      output: '8999955000050000\n',
      output_length: 17,
      output_file: null,
      installed: [],
      ended_processes: [],
      notes: [],
    });
    for (const field of ['wall_seconds', 'cpu_seconds', 'peak_memory_bytes'])
      expect(structured[field], field).toBeGreaterThan(0);
    expect(structured.peak_memory_bytes).toBeGreaterThan(10_000_000);
    expect(structured.cpu_seconds).toBeLessThan(60);
  });

  test('an exception has its traceback and leaves the variables', async () => {
    const answer = await agent.execute('def f():\n    raise ValueError("no such thing")\nf()');
    expect(answer.isError).toBe(true);
    expect(answer.structured).toMatchObject({
      outcome: 'error',
      exit_code: 1,
      variables_survived: true,
      reason: { code: 'exception', message: 'The code raised ValueError.' },
    });
    expect(answer.text).toContain('ValueError: no such thing');
    expect(answer.text).toMatch(/line 2.*in f|f\(\)/s);
    expect(answer.text).not.toContain('cuvette_driver');
    expect(answer.text).not.toContain('\u001b[');
  });

  test('a syntax error says where it is', async () => {
    const answer = await agent.execute('x = 1\nfor in range(3): pass');
    expect(answer.text).toContain('SyntaxError');
    expect(answer.text).toContain('for in range(3): pass');
    expect(answer.structured).toMatchObject({ outcome: 'error', reason: { code: 'exception' } });
  });

  test('a call that ends by sys.exit has its status and leaves the variables', async () => {
    const { structured, isError } = await agent.execute('import sys; sys.exit(3)');
    expect(structured).toMatchObject({
      outcome: 'error',
      exit_code: 3,
      variables_survived: true,
      reason: { code: 'exit' },
    });
    expect(isError).toBe(true);
    expect((await agent.execute('sys.exit()')).structured).toMatchObject({ outcome: 'ok', exit_code: 0 });
  });

  test('the list of variables has their types, shapes and sizes', async () => {
    await agent.call('reset');
    await agent.execute(
      'import numpy as np, pandas as pd\ngrid = np.zeros((3, 4)); frame = pd.DataFrame({"a": [1, 2]}); word = "hi"; items = [1, 2, 3]; _hidden = 1',
    );
    const { text, structured } = await agent.call('list_vars');
    expect(text).toBe('_hidden, frame, grid, items, np, pd, word');
    const named = Object.fromEntries(structured.variables.map((variable) => [variable.name, variable]));
    expect(named.grid).toMatchObject({ type: 'numpy.ndarray', shape: [3, 4], dtype: 'float64', bytes: 96 });
    expect(named.frame).toMatchObject({ shape: [2, 1], type: expect.stringContaining('DataFrame') });
    expect(named.frame?.bytes).toBeGreaterThan(15);
    expect(named.word).toMatchObject({ type: 'str', length: 2, preview: "'hi'" });
    expect(named.items).toMatchObject({ type: 'list', length: 3 });
    expect(named.np).toMatchObject({ type: 'module' });
  });
});

describe('an interpreter', () => {
  test.each([
    ['os._exit(9)', 'import os; os._exit(9)', { code: 'process-exit' }, 9, 'exit status 9'],
    ['a segmentation fault', 'import ctypes; ctypes.string_at(0)', { code: 'signal' }, 139, 'SIGSEGV'],
    ['a SIGKILL to itself', 'import os; os.kill(os.getpid(), 9)', { code: 'signal' }, 137, 'SIGKILL'],
    ['an abort', 'import os; os.abort()', { code: 'signal' }, 134, 'SIGABRT'],
  ])(
    'that dies of %s ends the call with a reason, and the next call works',
    async (_, code, reason, exitCode, named) => {
      await agent.execute('doomed = 1');
      const answer = await agent.execute(`print("last words", flush=True)\n${code}`);
      expect(answer.structured).toMatchObject({
        outcome: 'died',
        variables_survived: false,
        exit_code: exitCode,
        reason,
      });
      expect(answer.text).toContain('last words');
      expect(answer.text).toContain(named);
      expect(answer.text).toContain('variables are lost');
      expect(answer.isError).toBe(true);
      expect((await agent.execute('"doomed" in dir()')).text).toBe('False');
    },
  );

  test('that dies between calls is reported in the next answer, once', async () => {
    await agent.execute('doomed = 1');
    const { worker, keeper } = await pidsOf(agent);
    kill(worker);
    await waitFor('its keeper has another', () => childrenOf(keeper).some((pid) => pid !== worker && isAlive(pid)));
    await sleep(200);
    const answer = await agent.execute('"doomed" in dir()');
    expect(answer.text).toMatch(/^False\n\[.*died between calls \(SIGKILL\).*lost/);
    expect(answer.isError).toBe(false);
    expect((await agent.execute('1')).text).toBe('1');
  });

  test('that dies at the very moment of a call is reported in its answer too', async () => {
    for (let round = 0; round < 10; round++) {
      await agent.execute('doomed = 1');
      const { worker } = await pidsOf(agent);
      kill(worker);
      const { text, structured } = await agent.execute('print("doomed" in dir())');
      expect(text).toContain('lost');
      expect(text).toContain('SIGKILL');
      if (structured.outcome === 'ok') expect(structured.output).toBe('False\n');
      else expect(structured).toMatchObject({ outcome: 'died', variables_survived: false });
    }
  });

  test('lets threads of an ended call go on without mixing into the next answer', async () => {
    await agent.execute(
      'import threading, time\nstop = False\ndef work():\n    while not stop: print("thread", flush=True); time.sleep(0.01)\nthreading.Thread(target=work, daemon=True).start()\ntime.sleep(0.05)',
    );
    await sleep(100);
    expect((await agent.execute('stop = True; time.sleep(0.1)')).structured.outcome).toBe('ok');
    expect((await agent.execute('"own"')).text).toBe("'own'");
  });
});

describe('a call', () => {
  test('in an unknown session is answered with what to do', async () => {
    const answer = await agent.execute('1', { session: 'nobody' });
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain('There is no session nobody');
    expect(answer.text).toContain('get_session_info');
    expect(answer.structured).toMatchObject({ error: { code: 'unknown_session' } });
  });

  test('with an unknown interpreter is answered with the names of those that exist', async () => {
    const answer = await agent.execute('1', { interpreter: 'nothing' });
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain('There is no interpreter named nothing');
    expect(answer.text).toContain('builtin');
    expect(answer.text).toContain('add_interpreter');
    for (const tool of ['list_vars', 'reset'])
      expect((await agent.call(tool, { interpreter: 'nothing' })).text).toContain(
        'There is no interpreter named nothing',
      );
  });

  test('about an unknown execution is answered with the number of the last one', async () => {
    const last = (await agent.execute('1')).structured.execution;
    for (const tool of ['get_output', 'interrupt']) {
      const answer = await agent.call(tool, { execution: 99_999 });
      expect(answer.isError).toBe(true);
      expect(answer.text).toContain(`has no execution 99999; its last one is ${last}`);
    }
    expect((await agent.call('interrupt')).text).toContain('nothing to interrupt');
  });

  test('with arguments that make no sense is refused with their names', async () => {
    const refused = (tool: string, args: Record<string, unknown>) =>
      agent.call(tool, args).then(
        ({ isError, text }) => (isError ? text : ''),
        (error: Error) => error.message,
      );
    expect(await refused('execute', {})).toContain('code');
    expect(await refused('execute', { code: '1', timeout: -1 })).toContain('timeout');
    expect(await refused('get_output', { execution: 'one' })).toContain('execution');
    expect((await agent.execute('1')).text).toBe('1');
  });
});
