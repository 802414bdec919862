/** Defines the tools that run code: `execute`, and for an execution that goes on `get_output` and `interrupt`. */

import * as z from 'zod';
import { CuvetteError } from '../errors.ts';
import type { Execution } from '../sessions/execution.ts';
import { readPage, type Selection } from '../sessions/paging.ts';
import { ARGUMENTS, CHANGES, defineTool, READS, RUNS_CODE, type ToolContext } from './define-tool.ts';
import { answerFor, executionOutput, startedAnswer, structuredRecord } from './execution-answer.ts';

const PROGRESS_EVERY = 500;
const PROGRESS_TAIL = 300;
const LONGEST_WAIT = 50;

export const execute = defineTool({
  name: 'execute',
  title: 'Execute code',
  description:
    'Run code in a live session. Python keeps variables between calls, shows the last expression without print and figures as images, and installs missing packages at import. ' +
    'interpreter="bash" keeps variables and folder; node, typescript, go, cpp run whole programs. ' +
    'Processes left behind end with the call. For more than a minute: background=true, then get_output.',
  input: z.object({
    code: z.string().describe('Python, with IPython magics and !shell, unless interpreter says otherwise.'),
    interpreter: ARGUMENTS.interpreter,
    session: ARGUMENTS.session,
    timeout: z
      .number()
      .min(0)
      .max(86_400)
      .optional()
      .describe('Seconds until it is interrupted; 0: none. Default 300, in the background none.'),
    background: z.boolean().default(false).describe('Return at once, with an execution number.'),
  }),
  output: executionOutput,
  annotations: RUNS_CODE,
  async handler({ code, interpreter, session, timeout, background }, context) {
    const request = { session, code, interpreter, origin: context.origin, isStateful: true };
    if (background) {
      const started = await context.sessions.start({ ...request, timeout: timeout ?? 0, isAnnounced: true });
      return startedAnswer(started.execution, session !== undefined);
    }
    const started = await context.sessions.start({ ...request, timeout, signal: context.signal });
    const stop = reportProgress(started.execution, context);
    await started.finished.finally(stop);
    const answer = answerFor(started.execution, started.session.limits.outputLimit);
    if (session !== 'new') return answer;
    return { ...answer, text: [answer.text, `[session ${started.session.id}]`].filter(Boolean).join('\n') };
  },
});

export const getOutput = defineTool({
  name: 'get_output',
  title: 'Read output',
  description:
    'Output of an execution, running or ended: from a character offset, by lines, or the lines that match a pattern.',
  input: z.object({
    execution: z.number().int().positive(),
    session: ARGUMENTS.session,
    offset: z.number().int().optional().describe('First character; negative: from the end.'),
    line: z.number().int().optional().describe('First line, from 1; negative: so many last lines.'),
    lines: z.number().int().positive().max(10_000).default(200).describe('With line: how many.'),
    pattern: z.string().max(1000).optional().describe('Regular expression; gives matching lines, numbered.'),
    limit: z.number().int().positive().max(100_000).optional().describe('Most characters; default 25,000.'),
    wait: z.number().min(0).max(LONGEST_WAIT).default(0).describe('Seconds to wait for more.'),
  }),
  output: executionOutput.extend({ next: z.number().nullable() }),
  annotations: READS,
  async handler({ execution: number, session: id, offset, line, lines, pattern, limit, wait }, context) {
    const { execution, limits } = await context.sessions.use(id, (session) => ({
      execution: session.execution(number),
      limits: session.limits,
    }));
    await newOutput(execution, offset ?? 0, wait * 1000, context.signal);
    const most = limit ?? limits.outputLimit;
    const isWhole = offset === undefined && line === undefined && pattern === undefined;
    if (
      isWhole &&
      execution.record.state === 'done' &&
      execution.transcript.length <= Math.min(most, limits.outputLimit)
    ) {
      const answer = answerFor(execution, most);
      return { ...answer, structured: { ...answer.structured, next: null } };
    }
    const selection: Selection =
      pattern !== undefined
        ? { by: 'pattern', pattern, limit: most }
        : line !== undefined
          ? { by: 'lines', from: line, count: lines, limit: most }
          : { by: 'offset', offset: offset ?? 0, limit: most };
    const page = await readPage(execution.transcript, selection);
    const { record } = execution;
    const status =
      record.state === 'done' ? `${record.outcome}${record.reason ? `: ${record.reason.message}` : ''}` : record.state;
    const unit = selection.by === 'lines' ? 'line' : 'offset';
    const end =
      page.next === null
        ? `end of output so far, at ${execution.transcript.length}`
        : `read on with ${unit}=${page.next}`;
    return {
      text: `${page.text.replace(/\n$/, '')}\n[${status}; ${end}]`.trimStart(),
      structured: {
        ...structuredRecord(record, page.text, execution.transcript.length, record.notes),
        next: page.next,
      },
    };
  },
});

export const interrupt = defineTool({
  name: 'interrupt',
  title: 'Interrupt',
  description:
    'Stop an execution that runs or waits. Variables survive unless the code ignores interrupts for four seconds.',
  input: z.object({
    execution: z.number().int().positive().optional().describe('Default: the one that runs.'),
    session: ARGUMENTS.session,
  }),
  output: executionOutput,
  annotations: CHANGES,
  async handler({ execution: number, session: id }, context) {
    return context.sessions.use(id, async (session) => {
      const pending = session.pending();
      const current = pending.find(({ record }) => record.state === 'running') ?? pending[0];
      const target = number ?? current?.record.number;
      if (target === undefined)
        throw new CuvetteError(
          'unknown_execution',
          'Nothing runs in this session now, so there is nothing to interrupt.',
        );
      const execution = session.execution(target);
      if (execution.record.state === 'done') {
        return {
          text: `Execution ${target} had already ended (${execution.record.outcome}).`,
          structured: structuredRecord(execution.record, '', execution.transcript.length, []),
        };
      }
      session.interrupt(target);
      await execution.done;
      return { ...answerFor(execution, session.limits.outputLimit), isError: false };
    });
  },
});

/** Sends the caller the end of the output as progress while the execution runs; returns how to stop that. */
function reportProgress(execution: Execution, context: ToolContext): () => void {
  let sent = -1;
  const timer = setInterval(() => {
    const { length } = execution.transcript;
    const seconds = Math.round((Date.now() - execution.record.startedAt) / 1000);
    if (length === sent && seconds % 5 !== 0) return;
    sent = length;
    context.progress(execution.transcript.tail(PROGRESS_TAIL).trim() || `running for ${seconds} s`);
  }, PROGRESS_EVERY);
  return () => clearInterval(timer);
}

/** Waits for output after the offset, for the end of the execution, or for so many milliseconds. */
async function newOutput(execution: Execution, offset: number, wait: number, signal: AbortSignal): Promise<void> {
  if (wait === 0 || execution.record.state === 'done' || execution.transcript.length > offset) return;
  await new Promise<void>((resolve) => {
    const finish = () => {
      clearTimeout(timer);
      unwatch();
      resolve();
    };
    const timer = setTimeout(finish, wait);
    const unwatch = execution.onOutput(finish);
    signal.addEventListener('abort', finish, { once: true });
    void execution.done.then(finish);
  });
}
