/** The session's own state: `reset`, `list_vars`, `get_session_info`, `export_session`. */

import * as z from 'zod';
import { messageOf } from '../errors.ts';
import { variableSchema } from '../interpreters/interpreter.ts';
import type { Environment } from '../interpreters/python/environment.ts';
import { toNotebook, toScript } from '../sessions/notebook.ts';
import { VERSION } from '../version.ts';
import * as shared from './arguments.ts';
import { defineTool } from './define-tool.ts';
import { writeExport } from './export-file.ts';

export const reset = defineTool({
  name: 'reset',
  title: 'Reset',
  description:
    'Clear all variables, imports and functions of an interpreter: it starts afresh. What runs is stopped. Cannot be undone; files and history stay.',
  input: z.object({ interpreter: shared.interpreter, session: shared.session }),
  output: z.object({ removed: z.number() }),
  annotations: shared.DESTROYS,
  async handler({ interpreter, session }, context) {
    const removed = await context.sessions.get(session).reset(interpreter);
    return { text: `Scope cleared (${removed} item${removed === 1 ? '' : 's'} removed)`, structured: { removed } };
  },
});

export const listVars = defineTool({
  name: 'list_vars',
  title: 'List variables',
  description:
    'Names defined in an interpreter, in alphabetical order; types, shapes and sizes are in the structured answer. Waits for running code.',
  input: z.object({ interpreter: shared.interpreter, session: shared.session }),
  output: z.object({
    variables: z.array(variableSchema),
  }),
  annotations: shared.READS,
  async handler({ interpreter, session }, context) {
    const variables = await context.sessions.get(session).variables(interpreter);
    return { text: variables.map(({ name }) => name).join(', ') || 'No variables defined', structured: { variables } };
  },
});

export const getSessionInfo = defineTool({
  name: 'get_session_info',
  title: 'Session info',
  description:
    'Where this session lives: id, project folder, output folder, bridge socket, agent process, start time, state of the builtin Python environment, and what runs now.',
  input: z.object({ session: shared.session }),
  output: z.object({
    session: z.string(),
    project_directory: z.string(),
    output_directory: z.string(),
    socket_path: z.string().nullable(),
    server_pid: z.number(),
    client_pid: z.number().nullable(),
    started_at: z.string(),
    uptime_seconds: z.number(),
    version: z.string(),
    sandbox: z.string(),
    environment: z.string(),
    executions: z.number(),
    running: z.array(z.number()),
  }),
  annotations: shared.READS,
  async handler({ session }, context) {
    const { sessions } = context;
    const place = sessions.get(session);
    const info = {
      session: place.id,
      // Who has only a workspace here knows it by what code calls it, and has no use for where it is.
      project_directory: place.limits.isShared ? sessions.project : place.project,
      output_directory: place.limits.isShared ? sessions.project : place.folder,
      socket_path: await sessions.socketPath,
      server_pid: process.pid,
      client_pid: sessions.agent?.pid ?? null,
      started_at: new Date(sessions.startedAt).toISOString(),
      uptime_seconds: Math.round((Date.now() - sessions.startedAt) / 1000),
      version: VERSION,
      sandbox: sessions.sandbox,
      environment: await environmentSentence(context.sessions.environment),
      executions: place.size,
      running: place.pending().map(({ record }) => record.number),
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
  description: 'Write the session as a Jupyter notebook with its outputs, or as a Python script. Returns the path.',
  input: z.object({
    format: z.enum(['notebook', 'script']).default('notebook'),
    path: z
      .string()
      .max(4096)
      .optional()
      .describe("File to write, relative to the project; default: the session's output folder."),
    session: shared.session,
  }),
  output: z.object({ path: z.string(), cells: z.number() }),
  annotations: shared.CHANGES,
  async handler({ format, path, session }, context) {
    const place = context.sessions.get(session);
    const records = place
      .history()
      .filter((record) => record.state === 'done' && record.reason?.code !== 'not-started');
    const builtin = (await place.interpreters.list()).find(({ name }) => name === 'builtin');
    const content =
      format === 'notebook'
        ? `${JSON.stringify(toNotebook(records, builtin?.version ?? '3'), null, 1)}\n`
        : toScript(records);
    const usual = format === 'notebook' ? 'session.ipynb' : 'session.py';
    const target = await writeExport(place, context.sessions.project, { path, usual, content });
    return { text: `Wrote ${records.length} cells to ${target}`, structured: { path: target, cells: records.length } };
  },
});

export async function environmentSentence(environment: Environment): Promise<string> {
  const state = await environment.state().catch((error: unknown) => messageOf(error));
  if (typeof state === 'string') return `no Python: ${state}`;
  if (state.phase === 'ready')
    return `ready: Python ${state.python.version} with IPython, numpy, pandas and matplotlib in ${state.folder}`;
  if (state.phase === 'failed') return `plain Python ${state.base.version}: ${state.problem}`;
  return `plain Python ${state.base.version} while the managed environment is being made: ${state.progress}`;
}
