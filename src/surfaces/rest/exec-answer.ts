/**
 * Builds the body of every `/exec*` answer: of an execution that has ended, of a call in a language that is not installed, and of a
 * call that failed after its status was sent. The fields serve all client dialects at once.
 */

import { z } from '@hono/zod-openapi';
import { nanoid } from 'nanoid';
import { CuvetteError } from '../../errors.ts';
import { type EndedRun, endedRun } from '../../interpreters/execution-events.ts';
import type { Logger } from '../../log.ts';
import type { ExecutionRecord } from '../../sessions/execution-record.ts';
import type { FileReference } from '../../sessions/file-references.ts';
import { BUILTIN } from '../../sessions/interpreter-catalog.ts';
import { endsLine, isLong, joinTexts, type Text } from '../../sessions/long-text.ts';
import type { RunningServiceCall } from '../../sessions/service-calls.ts';
import type { SessionChoice, SharedSessions } from '../../sessions/shared-sessions.ts';
import type { OutputFile } from '../../sessions/workspace-files.ts';
import type { Principal } from '../caller.ts';
import { type JsonBody, jsonBody } from '../json-answer.ts';
import { chooseSession, type ExecBody } from './exec-request.ts';
import { explain } from './problem.ts';
import type { Runtimes } from './runtimes.ts';

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

/** The client sees a string; here it may be a text that is too long for memory. */
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
      status: z.string().nullable(),
      ...endedRun.shape,
    }),
    language: z.string(),
    version: z.string(),
    runtime_session_id: z.string().optional(),
    runtime_status: z.enum(['new', 'reused']).optional(),
  })
  .openapi('ExecutionResult');

export type ExecAnswer = z.infer<typeof execAnswer>;

/** What is told of an execution that never began. */
const NEVER_RAN = {
  outcome: 'error' as const,
  signal: null,
  rung: null,
  variables_survived: true,
  notes: [],
  ended_processes: [],
  memory: null,
  cpu_time: null,
  wall_time: null,
};
/** The exit code of a shell for a command that does not exist. */
const COMMAND_NOT_FOUND = 127;
const ID = /^[A-Za-z0-9_-]{21}$/;

/** Waits for the end of a call. */
export async function answerOf(
  call: RunningServiceCall,
  body: Pick<ExecBody, 'runtime_session_hint'>,
  { runtimes }: { runtimes: Runtimes },
): Promise<ExecAnswer> {
  const result = await call.finished;
  const { sharedSession } = call;
  const { record, stdout, files, deleted, problems } = result;
  const stderr = withReason(result.stderr, record);
  const status = statusOf(record);
  return {
    session_id: sharedSession.session.id,
    stdout,
    stderr,
    files: files.map((file) => toFile(file, sharedSession.seen)),
    ...(deleted.length > 0 && { deleted_files: deleted }),
    ...(status === 'OL' && { status }),
    run: {
      stdout,
      stderr,
      output: joinTexts(stdout, stderr),
      status,
      ...toEndedRun(record, problems),
    },
    language: runtimes.languageOf(record.interpreter),
    version: await runtimes.versionOf(record.interpreter),
    ...(body.runtime_session_hint && {
      runtime_session_id: sharedSession.session.id,
      runtime_status: sharedSession.isNew ? ('new' as const) : ('reused' as const),
    }),
  };
}

/** `problems`: what went wrong beside the code. */
function toEndedRun(record: ExecutionRecord, problems: string[]): EndedRun {
  const milliseconds = (seconds: number | null) => (seconds === null ? null : Math.round(seconds * 1000));
  const installed = record.installed.map(({ distribution, version }) => `Installed ${distribution} ${version}.`);
  const notes = [...record.notes, ...installed, ...problems].filter(Boolean);
  return {
    code: record.exitCode,
    signal: record.signal ?? null,
    outcome: record.outcome,
    reason: record.reason?.code ?? null,
    rung: record.rung ?? null,
    variables_survived: record.variablesSurvived,
    message: [...(record.reason ? [record.reason.message] : []), ...notes].join(' ') || null,
    notes,
    ended_processes: record.ended,
    memory: record.peak,
    cpu_time: milliseconds(record.cpu),
    wall_time: milliseconds(record.wall),
  };
}

/** SessionQueue an answer into a body that keeps what the call printed until it is sent. */
export async function bodyOf(call: RunningServiceCall, answer: Promise<object>): Promise<JsonBody> {
  try {
    return jsonBody(await answer, call.printed);
  } catch (error) {
    call.printed.release();
    throw error;
  }
}

/**
 * Answers a call in a language that is not installed as an execution that failed, with status 200: LibreChat shows its model the
 * stderr of an execution, but of an error status either nothing or the whole URL, with the secret in it. Rethrows any other error.
 */
export async function languageRefusal(
  error: unknown,
  body: Pick<ExecBody, 'lang' | 'session_id' | 'entity_id' | 'runtime_session_hint'>,
  principal: Principal,
  { shared, runtimes }: { shared: SharedSessions; runtimes: Runtimes },
): Promise<ExecAnswer & { stderr: string }> {
  if (!(error instanceof CuvetteError) || !(error.code === 'unknown_language' || error.code === 'runtime_missing'))
    throw error;
  const installed = (await runtimes.all()).filter(({ missing }) => missing.length === 0).map(({ lang }) => lang);
  const message = `${error.message} Languages that are here: ${installed.join(', ')}.`;
  const run = { code: COMMAND_NOT_FOUND, status: 'RE', reason: error.code.replaceAll('_', '-'), message };
  return {
    session_id: sessionOf(chooseSession(body, BUILTIN), principal.id, shared),
    ...failedRun(run),
    language: body.lang,
    version: '',
  };
}

/** Answers an error that came after the status 200 was sent. It has no `session_id` if there was no session yet. */
export function lateFailure(error: unknown, call: RunningServiceCall | undefined, log: Logger): object {
  const { code, sentence } = explain(error);
  log[code === 'internal' ? 'error' : 'debug']({ err: error }, 'request failed after its answer had begun');
  const run = { code: 1, status: 'XX', reason: code, message: sentence };
  return { ...(call && { session_id: call.sharedSession.session.id }), ...failedRun(run) };
}

/** The message stands in `stderr`, which every client shows. */
function failedRun(run: { code: number; status: string; reason: string; message: string }) {
  const stderr = `${run.message}\n`;
  return { stdout: '', stderr, files: [], run: { ...NEVER_RAN, stdout: '', stderr, output: stderr, ...run } };
}

/** Returns the session that the call would have run in; the client may go on with it. */
function sessionOf({ alias, id }: SessionChoice, owner: string, shared: SharedSessions): string {
  if (alias !== undefined) return shared.idOf(owner, alias);
  return id && ID.test(id) && shared.mayUse(owner, id) ? id : nanoid();
}

/** Adds why the code ended, unless stderr tells it already, as it does of an exception. */
function withReason(stderr: Text, { reason }: ExecutionRecord): Text {
  if (!reason || reason.code === 'exception' || reason.code === 'exit') return stderr;
  return joinTexts(stderr, `${endsLine(stderr) ? '' : '\n'}${reason.message}\n`);
}

/** Returns the status letters of programming judges: TO, OL, SG, XX, RE. */
function statusOf({ outcome, reason }: ExecutionRecord): string | null {
  if (outcome === 'ok' || outcome === null) return null;
  if (outcome === 'timeout') return 'TO';
  if (reason?.code === 'output-limit') return 'OL';
  return outcome === 'died' ? 'SG' : outcome === 'cancelled' ? 'XX' : 'RE';
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

/** Names the agent or skill that a file belongs to; without it, the client would refer to the file as its user's own. */
function resourceIn({ resource }: FileReference): Partial<z.infer<typeof outputFile>> {
  if (!resource) return {};
  const { kind, id, version } = resource;
  return { kind, resource_id: id, ...(version !== undefined && { version: numberOr(version) }) };
}

/** LibreChat writes versions as numbers. */
function numberOr(text: string): number | string {
  return String(Number(text)) === text ? Number(text) : text;
}
