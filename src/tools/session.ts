/** Defines the tools for a session's state: `reset`, `list_vars`, `get_session_info`, `export_session`. */

import * as z from 'zod';
import { messageOf } from '../errors.ts';
import { valueViewSchema, variableSchema } from '../interpreters/interpreter.ts';
import type { Environment } from '../interpreters/python/environment.ts';
import { findClientSession } from '../sessions/client-session.ts';
import { toNotebook, toScript } from '../sessions/notebook.ts';
import { VERSION } from '../version.ts';
import { writeExport } from './caller-files.ts';
import { ARGUMENTS, CHANGES, DESTROYS, defineTool, READS } from './define-tool.ts';
import { valueText } from './value-text.ts';

/** Seconds until who looks at a value is told that code still runs. */
const LONGEST_WAIT = 60;

export const reset = defineTool({
  name: 'reset',
  title: 'Reset',
  description: 'Start an interpreter afresh: variables, imports and what runs are gone; files and history stay.',
  input: z.object({ interpreter: ARGUMENTS.interpreter, session: ARGUMENTS.session }),
  output: z.object({ removed: z.number() }),
  annotations: DESTROYS,
  async handler({ interpreter, session: id }, context) {
    const removed = await context.sessions.use(id, (session) => session.reset(interpreter));
    return { text: `Scope cleared (${removed} item${removed === 1 ? '' : 's'} removed)`, structured: { removed } };
  },
});

export const listVars = defineTool({
  name: 'list_vars',
  title: 'List variables',
  description: 'Names defined in an interpreter, sorted, or what one of them holds. Waits for running code.',
  input: z.object({
    interpreter: ARGUMENTS.interpreter,
    session: ARGUMENTS.session,
    details: z.boolean().default(false).describe('With type, shape and size, one a line.'),
    name: z.string().min(1).max(1000).optional().describe("Show its rows or items: df, cfg['a'][0]."),
    offset: z.number().int().min(0).default(0).describe('First row.'),
    limit: z.number().int().min(1).default(20).describe('Rows.'),
  }),
  output: z.object({
    variables: z.array(variableSchema).describe('Empty where a name was given.'),
    value: valueViewSchema.optional(),
  }),
  annotations: READS,
  async handler({ interpreter, session: id, details, name, offset, limit }, context) {
    if (name !== undefined) {
      const waiting = { wait: LONGEST_WAIT, signal: context.signal };
      const request = { path: name, offset, limit };
      const value = await context.sessions.use(id, (session) => session.look(interpreter, request, waiting));
      return { text: valueText(name, value), structured: { variables: [], value } };
    }
    const variables = await context.sessions.use(id, (session) => session.variables(interpreter));
    const text = details ? variables.map(described).join('\n') : variables.map(({ name }) => name).join(', ');
    return { text: text || 'No variables defined', structured: { variables } };
  },
});

export const getSessionInfo = defineTool({
  name: 'get_session_info',
  title: 'Session info',
  description:
    "This session's id, folders, socket, client process and transcript, Python environment, sandbox, what runs now.",
  input: z.object({ session: ARGUMENTS.session }),
  output: z.object({
    session: z.string(),
    project_directory: z.string(),
    output_directory: z.string(),
    socket_path: z.string().nullable(),
    server_pid: z.number(),
    client_pid: z.number().nullable(),
    client_session_id: z.string().optional().describe("Of the agent's own conversation, where it tells."),
    transcript_path: z.string().optional(),
    started_at: z.string(),
    uptime_seconds: z.number(),
    version: z.string(),
    sandbox: z.string(),
    environment: z.string(),
    executions: z.number(),
    running: z.array(z.number()),
  }),
  annotations: READS,
  async handler({ session: id }, context) {
    const { sessions } = context;
    const client = sessions.agent ? findClientSession() : undefined;
    const about = await sessions.use(id, (session) => ({
      session: session.id,
      // A caller of the service knows its workspace only by the path that code sees.
      project_directory: session.limits.isShared ? sessions.project : session.project,
      output_directory: session.limits.isShared ? sessions.project : session.folder,
      executions: session.size,
      running: session.pending().map(({ record }) => record.number),
    }));
    const { executions, running, ...folders } = about;
    const info = {
      ...folders,
      socket_path: await sessions.socketPath,
      server_pid: process.pid,
      client_pid: sessions.agent?.pid ?? null,
      ...(client && { client_session_id: client.id }),
      ...(client?.transcript !== undefined && { transcript_path: client.transcript }),
      started_at: new Date(sessions.startedAt).toISOString(),
      uptime_seconds: Math.round((Date.now() - sessions.startedAt) / 1000),
      version: VERSION,
      sandbox: sessions.sandbox,
      environment: await environmentSentence(context.sessions.environment),
      executions,
      running,
    };
    return {
      text: Object.entries(info)
        .map(([key, value]) => `${key}: ${Array.isArray(value) ? value.join(', ') || 'nothing' : value}`)
        .join('\n'),
      structured: info,
    };
  },
});

export const exportSession = defineTool({
  name: 'export_session',
  title: 'Export session',
  description: 'Write the session as a Jupyter notebook with its outputs, or as a Python script.',
  input: z.object({
    format: z.enum(['notebook', 'script']).default('notebook'),
    path: z.string().max(4096).optional().describe("Relative to the project; default: in the session's output folder."),
    session: ARGUMENTS.session,
  }),
  output: z.object({ path: z.string(), cells: z.number() }),
  annotations: CHANGES,
  async handler({ format, path, session: id }, context) {
    return context.sessions.use(id, async (session) => {
      const records = session
        .history()
        .filter((record) => record.state === 'done' && record.reason?.code !== 'not-started');
      const builtin = (await session.interpreters.list()).find(({ name }) => name === 'builtin');
      const content =
        format === 'notebook'
          ? `${JSON.stringify(toNotebook(records, builtin?.version ?? '3'), null, 1)}\n`
          : toScript(records);
      const usual = format === 'notebook' ? 'session.ipynb' : 'session.py';
      const target = await writeExport(session, context.sessions.project, { path, usual, content });
      const cells = records.length;
      return { text: `Wrote ${cells} cells to ${target}`, structured: { path: target, cells } };
    });
  },
});

function described({ name, type, shape, dtype, length, bytes }: z.infer<typeof variableSchema>): string {
  const size = shape ? ` (${shape.join(', ')})` : length === undefined ? '' : ` [${length}]`;
  const extent = bytes === undefined ? '' : `, ${bytes.toLocaleString('en')} bytes`;
  return `${name}: ${type}${size}${dtype === undefined ? '' : ` ${dtype}`}${extent}`;
}

export async function environmentSentence(environment: Environment): Promise<string> {
  const state = await environment.state().catch((error: unknown) => messageOf(error));
  if (typeof state === 'string') return `no Python: ${state}`;
  if (state.phase === 'ready')
    return `ready: Python ${state.python.version} with IPython, numpy, pandas and matplotlib in ${state.folder}`;
  if (state.phase === 'failed') return `plain Python ${state.base.version}: ${state.problem}`;
  return `plain Python ${state.base.version} while the managed environment is being made: ${state.progress}`;
}
