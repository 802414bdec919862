/** Builds a tool's answer about an execution: its text, cut to size, its pictures, and its record. */

import * as z from 'zod';
import type { Execution } from '../sessions/execution.ts';
import type { ExecutionRecord } from '../sessions/execution-record.ts';
import { headAndTail, imageIn } from '../sessions/output-text.ts';
import type { ToolAnswer } from './define-tool.ts';

const MOST_IMAGES = 8;
const LARGEST_IMAGE = 4_000_000;
/** Characters. */
const MOST_HTML = 200_000;

export const executionOutput = z.object({
  session: z.string(),
  execution: z.number(),
  interpreter: z.string(),
  state: z.enum(['queued', 'running', 'done']),
  outcome: z.enum(['ok', 'error', 'timeout', 'cancelled', 'died']).nullable(),
  reason: z.object({ code: z.string(), message: z.string() }).nullable(),
  exit_code: z.number().nullable(),
  variables_survived: z.boolean(),
  wall_seconds: z.number().nullable(),
  cpu_seconds: z.number().nullable(),
  peak_memory_bytes: z.number().nullable(),
  output: z.string(),
  output_length: z.number(),
  output_file: z.string().nullable().describe('The whole output, when it was too long for the answer.'),
  installed: z.array(
    z.object({ module: z.string(), distribution: z.string(), version: z.string(), seconds: z.number() }),
  ),
  ended_processes: z.array(z.string()),
  notes: z.array(z.string()),
});

export function answerFor(execution: Execution, limit: number): ToolAnswer {
  const { record, transcript } = execution;
  const output = visibleText(execution, limit);
  const notes = notesOn(record, limit);
  const text = [output.replace(/\n$/, ''), ...notes.map((note) => `[${note}]`)].filter(Boolean).join('\n');
  const { images, links } = picturesOf(record, execution);
  return {
    text,
    structured: structuredRecord(record, output, transcript.length, notes),
    images,
    shown: tablesOf(execution),
    links: [...links, ...(transcript.file ? [linkToText(record)] : [])],
    isError: record.outcome !== null && record.outcome !== 'ok',
  };
}

/** `isNamed` is set for another session than the default one, which later calls have to name. */
export function startedAnswer(execution: Execution, isNamed: boolean): ToolAnswer {
  const { record } = execution;
  const which = `execution=${record.number}${isNamed ? `, session="${record.session}"` : ''}`;
  const text = `Execution ${record.number} runs in the background. Watch it with get_output(${which}), stop it with interrupt(${which}).`;
  return { text, structured: structuredRecord(record, '', 0, []) };
}

export function structuredRecord(
  record: ExecutionRecord,
  output: string,
  length: number,
  notes: string[],
): Record<string, unknown> {
  return {
    session: record.session,
    execution: record.number,
    interpreter: record.interpreter,
    state: record.state,
    outcome: record.outcome,
    reason: record.reason,
    exit_code: record.exitCode,
    variables_survived: record.variablesSurvived,
    wall_seconds: record.wall,
    cpu_seconds: record.cpu,
    peak_memory_bytes: record.peak,
    output,
    output_length: length,
    output_file: record.outputFile,
    installed: record.installed,
    ended_processes: record.ended,
    notes,
  };
}

/** Returns what the caller should know beside the output, each a short sentence. */
export function notesOn(record: ExecutionRecord, limit: number): string[] {
  const notes = [...record.notes];
  for (const { distribution, version, seconds } of record.installed)
    notes.push(`installed ${distribution} ${version} in ${seconds.toFixed(1)} s`);
  if (record.reason && record.reason.code !== 'exception') notes.push(record.reason.message);
  if (record.ended.length > 0)
    notes.push(
      `ended with the call: ${record.ended.slice(0, 5).join('; ')}${record.ended.length > 5 ? `; and ${record.ended.length - 5} more` : ''}`,
    );
  if (record.textLength > limit) {
    notes.push(
      `${record.textLength.toLocaleString('en')} characters of output in all; read the rest with get_output(execution=${record.number}, offset=… or pattern=…), or in ${record.outputFile}`,
    );
  }
  return notes;
}

function visibleText({ transcript }: Execution, limit: number): string {
  if (transcript.length <= limit) return transcript.head(limit);
  return headAndTail(transcript.head(limit), transcript.tail(limit), transcript.length, limit).text;
}

function picturesOf(
  record: ExecutionRecord,
  { transcript }: Execution,
): { images: NonNullable<ToolAnswer['images']>; links: NonNullable<ToolAnswer['links']> } {
  const images: NonNullable<ToolAnswer['images']> = [];
  const links: NonNullable<ToolAnswer['links']> = [];
  transcript.outputs.forEach((output, index) => {
    if (output.type !== 'display' && output.type !== 'result') return;
    const image = imageIn(output.data);
    if (!image) return;
    const base64 = output.preview ?? image.base64;
    const isShown = images.length < MOST_IMAGES && base64.length <= LARGEST_IMAGE;
    if (isShown) images.push({ mimeType: image.mimeType, base64 });
    if (!isShown || output.preview) {
      links.push({
        uri: `cuvette://sessions/${record.session}/executions/${record.number}/outputs/${index}`,
        name: `execution-${record.number}-output-${index}`,
        mimeType: image.mimeType,
        description: 'The picture at its full size.',
      });
    }
  });
  return { images, links };
}

/** The HTML that it showed, which is mostly tables, as long as it is not too much. */
function tablesOf({ transcript }: Execution): string[] {
  let left = MOST_HTML;
  return transcript.outputs.flatMap((output) => {
    const html = 'data' in output ? output.data['text/html'] : undefined;
    if (typeof html !== 'string' || html.length > left) return [];
    left -= html.length;
    return [html];
  });
}

function linkToText(record: ExecutionRecord) {
  return {
    uri: `cuvette://sessions/${record.session}/executions/${record.number}/text`,
    name: `execution-${record.number}.txt`,
    mimeType: 'text/plain',
    description: 'The whole output.',
  };
}
