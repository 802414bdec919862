/** Interpreters of the user's own: `add_interpreter`, `stop_interpreter`, `list_interpreters`. */

import * as z from 'zod';
import type { InterpreterListing } from '../sessions/interpreter-catalog.ts';
import * as shared from './arguments.ts';
import { defineTool } from './define-tool.ts';

const listing = z.object({
  name: z.string(),
  source: z.enum(['builtin', 'saved', 'transient', 'discovered', 'lab']),
  state: z.enum(['running', 'stopped']),
  python_path: z.string().nullable(),
  version: z.string().nullable(),
  cwd: z.string(),
  pid: z.number().nullable(),
  started_at: z.string().nullable(),
  uptime_seconds: z.number().nullable(),
  has_startup_script: z.boolean(),
  description: z.string().nullable(),
});

export const addInterpreter = defineTool({
  name: 'add_interpreter',
  title: 'Add interpreter',
  description:
    "Add and start a Python of the project's own, with the packages that it has. save=true keeps it for later sessions.",
  input: z.object({
    name: z.string().min(1).max(100),
    python_path: z.string().min(1).max(4096).describe('As in .venv/bin/python; relative to the project.'),
    cwd: z.string().max(4096).optional(),
    env: z.record(z.string(), z.string()).default({}),
    startup_script: z.string().optional().describe('Python that runs before the first call.'),
    description: z.string().max(500).optional(),
    save: z.boolean().default(false),
    session: shared.session,
  }),
  output: listing,
  annotations: { ...shared.CHANGES, openWorldHint: true },
  async handler(args, context) {
    const wanted = {
      name: args.name,
      python: args.python_path,
      cwd: args.cwd ?? null,
      env: args.env,
      startup: args.startup_script ?? null,
      description: args.description ?? null,
      saved: args.save,
    };
    const added = await context.sessions.use(args.session, ({ interpreters }) => interpreters.add(wanted));
    return { text: sentence(added), structured: structured(added) };
  },
});

export const stopInterpreter = defineTool({
  name: 'stop_interpreter',
  title: 'Stop interpreter',
  description:
    'Stop an interpreter; its variables are lost. It starts again on the next execute; remove=true forgets a saved one.',
  input: z.object({ name: z.string().min(1).max(100), remove: z.boolean().default(false), session: shared.session }),
  output: z.object({ message: z.string() }),
  annotations: shared.DESTROYS,
  async handler({ name, remove, session }, context) {
    const message = await context.sessions.use(session, ({ interpreters }) => interpreters.stop(name, remove));
    return { text: message, structured: { message } };
  },
});

export const listInterpreters = defineTool({
  name: 'list_interpreters',
  title: 'List interpreters',
  description:
    'What execute can be given as interpreter: builtin, saved, added, and found in the project (.venv, venv, JetBrains SDKs).',
  input: z.object({ session: shared.session }),
  output: z.object({ interpreters: z.array(listing) }),
  annotations: shared.READS,
  async handler({ session }, context) {
    const interpreters = await context.sessions.use(session, (held) => held.interpreters.list());
    return { text: interpreters.map(sentence).join('\n'), structured: { interpreters: interpreters.map(structured) } };
  },
});

function structured(one: InterpreterListing): Record<string, unknown> {
  return {
    name: one.name,
    source: one.source,
    state: one.state,
    python_path: one.python,
    version: one.version,
    cwd: one.cwd,
    pid: one.pid,
    started_at: one.startedAt === null ? null : new Date(one.startedAt).toISOString(),
    uptime_seconds: one.startedAt === null ? null : Math.round((Date.now() - one.startedAt) / 1000),
    has_startup_script: one.hasStartupScript,
    description: one.description,
  };
}

function sentence(one: InterpreterListing): string {
  const kind = one.source === 'builtin' && one.description ? one.description : 'Python';
  const version = one.version ? `${kind} ${one.version}, ` : '';
  const life = one.state === 'running' ? `running (pid ${one.pid})` : 'stopped';
  return `${one.name} (${one.source}): ${life}, ${version}${one.python ?? 'no Python found'}, in ${one.cwd}${one.hasStartupScript ? ', with a startup script' : ''}${one.description && kind === 'Python' ? `, ${one.description}` : ''}`;
}
