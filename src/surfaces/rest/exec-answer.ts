/** What a caller is told of an execution, in the words of every dialect at once. */

import { z } from '@hono/zod-openapi';
import type { ExecutionRecord } from '../../sessions/execution-record.ts';
import type { FileReference } from '../../sessions/file-references.ts';
import { endsLine, isLong, joinTexts, type Text } from '../../sessions/long-text.ts';
import type { RunningServiceCall, ServiceCallResult } from '../../sessions/service-calls.ts';
import type { OutputFile } from '../../sessions/workspace-files.ts';

const outputFile = z
  .object({
    id: z.string(),
    name: z.string(),
    session_id: z.string(),
    storage_session_id: z.string(),
    path: z.string(),
    size: z.number(),
    inherited: z.literal(true).optional(),
    kind: z.enum(['agent', 'skill']).optional(),
    resource_id: z.string().optional(),
    version: z.union([z.number(), z.string()]).optional(),
  })
  .openapi('OutputFile');

/** A string to who reads it, however long it is. */
const text = z.custom<Text>((value) => typeof value === 'string' || isLong(value)).openapi({ type: 'string' });

export const execAnswer = z
  .object({
    session_id: z.string(),
    stdout: text,
    stderr: text,
    files: z.array(outputFile),
    deleted_files: z.array(z.string()).optional(),
    status: z.string().optional(),
    run: z.object({
      stdout: text,
      stderr: text,
      output: text,
      code: z.number().nullable(),
      signal: z.string().nullable(),
      status: z.string().nullable(),
      reason: z
        .string()
        .nullable()
        .openapi({ description: 'Why it did not end well, in a word: `timeout`, `oom`, `disk-quota`, …' }),
      message: z.string().nullable(),
      memory: z.number().nullable().openapi({ description: 'Bytes, at the most.' }),
      cpu_time: z.number().nullable().openapi({ description: 'Milliseconds.' }),
      wall_time: z.number().nullable().openapi({ description: 'Milliseconds.' }),
    }),
    language: z.string(),
    version: z.string(),
    runtime_session_id: z.string().optional(),
    runtime_status: z.enum(['new', 'reused']).optional(),
  })
  .openapi('ExecutionResult');

export type ExecAnswer = z.infer<typeof execAnswer>;

export function toAnswer(
  call: RunningServiceCall,
  result: ServiceCallResult,
  about: { language: string; version: string; isHinted: boolean },
): ExecAnswer {
  const { sharedSession } = call;
  const { record, stdout, files, deleted, problems } = result;
  const stderr = withReason(result.stderr, record);
  const status = statusOf(record);
  const milliseconds = (seconds: number | null) => (seconds === null ? null : Math.round(seconds * 1000));
  const message = [record.reason?.message, ...record.notes, ...installedNotes(record), ...problems].filter(Boolean);
  return {
    session_id: sharedSession.session.id,
    stdout,
    stderr,
    files: files.map((one) => toFile(one, sharedSession.seen)),
    ...(deleted.length > 0 && { deleted_files: deleted }),
    ...(status === 'OL' && { status }),
    run: {
      stdout,
      stderr,
      output: joinTexts(stdout, stderr),
      code: record.exitCode,
      signal: signalOf(record),
      status,
      reason: record.reason?.code ?? null,
      message: message.join(' ') || null,
      memory: record.peak,
      cpu_time: milliseconds(record.cpu),
      wall_time: milliseconds(record.wall),
    },
    language: about.language,
    version: about.version,
    ...(about.isHinted && {
      runtime_session_id: sharedSession.session.id,
      runtime_status: sharedSession.isNew ? 'new' : 'reused',
    }),
  };
}

/** Anything that its author should learn and that is not an exception, whose text is there already. */
function withReason(stderr: Text, { reason }: ExecutionRecord): Text {
  if (!reason || reason.code === 'exception' || reason.code === 'exit') return stderr;
  return joinTexts(stderr, `${endsLine(stderr) ? '' : '\n'}${reason.message}\n`);
}

function installedNotes({ installed }: ExecutionRecord): string[] {
  return installed.map(({ distribution, version }) => `Installed ${distribution} ${version}.`);
}

/** In the letters that judges of programs use. */
function statusOf({ outcome, reason }: ExecutionRecord): string | null {
  if (outcome === 'ok' || outcome === null) return null;
  if (outcome === 'timeout') return 'TO';
  if (reason?.code === 'output-limit') return 'OL';
  return outcome === 'died' ? 'SG' : outcome === 'cancelled' ? 'XX' : 'RE';
}

function signalOf({ reason, exitCode }: ExecutionRecord): string | null {
  const named = /SIG[A-Z0-9]+/.exec(reason?.code === 'signal' ? reason.message : '')?.[0];
  return named ?? (exitCode === 137 ? 'SIGKILL' : null);
}

function toFile({ file, name, inherited }: OutputFile, seen: string): z.infer<typeof outputFile> {
  return {
    id: file.id,
    name,
    session_id: file.session,
    storage_session_id: file.session,
    path: `${seen}/${name}`,
    size: file.size,
    ...(inherited && { inherited: true as const, ...resourceIn(inherited) }),
  };
}

/** Without it, the client would take the file for its user's own, and refer to it as such. */
function resourceIn({ resource }: FileReference): Partial<z.infer<typeof outputFile>> {
  if (!resource) return {};
  const { kind, id, version } = resource;
  return { kind, resource_id: id, ...(version !== undefined && { version: numberOr(version) }) };
}

/** LibreChat's versions are numbers. */
function numberOr(text: string): number | string {
  return String(Number(text)) === text ? Number(text) : text;
}
