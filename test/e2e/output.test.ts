/** Checks what code shows: long texts in part and in whole, figures and tables. */

import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Agent, type Answer, startAgent, useHome } from './harness.ts';

const home = useHome();
let agent: Agent;

beforeAll(async () => {
  agent = await startAgent({ home, cwd: home.project() });
});

/** Half of a character that takes two code units. */
const LONE = /\p{Surrogate}/u;

const linksIn = ({ content }: Answer) => content.filter((block) => block.type === 'resource_link');
const imagesIn = ({ content }: Answer) => content.filter((block) => block.type === 'image');

async function readResource(uri: string): Promise<{ text?: string; blob?: string; mimeType?: string }> {
  const { contents } = await agent.client.readResource({ uri });
  expect(contents).toHaveLength(1);
  return contents[0] as { text?: string; blob?: string; mimeType?: string };
}

function sizeOf(base64: string): { width: number; height: number } {
  const bytes = Buffer.from(base64, 'base64');
  expect(bytes.subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
  return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

describe('long output', () => {
  const LINES = 4000;
  // Characters of one, two, three and four bytes: no way of cutting may break one.
  const whole = `${Array.from({ length: LINES }, (_, index) => `line ${index} é€😀😀`).join('\n')}\n`;
  let answer: Answer;
  let execution: number;

  beforeAll(async () => {
    answer = await agent.execute(`for i in range(${LINES}): print(f"line {i} é€😀😀")`);
    execution = answer.structured.execution;
  });
  const read = async (args: Record<string, unknown>) =>
    (await agent.call('get_output', { execution, ...args })).structured;

  test('is cut in the answer, which has both ends and says how to read the rest', () => {
    const { output, output_length: length } = answer.structured;
    expect(length).toBe(whole.length);
    expect(output.length).toBeLessThan(25_200);
    expect(output.startsWith('line 0 é€😀😀\nline 1 ')).toBe(true);
    expect(output.endsWith(`line ${LINES - 1} é€😀😀\n`)).toBe(true);
    expect(output).toMatch(/\n\[… [\d,]+ characters left out …\]\n/);
    expect(answer.text).toContain(`get_output(execution=${execution}`);
    expect(answer.text).toContain(answer.structured.output_file);
    expect(output).not.toMatch(LONE);
  });

  test('is stored whole on the disk', () => {
    expect(readFileSync(answer.structured.output_file, 'utf8')).toBe(whole);
  });

  test('is whole behind its link', async () => {
    const [link] = linksIn(answer);
    expect(link).toMatchObject({ mimeType: 'text/plain' });
    const { text, mimeType } = await readResource(link?.type === 'resource_link' ? link.uri : '');
    expect(mimeType).toBe('text/plain');
    expect(text).toBe(whole);
  });

  test.each([9973, 25_000, 100_000])(
    'that is read by offset in pages of %i is exactly what was printed',
    async (limit) => {
      let text = '';
      let broken = 0;
      for (let next: number | null = 0; next !== null; ) {
        const page: { output: string; next: number | null } = await read({ offset: next, limit });
        text += page.output;
        expect(page.output.length).toBeLessThanOrEqual(limit);
        if (LONE.test(page.output)) broken += 1;
        next = page.next;
      }
      expect(text === whole).toBe(true);
      expect(broken, 'pages that end or begin with half a character').toBe(0);
    },
  );

  test('that is read by lines is exactly what was printed', async () => {
    const lines: string[] = [];
    for (let next: number | null = 1; next !== null; ) {
      const page: { output: string; next: number | null } = await read({ line: next, lines: 700 });
      lines.push(page.output);
      next = page.next;
    }
    expect(`${lines.join('\n')}\n` === whole).toBe(true);
    expect((await read({ line: 2, lines: 2 })).output).toBe('line 1 é€😀😀\nline 2 é€😀😀');
    expect((await read({ line: -2 })).output).toBe(`line ${LINES - 2} é€😀😀\nline ${LINES - 1} é€😀😀`);
  });

  test('is given to its end when its last lines are asked for, or the answer says where to read on', async () => {
    const { output, next } = await read({ line: -100, limit: 1000 });
    expect(output.length).toBeLessThanOrEqual(1000);
    expect(next !== null || output.endsWith(`line ${LINES - 1} é€😀😀`)).toBe(true);
  });

  test('can be searched by pattern', async () => {
    const found = await read({ pattern: '^line (7|3999) ' });
    expect(found.output).toBe('8: line 7 é€😀😀\n4000: line 3999 é€😀😀');
    expect((await read({ pattern: 'absent' })).output).toContain('none of 4000 lines');
    const cut = await read({ pattern: 'line', limit: 1000 });
    expect(cut.output.length).toBeLessThan(1100);
    expect(cut.output).toMatch(/\[\d+ more lines match\]$/);
    const bad = await agent.call('get_output', { execution, pattern: '(' });
    expect(bad.isError).toBe(true);
    expect(bad.text).toContain('not a regular expression');
  });

  test('that is searched by a pattern that takes forever can still be read, and only the search fails', async () => {
    const { structured } = await agent.execute('print("a" * 40_000 + "b")');
    let isOver = false;
    const search = agent.call('get_output', { execution: structured.execution, pattern: '(a+)+$' }).finally(() => {
      isOver = true;
    });
    expect((await agent.execute('"free"')).text).toBe("'free'");
    expect((await read({ offset: 0, limit: 6 })).output).toBe('line 0');
    expect(isOver).toBe(false);
    const answer = await search;
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain('took too long');
  });

  test('of an execution that does not exist is reported as not found', async () => {
    const uri = `cuvette://sessions/${answer.structured.session}/executions/99999/text`;
    await expect(agent.client.readResource({ uri })).rejects.toThrow(/not found/i);
  });
});

describe('short output', () => {
  test('comes in the order in which it was written', async () => {
    const { text } = await agent.execute(
      'import sys, os\nprint("one")\nprint("two", file=sys.stderr)\nos.system("echo three")\nprint("four", end="")\n"five"',
    );
    for (const word of ['one', 'two', 'three', 'four', 'five']) expect(text).toContain(word);
    expect(text.indexOf('one')).toBeLessThan(text.indexOf('three'));
    expect(text.indexOf('three')).toBeLessThan(text.indexOf('four'));
    expect(text.indexOf('four')).toBeLessThan(text.indexOf('five'));
  });

  test('shows a table as text', async () => {
    const answer = await agent.execute('import pandas as pd\npd.DataFrame({"name": ["ann", "bob"], "age": [31, 42]})');
    expect(answer.text).toBe('  name  age\n0  ann   31\n1  bob   42');
    expect(answer.content).toHaveLength(1);
  });

  test('is empty after a semicolon, for None and for an assignment', async () => {
    for (const code of ['1;', 'None', 'x = 1', '', '# only a remark', 'pass'])
      expect((await agent.execute(code)).text, code).toBe('');
  });

  test('includes that of magics and shell commands', async () => {
    expect((await agent.execute('!echo from the shell')).text).toBe('from the shell');
    expect((await agent.execute('%%timeit -n1 -r1\npass')).text).toContain('per loop');
    expect((await agent.execute('await __import__("asyncio").sleep(0, "awaited")')).text).toBe("'awaited'");
  });
});

describe('figures', () => {
  test('come as PNG images without being shown explicitly', async () => {
    const answer = await agent.execute('import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]);');
    const images = imagesIn(answer);
    expect(images).toHaveLength(1);
    expect(images[0]).toMatchObject({ mimeType: 'image/png' });
    const { width, height } = sizeOf(images[0]?.type === 'image' ? images[0].data : '');
    expect(Math.min(width, height)).toBeGreaterThan(100);
    expect(linksIn(answer)).toEqual([]);
    expect(imagesIn(await agent.execute('1'))).toEqual([]);
  });

  test('come in order, and those too many for one answer come as links', async () => {
    const answer = await agent.execute(
      'for i in range(10):\n    plt.figure(figsize=(1, 1)); plt.plot([1, i]); plt.show()',
    );
    expect(imagesIn(answer)).toHaveLength(8);
    expect(linksIn(answer)).toHaveLength(2);
  });

  test('that are huge come scaled, with a link to the original', async () => {
    const answer = await agent.execute('fig = plt.figure(figsize=(40, 40)); plt.plot([1, 2]);');
    const [image] = imagesIn(answer);
    const shown = sizeOf(image?.type === 'image' ? image.data : '');
    expect(Math.max(shown.width, shown.height)).toBeLessThanOrEqual(1568);
    expect(Math.max(shown.width, shown.height)).toBeGreaterThan(1400);
    const [link] = linksIn(answer);
    expect(link).toMatchObject({ mimeType: 'image/png' });
    const { blob, mimeType } = await readResource(link?.type === 'resource_link' ? link.uri : '');
    expect(mimeType).toBe('image/png');
    const original = sizeOf(blob ?? '');
    expect(Math.max(original.width, original.height)).toBeGreaterThan(2000);
  });
});
