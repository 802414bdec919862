/** Defines the tools for interpreters of the user's own: `add_interpreter`, `stop_interpreter`, `list_interpreters`. */

import * as z from 'zod';
import type { InterpreterListing } from '../sessions/interpreter-catalog.ts';
import { ARGUMENTS, CHANGES, DESTROYS, defineTool, READS } from './define-tool.ts';

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
    session: ARGUMENTS.session,
  }),
  output: listing,
  annotations: { ...CHANGES, openWorldHint: true },
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
    'Stop an interpreter; its variables are lost. The next execute starts it again; remove=true forgets a saved one.',
  input: z.object({ name: z.string().min(1).max(100), remove: z.boolean().default(false), session: ARGUMENTS.session }),
  output: z.object({ message: z.string() }),
  annotations: DESTROYS,
  async handler({ name, remove, session }, context) {
    const message = await context.sessions.use(session, ({ interpreters }) => interpreters.stop(name, remove));
    return { text: message, structured: { message } };
  },
});

export const listInterpreters = defineTool({
  name: 'list_interpreters',
  title: 'List interpreters',
  description:
    'What execute takes as interpreter: builtin, saved, added, and found in the project (.venv, venv, JetBrains SDKs).',
  input: z.object({ session: ARGUMENTS.session }),
  output: z.object({ interpreters: z.array(listing) }),
  annotations: READS,
  async handler({ session }, context) {
    const all = await context.sessions.use(session, ({ interpreters }) => interpreters.list());
    return { text: all.map(sentence).join('\n'), structured: { interpreters: all.map(structured) } };
  },
});

function structured(listed: InterpreterListing): Record<string, unknown> {
  return {
    name: listed.name,
    source: listed.source,
    state: listed.state,
    python_path: listed.python,
    version: listed.version,
    cwd: listed.cwd,
    pid: listed.pid,
    started_at: listed.startedAt === null ? null : new Date(listed.startedAt).toISOString(),
    uptime_seconds: listed.startedAt === null ? null : Math.round((Date.now() - listed.startedAt) / 1000),
    has_startup_script: listed.hasStartupScript,
    description: listed.description,
  };
}

function sentence(listed: InterpreterListing): string {
  const kind = listed.source === 'builtin' && listed.description ? listed.description : 'Python';
  const version = listed.version ? `${kind} ${listed.version}, ` : '';
  const life = listed.state === 'running' ? `running (pid ${listed.pid})` : 'stopped';
  return `${listed.name} (${listed.source}): ${life}, ${version}${listed.python ?? 'no Python found'}, in ${listed.cwd}${listed.hasStartupScript ? ', with a startup script' : ''}${listed.description && kind === 'Python' ? `, ${listed.description}` : ''}`;
}
