/** Looks at variables of a real session over HTTP: a frame of a million rows, objects whose code is hostile, and code that runs. */

import { describe, expect, test } from 'vitest';
import type { ValueView } from '../../../src/interpreters/interpreter.ts';
import { waitFor } from '../harness.ts';
import { ok, type Problem, useService } from './service.ts';

const service = await useService();

type Table = Extract<ValueView, { kind: 'table' }>;

/** A session in which that has run; `look` looks at a path in it. */
async function sessionWith(code: string) {
  const { session_id: session } = await service.python(code);
  const variables = `/sessions/${session}/interpreters/builtin/variables`;
  const get = (path: string, query = '') => service.get(`${variables}/${encodeURIComponent(path)}?${query}`);
  return {
    session,
    variables,
    get,
    look: async <View extends ValueView = ValueView>(path: string, query?: string) =>
      ok(await get(path, query)).json<View>(),
    run: async (code: string) => (await service.python(code, { session_id: session })).stdout,
  };
}

describe('a look at a variable', () => {
  test('shows a window of a frame of a million rows, sorted and filtered, and stands in no history', async () => {
    const { session, look, run } = await sessionWith(
      'import numpy as np, pandas as pd\nn = 10**6\nbig = pd.DataFrame({"n": np.arange(n), "x": np.arange(n) / 2, "s": ["row"] * n})\n5 * 5',
    );
    const table = await look<Table>('big', 'offset=999998&columns=0:2');
    expect(table).toMatchObject({ row_count: 1_000_000, column_count: 3, index: ['999998', '999999'] });
    expect(table.rows).toEqual([
      [999_998, 499_999],
      [999_999, 499_999.5],
    ]);
    const sorted = await look<Table>('big', 'limit=1&sort=n&desc=1');
    expect(sorted.rows).toEqual([[999_999, 499_999.5, 'row']]);
    const found = await look<Table>('big', 'limit=2&filter=77777');
    expect([found.total_count, found.rows[0]?.[0]]).toEqual([1_000_000, 38_888.5 * 2]);
    expect(await run('print(_)')).toBe('25\n');
    const { executions } = ok(await service.get(`/sessions/${session}/executions`)).json<{ executions: object[] }>();
    expect(executions).toHaveLength(2);
  });

  test('survives objects whose code raises, prints or never ends', async () => {
    const { look, run, get } = await sessionWith(
      `import signal
class Raises:
    def __repr__(self): raise SystemExit
class Prints:
    def __repr__(self): print("printed"); return "prints"
class Endless:
    def __repr__(self):
        while True: pass
class Deaf:
    def __repr__(self):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        while True: pass
things = [Raises(), Prints(), Endless(), Raises()]
deaf = Deaf()`,
    );
    const tree = await look<Extract<ValueView, { kind: 'tree' }>>('things');
    expect(tree.items.map(({ preview }) => preview)).toEqual([
      '<__main__.Raises: its __repr__ raised SystemExit>',
      'prints',
      '<__main__.Endless: showing it took too long>',
      '<__main__.Raises: not shown, because the time was up>',
    ]);
    expect(await run('print(len(things))')).toBe('4\n');
    const refused = await get('deaf');
    expect([refused.status, refused.json<Problem>().code]).toEqual([422, 'unreadable_value']);
    expect(await run('print("things" in dir())')).toBe('False\n');
  });

  test('is refused while code runs, with its number, and the code goes on', async () => {
    const { session, get, look } = await sessionWith('x = 1');
    const started = await service.post(`/sessions/${session}/executions`, {
      code: 'import time, os\nwhile not os.path.exists("go"): time.sleep(0.01)\nx = 2',
    });
    const { execution } = started.json<{ execution: number }>();
    await waitFor('the look is refused', async () => {
      const refused = await get('x', 'wait=0');
      return refused.status === 409 && refused.json<{ execution: number }>().execution === execution;
    });
    await service.send('PUT', `/sessions/${session}/workspace/file?path=go`, { body: 'go' });
    expect(await look('x', 'wait=60')).toMatchObject({ kind: 'text', text: '2' });
  });

  test('completes code, and is without variables after a restart', async () => {
    const { session, variables } = await sessionWith('velocity = 3');
    const at = `/sessions/${session}/interpreters/builtin`;
    const completed = ok(await service.post(`${at}/complete`, { code: '"😀"; velo', cursor: 10 }));
    expect(completed.json()).toEqual({ matches: ['velocity'], start: 6, end: 10 });
    const listed = ok(await service.get(variables)).json<{ variables: { name: string }[] }>();
    expect(listed.variables.map(({ name }) => name)).toEqual(['velocity']);
    expect((await service.send('POST', `${at}/restart`)).status).toBe(204);
    expect(ok(await service.get(variables)).json()).toEqual({ variables: [] });
  });

  test("is not possible in another caller's session, nor of what is not there", async () => {
    const { session, get } = await sessionWith('x = 1');
    const missing = await get('y');
    expect([missing.status, missing.json<Problem>().code]).toEqual([404, 'unknown_variable']);
    const elsewhere = await service.get(`/sessions/${session.replace(/^./, '_')}/interpreters/builtin/variables/x`);
    expect([elsewhere.status, elsewhere.json<Problem>().code]).toEqual([404, 'unknown_session']);
  });
});
