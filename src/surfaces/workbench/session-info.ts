/** Defines how sessions and their interpreters are told over HTTP. */

import { z } from '@hono/zod-openapi';
import { CuvetteError } from '../../errors.ts';
import { languageNamed } from '../../interpreters/process/languages.ts';
import type { InterpreterListing } from '../../sessions/interpreter-catalog.ts';
import type { SeenSession } from '../../sessions/seen-session.ts';
import type { Session } from '../../sessions/session.ts';
import type { Sessions } from '../../sessions/sessions.ts';

const time = z.string().openapi({ format: 'date-time' });

export const sessionInfo = z
  .object({
    id: z.string(),
    names: z.array(z.string()).openapi({ description: 'What its caller calls it: `entity_id` and other names.' }),
    created_at: time,
    used_at: time,
    is_live: z
      .boolean()
      .openapi({ description: 'Whether it is open, with its variables; others are history and files.' }),
    executions: z.number().openapi({ description: 'How many there have been.' }),
    running: z.number().nullable().openapi({ description: 'The number of the execution that runs.' }),
    queued: z.number(),
    is_default: z.boolean().openapi({ description: 'Whether calls that name no session use it.' }),
  })
  .openapi('SessionInfo');

export const interpreterInfo = z
  .object({
    name: z.string(),
    kind: z.enum(['python', 'program', 'remote']),
    title: z.string(),
    language: z.string().openapi({ example: 'python', description: 'For an editor.' }),
    version: z.string().nullable(),
    state: z.enum(['running', 'idle', 'not started']),
    is_stateful: z.boolean().openapi({ description: 'Whether it keeps variables between executions.' }),
    pid: z.number().nullable(),
  })
  .openapi('InterpreterInfo');

export const sessionDetails = sessionInfo
  .extend({
    interpreters: z.array(interpreterInfo),
    limits: z.object({
      timeout: z.number().openapi({ description: 'Seconds; 0: none.' }),
      max_output: z.number().openapi({ description: 'Characters.' }),
    }),
    sandbox: z.string(),
    workspace: z.string().openapi({ description: 'The folder, as code sees it.' }),
  })
  .openapi('SessionDetails');

export type SessionInfo = z.infer<typeof sessionInfo>;

/** In place of an id: the session of calls that name none. */
const DEFAULT = 'default';
const EDITOR_LANGUAGES: Record<string, string> = { bash: 'shell', node: 'javascript' };

/** The id that a path names; undefined for the default session. */
export function idIn(path: string): string | undefined {
  return path === DEFAULT ? undefined : path;
}

export function seenSession(sessions: Sessions, path: string): SeenSession {
  const seen = sessions.look(idIn(path));
  if (seen) return seen;
  throw new CuvetteError('unknown_session', `There is no session ${path}. GET /sessions lists those that there are.`);
}

export function toSessionInfo({ live, ...seen }: SeenSession): SessionInfo {
  const states = (live?.pending() ?? []).map(({ record }) => record);
  return {
    id: seen.id,
    names: seen.names,
    created_at: new Date(seen.createdAt).toISOString(),
    used_at: new Date(seen.usedAt).toISOString(),
    is_live: live !== undefined,
    executions: seen.executions,
    running: states.find(({ state }) => state === 'running')?.number ?? null,
    queued: states.filter(({ state }) => state === 'queued').length,
    is_default: seen.isDefault,
  };
}

export async function interpretersOf(session: Session): Promise<z.infer<typeof interpreterInfo>[]> {
  const busy = session.pending().flatMap(({ record }) => (record.state === 'running' ? [record.interpreter] : []));
  return (await session.interpreters.list()).map((one) => toInterpreterInfo(one, busy));
}

function toInterpreterInfo(one: InterpreterListing, busy: string[]): z.infer<typeof interpreterInfo> {
  const language = languageNamed(one.name);
  const kind = language ? 'program' : one.source === 'lab' ? 'remote' : 'python';
  return {
    name: one.name,
    kind,
    title: one.description ?? (one.name === 'builtin' ? 'Python' : one.name),
    language: language ? (EDITOR_LANGUAGES[one.name] ?? one.name) : 'python',
    version: one.version,
    state: one.state !== 'running' ? 'not started' : busy.includes(one.name) ? 'running' : 'idle',
    is_stateful: language === undefined || one.name === 'bash',
    pid: one.pid,
  };
}
