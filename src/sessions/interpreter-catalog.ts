/** Knows the interpreters that a session can use, by name: how each is started, how it is listed, and which ones callers have added. */

import { existsSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { CuvetteError } from '../errors.ts';
import type { LiveInterpreter } from '../interpreters/interpreter.ts';
import type { Language } from '../interpreters/process/language.ts';
import { LANGUAGES, languageNamed } from '../interpreters/process/languages.ts';
import { discoverPythons } from '../interpreters/python/discover.ts';
import { type Environment, zygoteSpec } from '../interpreters/python/environment.ts';
import { probePython } from '../interpreters/python/probe.ts';
import type { ZygoteSpec } from '../interpreters/python/zygotes.ts';
import { isAbove } from '../sandbox/layout.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import type { SavedInterpreter, SessionStore } from './session-store.ts';

/** The name of the Python that Cuvette manages. */
export const BUILTIN = 'builtin';

/** Interpreters that labs hold, by their names. */
export interface LabInterpreters {
  isName(name: string): boolean;
  open(name: string): Promise<LiveInterpreter>;
  /** Those that can be used now, each with what it is. */
  list(): Promise<{ name: string; description: string }[]>;
}

export interface CatalogOptions {
  session: string;
  project: string;
  store: SessionStore;
  environment: Environment;
  /** Where code sees the project's folder, or the workspace. */
  seen: string;
  /** The environment variables that code finds. */
  env: Record<string, string>;
  /** How the session's interpreters are confined, if they are. */
  sandbox?: Sandbox | undefined;
  labInterpreters?: LabInterpreters | undefined;
}

/** How a Python is started. */
export interface PythonSpec {
  zygote: ZygoteSpec;
  cwd: string;
  env: Record<string, string>;
  startup: string | null;
}

export interface InterpreterCatalog {
  isLabInterpreter(name: string): boolean;
  /** How to start the Python of that name; throws `unknown_interpreter` if there is none. */
  pythonSpec(name: string): Promise<PythonSpec>;
  /** The interpreters that can be used; `running` says which of them run. */
  list(running: (name: string) => Promise<RunningInterpreter | undefined>): Promise<InterpreterListing[]>;
  /** An interpreter that a caller wants to add, with absolute paths; throws if it cannot be one. */
  check(given: SavedInterpreter): Promise<SavedInterpreter>;
  added(name: string): SavedInterpreter | undefined;
  add(interpreter: SavedInterpreter): void;
  remove(name: string): void;
  /** Throws `unknown_interpreter` unless the name is known or in use. */
  checkKnown(name: string): void;
}

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

export function createInterpreterCatalog(options: CatalogOptions): InterpreterCatalog {
  const { session, project, store, environment, sandbox, seen } = options;
  const isLabInterpreter = (name: string) => options.labInterpreters?.isName(name) ?? false;
  const isAlwaysThere = (name: string) =>
    name === BUILTIN || languageNamed(name) !== undefined || isLabInterpreter(name);
  const allAdded = () => store.interpreters(project, session);
  const added = (name: string) => allAdded().find((known) => known.name === name);
  // Code may have put links into the workspace of a confined session, so this process does not look into it.
  const discovered = () => (sandbox ? [] : discoverPythons(project)).filter(({ name }) => !added(name));

  /** A path of this machine, as confined code sees it. */
  function insidePath(path: string): string {
    return sandbox && isAbove(project, path) ? join(seen, relative(project, path)) : path;
  }

  async function pythonSpec(name: string): Promise<PythonSpec> {
    if (name === BUILTIN) {
      const zygote = zygoteSpec(await environment.state());
      return { zygote, cwd: insidePath(project), env: withPython(options.env, zygote.python), startup: null };
    }
    const known = added(name);
    const python = known?.python ?? discovered().find((candidate) => candidate.name === name)?.python;
    if (!python) {
      const others = [...LANGUAGES, ...allAdded(), ...discovered()].map((one) => one.name);
      throw unknownInterpreter(name, [BUILTIN, ...others]);
    }
    if (!sandbox) await probePython(python);
    return {
      zygote: { python: insidePath(python), preload: [] },
      cwd: insidePath(known?.cwd ?? project),
      env: { ...withPython(options.env, python), ...known?.env },
      startup: known?.startup ?? null,
    };
  }

  return {
    isLabInterpreter,
    pythonSpec,
    added,
    add: (interpreter) => store.putInterpreter(project, session, interpreter),
    remove: (name) => store.removeInterpreter(project, session, name),
    async list(running) {
      const state = await environment.state().catch(() => undefined);
      const labs = (await options.labInterpreters?.list()) ?? [];
      const found = discovered().map((one) => ({ ...one, python: insidePath(one.python) }));
      const pythons: DescribedPython[] = [
        ...allAdded().map((one) => describeAdded(one, seen)),
        ...found.map((one) => ({ ...one, source: 'discovered' as const, cwd: seen })),
        ...labs.map((one) => ({ ...one, source: 'lab' as const, python: null, cwd: seen })),
      ];
      const python = state ? zygoteSpec(state).python : null;
      return [
        listPython({ name: BUILTIN, source: 'builtin', python, cwd: seen }, await running(BUILTIN)),
        ...(await Promise.all(LANGUAGES.map(async (one) => listLanguage(one, seen, await running(one.name))))).flat(),
        ...(await Promise.all(pythons.map(async (one) => listPython(one, await running(one.name))))),
      ];
    },
    async check(given) {
      if (isAlwaysThere(given.name))
        throw new CuvetteError(
          'interpreter_exists',
          `${given.name} is the name of an interpreter that is always there; choose another.`,
        );
      const base = sandbox ? seen : project;
      const cwd = given.cwd && absolute(base, given.cwd);
      const interpreter = { ...given, python: absolute(base, given.python), cwd };
      if (!sandbox && cwd && !existsSync(cwd)) {
        throw new CuvetteError(
          'invalid_input',
          `The folder ${cwd} does not exist; make it, or leave cwd out for the project's.`,
        );
      }
      if (!sandbox) await probePython(interpreter.python);
      return interpreter;
    },
    checkKnown(name) {
      if (isAlwaysThere(name) || added(name) || discovered().some((candidate) => candidate.name === name)) return;
      throw unknownInterpreter(
        name,
        allAdded().map((one) => one.name),
      );
    },
  };
}

type DescribedPython = Pick<InterpreterListing, 'name' | 'source' | 'python' | 'cwd'> & Partial<InterpreterListing>;

export function listPython(one: DescribedPython, running: RunningInterpreter | undefined): InterpreterListing {
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
export function describeAdded(one: SavedInterpreter, cwd: string): DescribedPython {
  const source = one.saved ? 'saved' : 'transient';
  const { name, python, description } = one;
  return { name, source, python, cwd: one.cwd ?? cwd, hasStartupScript: one.startup !== null, description };
}

/** A language, if its tools are installed; others are not worth a model's attention. */
async function listLanguage(
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

/** Environment variables with that Python's commands first on PATH. */
export function withPython(variables: Record<string, string>, python: string): Record<string, string> {
  const bin = dirname(python);
  const isVirtual = existsSync(join(dirname(bin), 'pyvenv.cfg'));
  if (!isVirtual) return variables;
  return { ...variables, PATH: [bin, variables.PATH].filter(Boolean).join(delimiter), VIRTUAL_ENV: dirname(bin) };
}

function absolute(project: string, path: string): string {
  return isAbsolute(path) ? path : resolve(project, path);
}

function unknownInterpreter(name: string, known: string[]): CuvetteError {
  return new CuvetteError(
    'unknown_interpreter',
    `There is no interpreter named ${name}. There ${known.length === 1 ? 'is' : 'are'}: ${known.join(', ') || 'none'}. Add one with add_interpreter(name, python_path).`,
  );
}
