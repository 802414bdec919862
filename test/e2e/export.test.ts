/** Exports a session as a notebook or a script that others can read and run. */

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, expect, inject, test } from 'vitest';
import { type Agent, startAgent, useHome } from './harness.ts';

interface Notebook {
  cells: {
    cell_type: string;
    source: string[];
    execution_count: number;
    outputs: { output_type: string; name?: string; text?: string[]; ename?: string; data?: Record<string, unknown> }[];
  }[];
}

const CELLS = [
  'import sys\nfirst = 6',
  'print("to out"); print("to err", file=sys.stderr)',
  'first * 7',
  'import pandas as pd\npd.DataFrame({"a": [1, 2]})',
  'import matplotlib.pyplot as plt\nplt.plot([1, 2]);',
  'raise ValueError("é€😀")',
  'print("long " * 10_000)',
];
const home = useHome();
const cwd = home.project();
let agent: Agent;

beforeAll(async () => {
  agent = await startAgent({ home, cwd });
  for (const code of CELLS) await agent.execute(code);
});

const validate = (path: string) =>
  execFileSync(join(inject('tools'), 'bin', 'python'), [
    '-W',
    'error',
    '-c',
    'import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], 4))',
    path,
  ]);

test('an exported notebook is valid and has every cell with what it showed', async () => {
  const { structured, text } = await agent.call('export_session', { path: 'out/session.ipynb' });
  const path = join(cwd, 'out/session.ipynb');
  expect(structured).toEqual({ path, cells: CELLS.length });
  expect(text).toContain(path);
  validate(path);
  const { cells } = JSON.parse(readFileSync(path, 'utf8')) as Notebook;
  expect(cells.map(({ source }) => source.join(''))).toEqual(CELLS);
  expect(cells.map((cell) => cell.execution_count)).toEqual(CELLS.map((_, index) => index + 1));
  const outputs = cells.map((cell) => cell.outputs);
  expect(outputs[0]).toEqual([]);
  expect(outputs[1]).toEqual([
    { output_type: 'stream', name: 'stdout', text: ['to out\n'] },
    { output_type: 'stream', name: 'stderr', text: ['to err\n'] },
  ]);
  expect(outputs[2]).toMatchObject([{ output_type: 'execute_result', data: { 'text/plain': ['42'] } }]);
  expect(Object.keys(outputs[3]?.[0]?.data ?? {})).toEqual(expect.arrayContaining(['text/html', 'text/plain']));
  const png = String(outputs[4]?.[0]?.data?.['image/png']);
  expect(outputs[4]?.[0]?.output_type).toBe('display_data');
  expect(Buffer.from(png, 'base64').subarray(1, 4).toString()).toBe('PNG');
  expect(outputs[5]).toMatchObject([{ output_type: 'error', ename: 'ValueError', evalue: 'é€😀' }]);
  expect(outputs[6]?.[0]?.text?.join('').startsWith('long long ')).toBe(true);
});

test('an export without a path goes to the output folder of the session', async () => {
  const info = (await agent.call('get_session_info')).structured;
  const { path } = (await agent.call('export_session')).structured;
  expect(path).toBe(join(String(info.output_directory), 'session.ipynb'));
  validate(path);
});

test('an exported script has the cells in order and runs', async () => {
  const other = await startAgent({ home, cwd: home.project() });
  const cells = [
    'x = [1]',
    'x.append(2)\nprint("x is", x)',
    'for i in x:\n    print(i)\n',
    'x += [3]',
    'print(sum(x))',
  ];
  let shown = '';
  for (const code of cells) shown += (await other.execute(code)).structured.output;
  const { path } = (await other.call('export_session', { format: 'script', path: 'session.py' })).structured;
  const script = readFileSync(path, 'utf8');
  const places = cells.map((code) => script.indexOf(code.trim()));
  expect(places).toEqual([...places].sort((a, b) => a - b));
  expect(places.every((place) => place >= 0)).toBe(true);
  expect(execFileSync('python3', [path], { encoding: 'utf8' })).toBe(shown);
  await other.close();
});

test('the exports of an empty session and of one that another interpreter ran are valid too', async () => {
  const other = await startAgent({ home, cwd: home.project() });
  validate((await other.call('export_session')).structured.path);
  await other.call('add_interpreter', { name: 'second', python_path: inject('managedPython') });
  await other.execute('"here"', { interpreter: 'second' });
  validate((await other.call('export_session')).structured.path);
  const { path } = (await other.call('export_session', { format: 'script' })).structured;
  expect(readFileSync(path, 'utf8')).toContain('[second]');
  await other.close();
});

test('an export leaves out code that never ran', async () => {
  const other = await startAgent({ home, cwd: home.project() });
  await other.execute('import time');
  const first = await other.execute('time.sleep(600)', { background: true });
  const second = await other.execute('skipped = 1', { background: true });
  await other.call('interrupt', { execution: second.structured.execution });
  await other.call('interrupt', { execution: first.structured.execution });
  await other.execute('ran = 1');
  const { path } = (await other.call('export_session', { format: 'script' })).structured;
  const script = readFileSync(path, 'utf8');
  expect(script).toContain('ran = 1');
  expect(script).not.toContain('skipped');
  await other.close();
});

test('an export to a path that cannot be written is answered with the reason', async () => {
  writeFileSync(join(cwd, 'a-file'), '');
  for (const path of ['a-file/session.ipynb', '/dev/null/session.ipynb', cwd]) {
    const answer = await agent.call('export_session', { path });
    expect(answer.isError).toBe(true);
    expect(answer.text).toContain('cannot be written');
    expect(answer.text).toContain('Give another path');
  }
  expect(existsSync(join(cwd, 'a-file'))).toBe(true);
});
