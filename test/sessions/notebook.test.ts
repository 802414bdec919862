import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import type { ExecutionRecord } from '../../src/sessions/execution-record.ts';
import { toNotebook, toScript } from '../../src/sessions/notebook.ts';
import { makeRecord } from './make-record.ts';

const lines = z.array(z.string());
const bundle = z.record(z.string(), z.unknown());

/** What nbformat 4.5 asks of a notebook with code cells only. */
const notebook = z.strictObject({
  nbformat: z.literal(4),
  nbformat_minor: z.literal(5),
  metadata: z.object({
    kernelspec: z.object({ name: z.string(), display_name: z.string() }),
    language_info: z.object({ name: z.literal('python'), version: z.string() }),
  }),
  cells: z.array(
    z.strictObject({
      cell_type: z.literal('code'),
      id: z.string().regex(/^[a-zA-Z0-9-_]{1,64}$/),
      metadata: bundle,
      execution_count: z.number().int(),
      source: lines,
      outputs: z.array(
        z.discriminatedUnion('output_type', [
          z.strictObject({ output_type: z.literal('stream'), name: z.enum(['stdout', 'stderr']), text: lines }),
          z.strictObject({ output_type: z.literal('display_data'), data: bundle, metadata: bundle }),
          z.strictObject({
            output_type: z.literal('execute_result'),
            execution_count: z.number().int(),
            data: bundle,
            metadata: bundle,
          }),
          z.strictObject({
            output_type: z.literal('error'),
            ename: z.string(),
            evalue: z.string(),
            traceback: lines,
          }),
        ]),
      ),
    }),
  ),
});

const notebookOf = (...records: ExecutionRecord[]) => notebook.parse(toNotebook(records, '3.12.1'));

function outputsOf(record: Partial<ExecutionRecord>) {
  return notebookOf(makeRecord(record)).cells[0]?.outputs;
}

describe('a session exported as a notebook', () => {
  it('has one cell for each execution, in order, numbered as in the session', () => {
    const { cells, metadata } = notebookOf(makeRecord({ number: 3 }), makeRecord({ number: 7, code: 'x = 1\nx\n' }));
    expect(cells.map((cell) => cell.execution_count)).toEqual([3, 7]);
    expect(cells[1]?.source).toEqual(['x = 1\n', 'x\n']);
    expect(metadata.language_info.version).toBe('3.12.1');
  });

  it('has cells with ids that differ, and stay the same when it is written again', () => {
    const records = Array.from({ length: 50 }, (_, index) => makeRecord({ number: index + 1 }));
    const ids = notebookOf(...records).cells.map(({ id }) => id);
    expect(new Set(ids).size).toBe(50);
    expect(notebookOf(...records).cells.map(({ id }) => id)).toEqual(ids);
  });

  it('has source and text as lists of lines that join to the same text', () => {
    for (const code of ['', 'x', 'x\n', '\n\nx\n\n', 'a\r\nb']) {
      const [cell] = notebookOf(makeRecord({ code, outputs: [{ type: 'stream', name: 'stdout', text: code }] })).cells;
      expect(cell?.source.join('')).toBe(code);
      expect(cell?.outputs[0]).toMatchObject({ output_type: 'stream' });
    }
  });

  it('has what was printed by the name of its stream', () => {
    expect(outputsOf({ outputs: [{ type: 'stream', name: 'stderr', text: 'a\nb' }] })).toEqual([
      { output_type: 'stream', name: 'stderr', text: ['a\n', 'b'] },
    ]);
  });

  it('has pictures as base64 in one piece, other text as lines, and JSON as it is', () => {
    const data = { 'image/png': 'AAAA\nBBBB', 'text/html': '<p>\n</p>', 'application/json': { a: [1] } };
    expect(outputsOf({ outputs: [{ type: 'display', data, metadata: { 'image/png': { width: 3 } } }] })).toEqual([
      {
        output_type: 'display_data',
        data: { 'image/png': 'AAAA\nBBBB', 'text/html': ['<p>\n', '</p>'], 'application/json': { a: [1] } },
        metadata: { 'image/png': { width: 3 } },
      },
    ]);
  });

  it('has the last value with the number of its cell', () => {
    expect(outputsOf({ number: 5 })).toEqual([
      { output_type: 'execute_result', execution_count: 5, data: { 'text/plain': ['2'] }, metadata: {} },
    ]);
  });

  it('has errors', () => {
    const error = { ename: 'E', evalue: 'v', traceback: ['one', 'two'] };
    expect(outputsOf({ outputs: [{ type: 'error', ...error }] })).toEqual([{ output_type: 'error', ...error }]);
  });

  it('says where the whole of a long output is', () => {
    expect(outputsOf({ outputs: [], outputFile: '/data/output-1.txt', textLength: 99_000 })).toEqual([
      {
        output_type: 'stream',
        name: 'stderr',
        text: ['[all 99000 characters of output: /data/output-1.txt]\n'],
      },
    ]);
  });

  it('of a session without executions is empty', () => {
    expect(notebookOf().cells).toEqual([]);
  });
});

describe('a session exported as a script', () => {
  it('has each cell under its number, and ends with a line', () => {
    const script = toScript([makeRecord({ code: 'x = 1' }), makeRecord({ number: 2, code: 'x\n\n\n' })]);
    expect(script).toBe('# %% [1]\nx = 1\n\n# %% [2]\nx\n');
  });

  it('says which cells failed, and which ran in another interpreter', () => {
    const script = toScript([
      makeRecord({ outcome: 'error', code: '1/0' }),
      makeRecord({ number: 2, interpreter: '.venv', code: 'y' }),
    ]);
    expect(script).toContain('# %% [1]  (error)\n');
    expect(script).toContain('# %% [2]  [.venv]\n');
  });
});
