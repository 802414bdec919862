/** Checks that output that is read again later is what was shown, however it came. */

import { beforeAll, expect, test } from 'vitest';
import { type Agent, differenceOf, startAgent, useHome } from './harness.ts';

const home = useHome();
let agent: Agent;

beforeAll(async () => {
  agent = await startAgent({ home, cwd: home.project(), args: ['--output-limit', '100000'] });
});

/** Reads page by page, as the answers say, for no more pages than there can be. */
async function readAgain(reader: Agent, execution: number, limit: number, length: number): Promise<string> {
  let text = '';
  let next: number | null = 0;
  for (let page = 0; next !== null; page++) {
    if (page > length / limit + 2) throw new Error(`no end: next is ${next} of ${length} after ${page} pages`);
    const { structured }: { structured: { output: string; next: number | null } } = await reader.call('get_output', {
      execution,
      offset: next,
      limit,
    });
    text += structured.output;
    next = structured.next;
  }
  return text;
}

test.each([
  ['one print', 'print("one")', 'one\n'],
  [
    'both streams by turns',
    'import sys\nfor i in range(600):\n    print("out", i); print("err", i, file=sys.stderr)',
    Array.from({ length: 600 }, (_, i) => `out ${i}\nerr ${i}\n`).join(''),
  ],
  ['almost as much as an answer may have', 'print("-" * 90_000 + "end")', `${'-'.repeat(90_000)}end\n`],
  ['more than an answer may have', 'print("-" * 110_000 + "end")', `${'-'.repeat(110_000)}end\n`],
  [
    'values among prints',
    'for i in range(700):\n    print(i); display(str(i))',
    Array.from({ length: 700 }, (_, i) => `${i}\n'${i}'\n`).join(''),
  ],
])('output that is read again later is what was shown (%s)', async (_, code, expected) => {
  const answer = await agent.execute(code);
  if (expected.length < 100_000) expect(differenceOf(answer.structured.output, expected)).toBe('');
  const { execution } = answer.structured;
  expect(answer.structured.output_length).toBe(expected.length);
  expect(differenceOf(await readAgain(agent, execution, 30_000, expected.length), expected)).toBe('');
  if (expected.length < 100_000)
    expect(differenceOf((await agent.call('get_output', { execution })).structured.output, expected)).toBe('');
});

test('output with displays that were updated can be read again to its end', async () => {
  const answer = await agent.execute(
    'from IPython.display import display\nhandle = display("first", display_id=True)\nfor i in range(20): handle.update("update %d" % i)\nprint("over")',
  );
  const { execution, output_length: length } = answer.structured;
  expect(answer.text).toContain('over');
  const again = await readAgain(agent, execution, 1000, length);
  expect(again).toContain('update 19');
  expect(again.endsWith('over\n')).toBe(true);
});

test('the pictures of an earlier call can be read again', async () => {
  const shown = await agent.execute('import matplotlib.pyplot as plt\nplt.plot([1, 2]);');
  const again = await agent.call('get_output', { execution: shown.structured.execution });
  expect(again.content.filter(({ type }) => type === 'image')).toEqual(
    shown.content.filter(({ type }) => type === 'image'),
  );
  expect(again.content.some(({ type }) => type === 'image')).toBe(true);
});
