/** Exports a session as a Jupyter notebook (nbformat 4.5) or as a script. Pure. */

import { createHash } from 'node:crypto';
import type { Output } from '../interpreters/interpreter.ts';
import type { ExecutionRecord } from './execution-record.ts';

export function toNotebook(records: ExecutionRecord[], pythonVersion: string): object {
  return {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {
      kernelspec: { name: 'python3', display_name: 'Python 3', language: 'python' },
      language_info: { name: 'python', version: pythonVersion, file_extension: '.py', mimetype: 'text/x-python' },
    },
    cells: records.map((record) => ({
      cell_type: 'code',
      id: createHash('sha256').update(`${record.session}/${record.number}`).digest('hex').slice(0, 8),
      metadata: { cuvette: { interpreter: record.interpreter, outcome: record.outcome } },
      execution_count: record.number,
      source: lines(record.code),
      outputs: [...record.outputs.map((output) => toCellOutput(output, record.number)), ...cutNotice(record)],
    })),
  };
}

export function toScript(records: ExecutionRecord[]): string {
  return records
    .map((record) => {
      const outcome = record.outcome === 'ok' ? '' : `  (${record.outcome ?? record.state})`;
      const where = record.interpreter === 'builtin' ? '' : `  [${record.interpreter}]`;
      return `# %% [${record.number}]${where}${outcome}\n${record.code.replace(/\n*$/, '\n')}`;
    })
    .join('\n');
}

function toCellOutput(output: Output, number: number): object {
  switch (output.type) {
    case 'stream':
      return { output_type: 'stream', name: output.name, text: lines(output.text) };
    case 'display':
      return { output_type: 'display_data', data: bundle(output.data), metadata: output.metadata };
    case 'result':
      return {
        output_type: 'execute_result',
        execution_count: number,
        data: bundle(output.data),
        metadata: output.metadata,
      };
    case 'error':
      return { output_type: 'error', ename: output.ename, evalue: output.evalue, traceback: output.traceback };
  }
}

/** Text as lists of lines, pictures as base64, JSON as it is. */
function bundle(data: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(data).map(([mime, value]) => [
      mime,
      typeof value === 'string' && !mime.startsWith('image/png') && !mime.startsWith('image/jpeg')
        ? lines(value)
        : value,
    ]),
  );
}

function lines(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function cutNotice(record: ExecutionRecord): object[] {
  if (!record.outputFile) return [];
  return [
    {
      output_type: 'stream',
      name: 'stderr',
      text: [`[all ${record.textLength} characters of output: ${record.outputFile}]\n`],
    },
  ];
}
