/** How an interpreter is shown in a list: what it is, and whether it runs. */

import type { LiveInterpreter } from '../interpreters/interpreter.ts';
import type { Language } from '../interpreters/process/language.ts';
import type { SavedInterpreter } from './session-store.ts';

export interface InterpreterListing {
  name: string;
  source: 'builtin' | 'saved' | 'transient' | 'discovered' | 'lab';
  state: 'running' | 'stopped';
  python: string | null;
  version: string | null;
  cwd: string;
  pid: number | null;
  startedAt: number | null;
  hasStartupScript: boolean;
  description: string | null;
}

export interface RunningInterpreter {
  live: LiveInterpreter;
  startedAt: number;
}

type Described = Pick<InterpreterListing, 'name' | 'source' | 'python' | 'cwd'> & Partial<InterpreterListing>;

export function listPython(one: Described, running: RunningInterpreter | undefined): InterpreterListing {
  const { executable, version, pid } = running?.live.state ?? {};
  return {
    hasStartupScript: false,
    description: null,
    ...one,
    state: running ? 'running' : 'stopped',
    python: executable ?? one.python,
    version: version ?? null,
    pid: pid || null,
    startedAt: running?.startedAt ?? null,
  };
}

/** One that a caller has added; it starts in its own folder, if it has one. */
export function listAdded(one: SavedInterpreter, cwd: string, running: RunningInterpreter | undefined) {
  const source = one.saved ? 'saved' : 'transient';
  const { name, python, description } = one;
  return listPython(
    { name, source, python, cwd: one.cwd ?? cwd, hasStartupScript: one.startup !== null, description },
    running,
  );
}

/** A language whose tools are there; others are not worth a model's attention. */
export async function listLanguage(
  language: Language,
  cwd: string,
  running: RunningInterpreter | undefined,
): Promise<InterpreterListing[]> {
  const info = await language.probe();
  if ('missing' in info) return [];
  return [
    {
      name: language.name,
      source: 'builtin',
      state: running ? 'running' : 'stopped',
      python: info.path,
      version: info.version,
      cwd,
      pid: running?.live.state.pid ?? null,
      startedAt: running?.startedAt ?? null,
      hasStartupScript: false,
      description: language.title,
    },
  ];
}
