/** Runs programs that call the caller's own tools: in rounds, with answers and errors, once, and leaving nothing behind. */

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { allGone, waitFor } from '../harness.ts';
import { type ExecAnswer, ID, ok, type Problem, unusedMark, useService } from './service.ts';

const service = await useService();

interface Answer extends Partial<ExecAnswer> {
  status: 'tool_call_required' | 'completed' | 'error';
  session_id: string;
  continuation_token?: string;
  tool_calls?: { id: string; name: string; input: Record<string, unknown> }[];
  error?: string;
}

type Tools = Record<string, (input: Record<string, unknown>) => unknown>;

const post = async (body: object, headers = {}) =>
  ok(await service.post('/exec/programmatic', body, { headers })).json<Answer>();

const goOn = ({ continuation_token }: Answer, tool_results: object[]) => post({ continuation_token, tool_results });

/** Plays the client: calls the tools of each round, until the program ends. */
async function run(body: Record<string, unknown>, tools: Tools): Promise<{ last: Answer; rounds: string[][] }> {
  const rounds: string[][] = [];
  const described = Object.keys(tools).map((name) => ({ name, description: name, parameters: { type: 'object' } }));
  let answer = await post({ tools: described, timeout: 240_000, ...body });
  while (answer.status === 'tool_call_required' && rounds.length < 20) {
    const calls = answer.tool_calls ?? [];
    rounds.push(calls.map(({ name }) => name));
    answer = await goOn(
      answer,
      calls.map(({ id, name, input }) => {
        try {
          return { call_id: id, result: tools[name]?.(input), is_error: false };
        } catch (error) {
          return { call_id: id, result: null, is_error: true, error_message: String(error) };
        }
      }),
    );
  }
  return { last: answer, rounds };
}

const TOOLS: Tools = {
  add: ({ a, b }) => Number(a) + Number(b),
  echo: (input) => input,
  fail: () => {
    throw new Error('no luck');
  },
};

describe('a bash program', () => {
  const bash = (code: string, tools = TOOLS) => run({ lang: 'bash', code: `: &\nwait "$!"\n${code}` }, tools);

  test('calls tools one after the other, each with the result of the one before', async () => {
    const { last, rounds } = await bash(
      'x=$(add \'{"a":1,"b":2}\'); y=$(add "{\\"a\\":$x,\\"b\\":10}"); echo "$x $y"; for i in 1 2; do add "{\\"a\\":$i,\\"b\\":$y}"; done',
    );
    expect(last).toMatchObject({ status: 'completed', stdout: '3 13\n14\n15\n', stderr: '', files: [] });
    expect(last.session_id).toMatch(ID);
    expect(rounds).toEqual([['add'], ['add'], ['add'], ['add']]);
  });

  test('that calls several tools at once sends the calls together and gets each its own answer', async () => {
    const { last, rounds } = await bash(
      'for i in 1 2 3 4 5; do add "{\\"a\\":$i,\\"b\\":100}" > out$i & done; wait; cat out1 out2 out3 out4 out5; rm out*',
    );
    expect(last.stdout).toBe('101\n102\n103\n104\n105\n');
    expect(rounds.flat()).toEqual(['add', 'add', 'add', 'add', 'add']);
    expect(rounds.length).toBeLessThan(5);
  });

  test('that calls several tools at once does not mix what they print', async () => {
    const { last } = await bash(
      'for i in 1 2 3 4 5 6; do echo "{\\"n\\":$i}" >/dev/null; echo_ "{\\"n\\":$i}" & done; wait',
      {
        echo_: (input) => input,
      },
    );
    expect(last.stdout?.split('\n').sort()).toEqual(['', ...[1, 2, 3, 4, 5, 6].map((n) => `{"n":${n}}`)]);
  });

  test('gets a result as one line of compact JSON, whatever it is', async () => {
    const values = ['text', { a: [1, { b: null }] }, [], 'line\nbreak "quoted" $x `y`', null, 0, false, 'ü🎉'];
    let next = 0;
    const { last } = await bash('for i in $(seq 8); do give "{}"; done', {
      give: () => {
        next += 1;
        return values[next - 1];
      },
    });
    expect(last.stdout).toBe(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
  });

  test('sends the input of a tool as it was written', async () => {
    const { last } = await bash(`echo_ '{"q":"it'\\''s \\"x\\" $HOME \\\\n ü","list":[1,2]}'; echo_ '{}'; echo_`, {
      echo_: (input) => input,
    });
    expect(last.stdout).toBe(
      '{"q":"it\'s \\"x\\" $HOME \\\\n ü","list":[1,2]}\n{}\n{}\n'.replace('\\\\n', '\\n').replace('\\n ü', '\\\\n ü'),
    );
  });

  test('gets the error of a tool on stderr and a failing status from its function', async () => {
    const { last } = await bash(
      'if out=$(fail "{}"); then echo no; else echo "failed: $?[$out]"; fi; add \'{"a":1,"b":1}\'',
    );
    expect(last).toMatchObject({ status: 'completed', stdout: 'failed: 1[]\n2\n' });
    expect(last.stderr).toContain('no luck');
  });

  test('calls tools whose names bash cannot have under names that it can', async () => {
    const tools: Tools = Object.fromEntries(
      ['get-weather', 'web.search', 'my tool', '3d', 'x/y', 'test', 'done'].map((name) => [name, () => name]),
    );
    const { last, rounds } = await bash(
      'get_weather "{}"; web_search "{}"; my_tool "{}"; _3d "{}"; xy "{}"; test_tool "{}"; done_tool "{}"',
      tools,
    );
    expect(last.stderr).toBe('');
    expect(rounds.flat()).toEqual(Object.keys(tools));
    expect(last.stdout).toBe(
      `${Object.keys(tools)
        .map((name) => JSON.stringify(name))
        .join('\n')}\n`,
    );
  });

  test('that fails names the line that its author wrote', async () => {
    const { last } = await run(
      { lang: 'bash', code: 'echo one\nno_such_command\nadd "{}" > /dev/null; exit 4' },
      TOOLS,
    );
    expect(last).toMatchObject({ status: 'completed', stdout: 'one\n', run: { code: 4 } });
    expect(last.stderr).toMatch(/line 2: no_such_command/);
  });

  test('gets a large result whole', async () => {
    const text = 'x'.repeat(1_000_000);
    const { last } = await bash('give "{}" | wc -c; give "{}" | jq -r . | head -c 3 || true', { give: () => text });
    expect(last.stdout).toBe(`${text.length + 3}\nxxx`);
  });
});

describe('a Python program', () => {
  const python = (code: string, tools = TOOLS) => run({ code }, tools);

  test('awaits tools at the top level, one after the other', async () => {
    const { last, rounds } = await python(
      'x = await add(a=1, b=2)\ny = await add(a=x, b=10)\nprint(x, y, type(y).__name__)\nprint(await echo(deep={"a": [1, None, "ü"]}))',
    );
    expect(last).toMatchObject({
      status: 'completed',
      stdout: "3 13 int\n{'deep': {'a': [1, None, 'ü']}}\n",
      stderr: '',
    });
    expect(rounds).toEqual([['add'], ['add'], ['echo']]);
  });

  test('sends the tool calls of a gather in one round', async () => {
    const { last, rounds } = await python(
      'import asyncio\nprint(await asyncio.gather(*(add(a=i, b=1) for i in range(6))))',
    );
    expect(last.stdout).toBe('[1, 2, 3, 4, 5, 6]\n');
    expect(rounds).toEqual([Array(6).fill('add')]);
  });

  test('gets an exception from a tool that fails and may catch it', async () => {
    const { last } = await python(
      'try:\n    await fail()\nexcept Exception as error:\n    print("caught", error)\nawait fail()',
    );
    expect(last).toMatchObject({ status: 'completed', stdout: 'caught Error: no luck\n', run: { code: 1 } });
    expect(last.stderr).toContain('no luck');
  });

  test('calls tools whose names Python cannot have under names that it can', async () => {
    const tools: Tools = { 'get-weather': () => 1, 'my tool': () => 2, class: () => 3, '3d': () => 4 };
    const { last } = await python(
      'print(await get_weather(), await my_tool(), await class_tool(), await _3d())',
      tools,
    );
    expect([last.stdout, last.stderr]).toEqual(['1 2 3 4\n', '']);
  });

  test.each(['py', 'python'])('is meant by the language %s, under either name of the field', async (lang) => {
    for (const field of ['lang', 'language']) {
      const { last } = await run({ [field]: lang, code: 'print(await add(a=1, b=1))' }, TOOLS);
      expect(last.stdout).toBe('2\n');
    }
  });

  test('that fails names the line that its author wrote', async () => {
    const { last } = await python('x = 1\nawait add(a=1, b=1)\n1/0');
    expect(last.stderr).toMatch(/line 3|^-+> 3 1\/0/m);
    expect(last.stderr).not.toContain('_cuvette');
  });
});

describe.each([
  [
    'bash',
    {
      count: 'echo run >> runs; ask "{}" > /dev/null; ask "{}" > /dev/null; echo kept > out.txt; ls -A',
      ask: 'ask "{}"',
      wait: (seconds: number) => `ask "{}" > /dev/null; sleep ${seconds}; echo done`,
      pid: 'echo $$; ask "{}"',
    },
  ],
  [
    'py',
    {
      count:
        'import os\nopen("runs", "a").write("run\\n").real\nawait ask()\nawait ask()\nopen("out.txt", "w").write("kept\\n").real\nprint(*sorted(os.listdir()))',
      ask: 'print(await ask())',
      wait: (seconds: number) => `import time\nawait ask()\ntime.sleep(${seconds})\nprint("done")`,
      pid: 'import os\nprint(os.getpid(), flush=True)\nawait ask()',
    },
  ],
])('a program in %s', (lang, code) => {
  const tools = [{ name: 'ask', description: 'asks', parameters: {} }];
  const first = (program: string, more = {}, headers = {}) => post({ lang, code: program, tools, ...more }, headers);
  const answerTo = (asked: Answer) =>
    goOn(asked, [{ call_id: asked.tool_calls?.[0]?.id, result: 'ok', is_error: false }]);

  test('runs once and leaves nothing in the workspace but what it wrote', async () => {
    const { last, rounds } = await run({ lang, code: code.count, entity_id: `once-${lang}` }, { ask: () => 1 });
    expect(rounds).toHaveLength(2);
    expect(last.files?.map(({ name }) => name).sort()).toEqual(['out.txt', 'runs']);
    expect(last.stderr).toBe('');
    const { stdout, files } = await service.bash('ls -A; cat runs', { entity_id: `once-${lang}` });
    expect([stdout, files.filter(({ inherited }) => !inherited)]).toEqual(['out.txt\nruns\nrun\n', []]);
  });

  test('finds the files that came with it and those of its session', async () => {
    const uploaded = await service.upload('in.txt', 'in');
    const files = [{ id: uploaded.files[0]?.id, session_id: uploaded.session_id, name: 'in.txt' }];
    const program =
      lang === 'bash' ? 'ask "{}" > /dev/null; cat in.txt' : 'await ask()\nprint(open("in.txt").read(), end="")';
    const { last } = await run({ lang, code: program, files }, { ask: () => 1 });
    expect(last.stdout).toBe('in');
  });

  test('has its time limit for its own work alone, not for that of the caller', async () => {
    const asked = await first(code.wait(0.2), { timeout: 6000 });
    await sleep(6500);
    expect(await answerTo(asked)).toMatchObject({ status: 'completed', stdout: 'done\n' });
  });

  test('that takes too long is ended, which is said in words that the client knows', async () => {
    const asked = await first(code.wait(600), { timeout: 1000 });
    const last = await answerTo(asked);
    expect(last).toMatchObject({ status: 'error', error: 'Time limit exceeded' });
  });

  test('cannot be answered under a token that is unknown or used', async () => {
    const unknown = await service.post('/exec/programmatic', { continuation_token: 'x'.repeat(32), tool_results: [] });
    expect([unknown.status, unknown.json<Problem>().code]).toEqual([404, 'unknown_execution']);
    const asked = await first(code.ask);
    expect(await answerTo(asked)).toMatchObject({
      status: 'completed',
      stdout: '"ok"\n'.replaceAll('"', lang === 'py' ? '' : '"'),
    });
    const again = { continuation_token: asked.continuation_token, tool_results: [] };
    expect((await service.post('/exec/programmatic', again)).status).toBe(404);
  });

  test('is ended by the id of its request, while it waits and while it works', async () => {
    const id = crypto.randomUUID();
    const asked = await first(code.pid, {}, { 'x-librechat-code-request-id': id });
    expect(asked.status).toBe('tool_call_required');
    const cancelled = ok(await service.post('/exec/programmatic/cancel', { request_id: id }));
    expect(cancelled.json()).toEqual({ status: 'cancelled' });
    await waitFor('the program is gone', async () => {
      const body = { continuation_token: asked.continuation_token, tool_results: [] };
      return (await service.post('/exec/programmatic', body)).status === 404;
    });

    const other = crypto.randomUUID();
    const mark = unusedMark(service.home);
    const program =
      lang === 'bash'
        ? `touch ${mark.path}; sleep 600`
        : `import time\nopen("${mark.path}", "w").close()\ntime.sleep(600)`;
    const working = first(program, { timeout: 300_000 }, { 'x-librechat-code-request-id': other });
    await waitFor('it works', mark.isThere);
    await service.post('/exec/programmatic/cancel', { request_id: other });
    expect(await working).toMatchObject({ status: 'error', error: 'Execution failed or timed out' });
  });

  test('ends when its caller disconnects', async () => {
    const mark = unusedMark(service.home);
    const seconds = `600.${process.pid}`;
    const program =
      lang === 'bash'
        ? `touch ${mark.path}; exec sleep ${seconds}`
        : `import time\nopen("${mark.path}", "w").close()\ntime.sleep(${seconds})`;
    const abort = new AbortController();
    const call = service.post(
      '/exec/programmatic',
      { lang, code: program, tools, timeout: 300_000, entity_id: `gone-${lang}` },
      { signal: abort.signal },
    );
    await waitFor('it runs', mark.isThere);
    abort.abort();
    await expect(call).rejects.toThrow();
    await allGone(service.home.root, `sleep ${seconds}`);
    // It would come after all of the code before it.
    await service.exec({ lang, code: lang === 'bash' ? 'true' : '1', entity_id: `gone-${lang}` });
  });

  test('without tools runs as any other', async () => {
    for (const none of [[], undefined]) {
      const answer = await post({ lang, code: lang === 'bash' ? 'echo plain' : 'print("plain")', tools: none });
      expect(answer).toMatchObject({ status: 'completed', stdout: 'plain\n' });
    }
  });

  test('does not mix with others that run at once', async () => {
    const programs = [1, 2, 3].map((n) => run({ lang, code: code.ask }, { ask: () => n }));
    const results = await Promise.all(programs);
    expect(results.map(({ last }) => last.stdout)).toEqual(['1\n', '2\n', '3\n']);
  });
});

test('a program request with neither code nor token is refused', async () => {
  expect((await service.post('/exec/programmatic', { tools: [] })).status).toBe(400);
});

test('a cancel request for nothing or without an id does no harm', async () => {
  expect((await service.post('/exec/programmatic/cancel', { request_id: 'nobody' })).status).toBe(200);
  expect((await service.post('/exec/programmatic/cancel', {})).status).toBe(400);
});
