/** Defines how executions and their outputs are told over HTTP: bounded, with what is large left to be fetched by itself. */

import { z } from '@hono/zod-openapi';
import { OUTCOMES } from '../../interpreters/execution-events.ts';
import type { MimeBundle, Output } from '../../interpreters/interpreter.ts';
import { EXECUTION_ORIGINS } from '../../sessions/execution-record.ts';
import { textOf } from '../../sessions/output-text.ts';
import type { SeenSession } from '../../sessions/seen-session.ts';
import type { LargeOutput, PagedExecution } from '../../sessions/session-store.ts';

const index = z.number().nullable().openapi({
  description: 'Its position among the outputs; null if it is not kept there: then its text is in /output alone.',
});
const bundle = z.record(z.string(), z.unknown());
const shown = {
  index,
  display_id: z.string().optional(),
  data: bundle.openapi({ description: 'By media type, what is small.' }),
  large: z
    .record(z.string(), z.number())
    .openapi({ description: 'By media type, about how many bytes can be fetched.' }),
  metadata: bundle,
};

const outputInfo = z
  .discriminatedUnion('type', [
    z.object({ type: z.literal('stream'), index, name: z.enum(['stdout', 'stderr']), text: z.string() }),
    z.object({ type: z.literal('display'), ...shown }),
    z.object({ type: z.literal('result'), ...shown }),
    z.object({
      type: z.literal('error'),
      index,
      ename: z.string(),
      evalue: z.string(),
      traceback: z.array(z.string()),
    }),
  ])
  .openapi('OutputInfo');

export const executionInfo = z
  .object({
    number: z.number(),
    interpreter: z.string(),
    origin: z.enum(EXECUTION_ORIGINS).nullable().openapi({ description: 'By which way it came in.' }),
    code: z.string(),
    state: z.enum(['queued', 'running', 'done']),
    outcome: z.enum(OUTCOMES).nullable(),
    reason: z.object({ code: z.string(), message: z.string() }).nullable(),
    exit_code: z.number().nullable(),
    started_at: z.string().openapi({ format: 'date-time' }),
    wall: z.number().nullable().openapi({ description: 'Seconds.' }),
    cpu: z.number().nullable().openapi({ description: 'Seconds.' }),
    peak: z.number().nullable().openapi({ description: 'Bytes.' }),
    variables_survived: z.boolean(),
    timeout: z.number().nullable().openapi({ description: 'Seconds; null for no limit.' }),
    notes: z.array(z.string()),
    installed: z.array(
      z.object({ module: z.string(), distribution: z.string(), version: z.string(), seconds: z.number() }),
    ),
    text_length: z.number().openapi({ description: 'Characters of text in all.' }),
    output_is_cut: z.boolean().openapi({ description: 'Whether /output has more than stands here.' }),
    outputs: z.array(outputInfo),
  })
  .openapi('ExecutionInfo');

export const executionPage = z.object({ executions: z.array(executionInfo), has_more: z.boolean() });

export type OutputInfo = z.infer<typeof outputInfo>;
export type ExecutionInfo = z.infer<typeof executionInfo>;

/** Characters, as JSON: of one part of an output that stands in an answer; of all parts of an execution; of all of a page. */
const MOST_INLINE = 16 << 10;
const MOST_OF_EXECUTION = 256 << 10;
const MOST_OF_PAGE = 4 << 20;
const MOST_TRACEBACK = 200;

/** The last executions before a number; fewer than asked for where they are large. */
export function toExecutionPage(
  { history }: SeenSession,
  before: number,
  limit: number,
): z.infer<typeof executionPage> {
  const { executions, hasMore } = history.page(before, limit);
  const told: ExecutionInfo[] = [];
  let size = 0;
  for (const execution of executions.reverse()) {
    const info = toExecutionInfo(execution);
    size += JSON.stringify(info).length;
    if (told.length > 0 && size > MOST_OF_PAGE) return { executions: told.reverse(), has_more: true };
    told.push(info);
  }
  return { executions: told.reverse(), has_more: hasMore };
}

export function toExecutionInfo(execution: PagedExecution): ExecutionInfo {
  let room = MOST_OF_EXECUTION;
  const outputs = execution.outputs.map((output, position) => {
    const info = toOutputInfo(output, position, Math.min(MOST_INLINE, room));
    if (info.type === 'display' || info.type === 'result') room -= JSON.stringify(info.data).length;
    return info;
  });
  return { ...toExecutionState(execution), outputs };
}

/** All but the outputs. */
export function toExecutionState(execution: PagedExecution): Omit<ExecutionInfo, 'outputs'> {
  const { exitCode, startedAt, variablesSurvived, textLength } = execution;
  const kept = execution.outputs.reduce((sum, output) => sum + ('sizes' in output ? 0 : textOf(output).length), 0);
  const { number, interpreter, origin, code, state, outcome, reason, wall, cpu, peak, timeout } = execution;
  return {
    ...{ number, interpreter, origin, code, state, outcome, reason, wall, cpu, peak, timeout },
    exit_code: exitCode,
    started_at: new Date(startedAt).toISOString(),
    variables_survived: variablesSurvived,
    notes: execution.notes,
    installed: execution.installed,
    text_length: textLength,
    output_is_cut: kept < textLength,
  };
}

/** `inline`: characters of a part that stand in the answer. */
export function toOutputInfo(output: Output | LargeOutput, position: number | null, inline = MOST_INLINE): OutputInfo {
  const placed = { index: position };
  if (output.type === 'stream') return { ...placed, type: 'stream', name: output.name, text: output.text };
  if (output.type === 'error') {
    const traceback = output.traceback.slice(-MOST_TRACEBACK).map((line) => line.slice(0, MOST_INLINE));
    return { ...placed, type: 'error', ename: output.ename, evalue: output.evalue.slice(0, MOST_INLINE), traceback };
  }
  const id = 'displayId' in output && output.displayId ? { display_id: output.displayId } : {};
  const metadata = JSON.stringify(output.metadata).length <= MOST_INLINE ? output.metadata : {};
  const parts = 'sizes' in output ? sizedParts(output.sizes) : partsOf(output.data, inline);
  return { ...placed, type: output.type, ...id, ...parts, metadata };
}

function partsOf(data: MimeBundle, inline: number): { data: MimeBundle; large: Record<string, number> } {
  const small: MimeBundle = {};
  const large: Record<string, number> = {};
  for (const [type, value] of Object.entries(data)) {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (text.length <= inline && JSON.stringify(value).length <= inline) small[type] = value;
    else large[type] = bytesOf(type, text.length);
  }
  return { data: small, large };
}

function sizedParts(sizes: Record<string, number>): { data: MimeBundle; large: Record<string, number> } {
  const large = Object.entries(sizes).map(([type, characters]) => [type, bytesOf(type, characters)] as const);
  return { data: {}, large: Object.fromEntries(large) };
}

function bytesOf(type: string, characters: number): number {
  return isBase64(type) ? Math.floor((characters * 3) / 4) : characters;
}

/** Whether a part of that type stands in a bundle as base64, as Jupyter has it. */
export function isBase64(type: string): boolean {
  return /^(image\/(?!svg)|audio\/|video\/|application\/pdf$|application\/octet-stream$)/.test(type);
}
