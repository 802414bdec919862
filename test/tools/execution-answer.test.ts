import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { Output } from '../../src/interpreters/interpreter.ts';
import { createExecution, type Execution } from '../../src/sessions/execution.ts';
import type { ExecutionRecord } from '../../src/sessions/execution-record.ts';
import { openSessionStore } from '../../src/sessions/session-store.ts';
import { answerFor, executionOutput, notesOn, startedAnswer } from '../../src/tools/execution-answer.ts';
import { makeRecord } from '../sessions/make-record.ts';
import { temporaryFolder } from '../temporary-folder.ts';

const LIMIT = 1000;

/** An execution that gave these outputs, as its server holds it. */
function execution(outputs: Output[], different: Partial<ExecutionRecord> = {}): Execution {
  const folder = join(temporaryFolder(), 'data');
  const store = openSessionStore(folder);
  onTestFinished(() => store.close());
  const record = makeRecord({ outputs: [], textLength: 0, ...different });
  const made = createExecution(record, store, { path: join(folder, 'output-1.txt'), limit: LIMIT });
  for (const output of outputs) made.transcript.add(output);
  Object.assign(record, {
    outputs: made.transcript.outputs,
    textLength: made.transcript.length,
    outputFile: made.transcript.file,
  });
  return made;
}

const print = (text: string): Output => ({ type: 'stream', name: 'stdout', text });
const picture = (base64: string, preview?: string): Output => ({
  type: 'display',
  data: { 'image/png': base64, 'text/plain': '<Figure>' },
  metadata: {},
  ...(preview !== undefined && { preview }),
});

describe('the answer to an execution', () => {
  it('is the output alone when there is nothing else to tell', () => {
    const answer = answerFor(execution([print('hello\n')]), LIMIT);
    expect(answer).toMatchObject({ text: 'hello', images: [], links: [], isError: false });
    expect(answer.structured).toMatchObject({ output: 'hello\n', output_length: 6, outcome: 'ok', notes: [] });
  });

  it('fits the schema that the tool promises', () => {
    const answers = [
      answerFor(execution([print('x'.repeat(5000))], { reason: { code: 'exit', message: 'm' } }), LIMIT),
      startedAnswer(execution([], { state: 'running', outcome: null, exitCode: null, wall: null }), false),
    ];
    for (const { structured } of answers) expect(executionOutput.strict().safeParse(structured).error).toBeUndefined();
  });

  it.each(['error', 'timeout', 'cancelled', 'died'] as const)('with the outcome %s is an error', (outcome) => {
    expect(answerFor(execution([], { outcome }), LIMIT).isError).toBe(true);
  });

  it('does not say twice that the code raised', () => {
    const reason = { code: 'exception', message: 'The code raised E.' } as const;
    const error: Output = { type: 'error', ename: 'E', evalue: 'v', traceback: ['E: v'] };
    expect(answerFor(execution([error], { outcome: 'error', reason }), LIMIT).text).toBe('E: v');
  });

  it('says what else happened after the output, each in brackets', () => {
    const answer = answerFor(
      execution([print('out')], {
        outcome: 'timeout',
        reason: { code: 'timeout', message: 'Timed out.' },
        installed: [{ module: 'yaml', distribution: 'pyyaml', version: '6.0', seconds: 1.26 }],
        ended: ['sleep 100'],
        notes: ['a fresh interpreter'],
      }),
      LIMIT,
    );
    expect(answer.text).toBe(
      'out\n[a fresh interpreter]\n[installed pyyaml 6.0 in 1.3 s]\n[Timed out.]\n[ended with the call: sleep 100]',
    );
  });

  it('names five of many processes that ended', () => {
    const notes = notesOn(makeRecord({ ended: ['1', '2', '3', '4', '5', '6', '7'] }), LIMIT);
    expect(notes).toEqual(['ended with the call: 1; 2; 3; 4; 5; and 2 more']);
  });
});

describe('an answer to a long output', () => {
  const text = `first ${'x'.repeat(5000)} last`;

  it('has the first and the last of it, and tells where the rest is', () => {
    const long = execution([print(text)]);
    const answer = answerFor(long, LIMIT);
    expect(answer.text).toMatch(
      /^first x+\n\[… 4,\d+ characters left out …\]\nx+ last\n\[5,011 characters of output in all;/,
    );
    expect(answer.text).toContain('get_output(execution=1,');
    expect(answer.text).toContain(long.record.outputFile ?? 'no file');
    expect(answer.structured).toMatchObject({ output_length: 5011, output_file: long.record.outputFile });
  });

  it('links to the whole of it', () => {
    expect(answerFor(execution([print(text)]), LIMIT).links).toEqual([
      {
        uri: 'cuvette://sessions/session-1/executions/1/text',
        name: 'execution-1.txt',
        mimeType: 'text/plain',
        description: 'The whole output.',
      },
    ]);
  });

  it('is not much longer than the limit', () => {
    const answer = answerFor(execution([print(text)]), LIMIT);
    expect(String(answer.structured.output).length).toBeLessThan(LIMIT + 100);
  });
});

describe('an answer with pictures', () => {
  it('shows them, without the text that stands for them', () => {
    const answer = answerFor(execution([picture('AAAA')]), LIMIT);
    expect(answer).toMatchObject({ text: '', images: [{ mimeType: 'image/png', base64: 'AAAA' }], links: [] });
  });

  it('shows the smaller copy of a large one, and links to the large one', () => {
    const answer = answerFor(execution([print('x'), picture('LARGE', 'SMALL')]), LIMIT);
    expect(answer.images).toEqual([{ mimeType: 'image/png', base64: 'SMALL' }]);
    expect(answer.links).toMatchObject([
      { uri: 'cuvette://sessions/session-1/executions/1/outputs/1', mimeType: 'image/png' },
    ]);
  });

  it('shows eight at most, and links to the others', () => {
    const answer = answerFor(execution(Array.from({ length: 10 }, () => picture('AAAA'))), LIMIT);
    expect(answer.images).toHaveLength(8);
    expect(answer.links?.map(({ name }) => name)).toEqual(['execution-1-output-8', 'execution-1-output-9']);
  });

  it('only links to one that is too large for an answer', () => {
    const answer = answerFor(execution([picture('A'.repeat(4_000_001))]), LIMIT);
    expect(answer.images).toEqual([]);
    expect(answer.links).toHaveLength(1);
  });
});

describe('the answer to a run in the background', () => {
  it('tells how to watch and how to stop it', () => {
    const answer = startedAnswer(execution([], { number: 7, state: 'running', outcome: null }), false);
    expect(answer.text).toContain('get_output(execution=7)');
    expect(answer.text).toContain('interrupt(execution=7)');
    expect(answer.isError).toBeUndefined();
    expect(answer.structured).toMatchObject({ execution: 7, state: 'running', outcome: null });
  });

  it('names the session, where later calls have to', () => {
    const { text } = startedAnswer(execution([], { number: 7, session: 's-1' }), true);
    expect(text).toContain('get_output(execution=7, session="s-1")');
  });
});
