/** The interpreters of one session: finds those that an earlier server left, starts the others, and says what there is. */

import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { delimiter, dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { CuvetteError } from '../errors.ts';
import type { LiveInterpreter, ProgramRequest } from '../interpreters/interpreter.ts';
import type { KeeperPool } from '../interpreters/process/keeper-pool.ts';
import type { Language } from '../interpreters/process/language.ts';
import { checkRuntime, LANGUAGES, languageNamed } from '../interpreters/process/languages.ts';
import { createProgramInterpreter } from '../interpreters/process/program-interpreter.ts';
import { discoverPythons } from '../interpreters/python/discover.ts';
import { connectDriver, endKeepers } from '../interpreters/python/driver.ts';
import { type Environment, zygoteSpec } from '../interpreters/python/environment.ts';
import { probePython } from '../interpreters/python/probe.ts';
import { PROGRAMS, type Zygotes } from '../interpreters/python/zygotes.ts';
import { isAbove } from '../sandbox/layout.ts';
import type { Sandbox } from '../sandbox/sandbox.ts';
import { sessionMounts } from '../sandbox/session-folders.ts';
import {
  type InterpreterListing,
  listAdded,
  listLanguage,
  listPython,
  type RunningInterpreter,
} from './interpreter-listing.ts';
import type { SavedInterpreter, SessionStore } from './session-store.ts';

export const BUILTIN = 'builtin';

export interface PoolOptions {
  session: string;
  project: string;
  runtime: string;
  linger: number;
  store: SessionStore;
  environment: Environment;
  zygotes: Zygotes;
  /** Where code sees the project's folder, or the workspace; and whether that is to be mounted there. */
  seen: string;
  mountsWorkspace: boolean;
  /** The environment variables that code finds. */
  env: Record<string, string>;
  /** The session's own folder. */
  folder: string;
  programs: ProgramSettings;
  /** For a session of a single call: keepers of programs to borrow, in place of its own. */
  keeperPool?: KeeperPool | undefined;
  /** How its interpreters are confined, if they are. */
  sandbox?: Sandbox | undefined;
  labInterpreters?: LabInterpreters | undefined;
}

/** Interpreters that others hold, by their names. */
export interface LabInterpreters {
  isName(name: string): boolean;
  open(name: string): Promise<LiveInterpreter>;
  /** Those that can be used now, each with what it is. */
  list(): Promise<{ name: string; description: string }[]>;
}

export interface ProgramSettings {
  cache: string;
  strict: boolean;
  limits: ProgramRequest['limits'];
}

export interface OpenedInterpreter {
  live: LiveInterpreter;
  /** True if it was started just now, with nothing in it. */
  isFresh: boolean;
}

export interface InterpreterPool {
  /** The interpreter of that name, running; started if need be. */
  open(name: string): Promise<OpenedInterpreter>;
  /** The interpreter of that name if one runs already, here or left by an earlier server. */
  attach(name: string): Promise<LiveInterpreter | undefined>;
  isBuiltin(name: string): boolean;
  /** False for the languages whose programs run one by one. */
  keepsVariables(name: string): boolean;
  /** True if it runs already, and need not be started. */
  isOpen(name: string): boolean;
  list(): Promise<InterpreterListing[]>;
  add(interpreter: SavedInterpreter): Promise<InterpreterListing>;
  stop(name: string, remove: boolean): Promise<string>;
  /** True for one that was ended by `stop`, and not by some accident. */
  wasStopped(name: string): boolean;
  running(): Promise<LiveInterpreter[]>;
  /** Ends them all. */
  stopAll(): Promise<void>;
}

export function createInterpreterPool(
  options: PoolOptions,
  onOpen: (name: string, live: LiveInterpreter) => void,
): InterpreterPool {
  const { session, project, runtime, store, environment, zygotes } = options;
  const slots = new Map<string, Promise<RunningInterpreter | undefined>>();
  const stopped = new Set<string>();
  /** For languages: the Python beside which each was started. */
  const pythons = new Map<string, string>();
  const replaced = new WeakSet<LiveInterpreter>();

  const sockets = join(options.sandbox?.runtime ?? runtime, 'k');
  // By its place, too: an interpreter that an earlier server has confined in another way, or with other folders, is not gone on with.
  const placeMark = markOf(options.sandbox?.identity ?? project);
  const socketOf = (name: string) => join(sockets, `${session}.${markOf(name)}${placeMark}`, 'sock');

  const isLabInterpreter = (name: string) => options.labInterpreters?.isName(name) ?? false;
  const added = () => store.interpreters(project, session);
  // What is in the workspace of a confined session is not to be looked at from here: code may have put links there.
  const discovered = () =>
    (options.sandbox ? [] : discoverPythons(project)).filter(
      ({ name }) => !added().some((known) => known.name === name),
    );

  function hold(name: string, starting: Promise<LiveInterpreter | undefined>): Promise<RunningInterpreter | undefined> {
    const slot = starting.then((live) => {
      if (!live) return undefined;
      const watched = { ...live, state: live.state, onLost: lostUnlessReplaced(live) };
      watched.onLost(() => slots.delete(name));
      onOpen(name, watched);
      return { live, startedAt: Date.now() };
    });
    slots.set(name, slot);
    slot.then(
      (found) => found || slots.delete(name),
      () => slots.delete(name),
    );
    return slot;
  }

  function lostUnlessReplaced(live: LiveInterpreter): LiveInterpreter['onLost'] {
    return (listener) =>
      live.onLost(() => {
        if (!replaced.has(live)) listener();
      });
  }

  async function attach(name: string): Promise<LiveInterpreter | undefined> {
    if (isLabInterpreter(name)) return (await slots.get(name))?.live;
    const slot = await (slots.get(name) ?? hold(name, connect(name)));
    return slot?.live;
  }

  /** A driver that listens for this session already; for a language, as an interpreter of it. */
  async function connect(name: string): Promise<LiveInterpreter | undefined> {
    const language = languageNamed(name);
    const live = await connectDriver(socketOf(name));
    return live && language ? programInterpreter(language, live, pythons.get(name) ?? live.state.executable) : live;
  }

  function programInterpreter(language: Language, keeper: LiveInterpreter, python: string): LiveInterpreter {
    pythons.set(language.name, python);
    const { folder, mountsWorkspace: place, programs, sandbox } = options;
    const env = { ...withPython(options.env, python), CUVETTE_SESSION: session };
    return createProgramInterpreter(language, keeper, {
      ...programs,
      workspace: project,
      seen: options.seen,
      folder,
      mountsWorkspace: place,
      env,
      sandbox,
    });
  }

  async function open(name: string): Promise<OpenedInterpreter> {
    const found = await attach(name);
    if (found && !(await isOutdated(name, found))) return { live: found, isFresh: false };
    if (found) await replace(name, found);
    await checkRuntime(name);
    const spec = isLabInterpreter(name) || languageNamed(name) ? undefined : await specOf(name);
    stopped.delete(name);
    const slot = await hold(name, starting(name, spec));
    if (!slot)
      throw new CuvetteError(
        'interpreter_failed',
        `The interpreter ${name} ended as soon as it had started. Run: cuvette doctor.`,
      );
    return { live: slot.live, isFresh: !isLabInterpreter(name) };
  }

  /** True for a keeper of programs from before the environment was ready: `python3` in a program would be another than Python's own. */
  async function isOutdated(name: string, { state }: LiveInterpreter): Promise<boolean> {
    if (!languageNamed(name) || state.running !== null) return false;
    return pythons.get(name) !== (await programZygote()).python;
  }

  /** Ends one that holds nothing between calls; nobody is told that it was lost. */
  async function replace(name: string, live: LiveInterpreter): Promise<void> {
    replaced.add(live);
    slots.delete(name);
    pythons.delete(name);
    await live.stop();
  }

  async function starting(name: string, spec: Spec | undefined): Promise<LiveInterpreter | undefined> {
    const language = languageNamed(name);
    if (isLabInterpreter(name)) return options.labInterpreters?.open(name);
    if (!language || !options.keeperPool) return start(name, spec);
    const { keeper, python } = await options.keeperPool.borrow();
    return programInterpreter(language, keeper, python);
  }

  async function start(name: string, spec: Spec | undefined): Promise<LiveInterpreter | undefined> {
    const socket = socketOf(name);
    rmSync(socket, { force: true });
    mkdirSync(sockets, { recursive: true, mode: 0o700 });
    await endOutdated(name);
    const { linger, mountsWorkspace: place, sandbox } = options;
    const { folder, seen } = options;
    const confined = sandbox && {
      socket: sandbox.inside(socket),
      mounts: sessionMounts(sandbox, { folder, workspace: project, seen }, spec === undefined),
      place: false,
    };
    const common = { socket, linger, place, ...confined };
    if (!spec) {
      const programs = await programZygote();
      pythons.set(name, programs.python);
      await zygotes.spawn(programs, { ...common, cwd: project, env: {}, startup: null });
    } else {
      const env = { ...spec.env, CUVETTE_SESSION: session };
      const request = { ...common, cwd: spec.cwd, env, startup: spec.startup };
      // One that is not ours is never run but inside, where a session may have written it.
      if (sandbox && name !== BUILTIN)
        await zygotes.spawn(await programZygote(), { ...request, interpreter: spec.zygote.python });
      else await zygotes.spawn(spec.zygote, request);
    }
    return connect(name);
  }

  interface Spec {
    zygote: { python: string; preload: string[] };
    cwd: string;
    env: Record<string, string>;
    startup: string | null;
  }

  /** Those that this session has in another place, or under another policy. */
  async function endOutdated(name: string): Promise<void> {
    const start = `${session}.${markOf(name)}`;
    await endKeepers(sockets, (one) => one.startsWith(start) && !one.endsWith(placeMark));
  }

  /** A path of this machine, as confined code sees it. */
  function insidePath(path: string): string {
    return options.sandbox && isAbove(project, path) ? join(options.seen, relative(project, path)) : path;
  }

  async function programZygote(): Promise<{ python: string; preload: string[] }> {
    return { python: zygoteSpec(await environment.state()).python, preload: PROGRAMS };
  }

  async function specOf(name: string): Promise<Spec> {
    if (name === BUILTIN) {
      const zygote = zygoteSpec(await environment.state());
      return { zygote, cwd: insidePath(project), env: withPython(options.env, zygote.python), startup: null };
    }
    const known = added().find((candidate) => candidate.name === name);
    const python = known?.python ?? discovered().find((candidate) => candidate.name === name)?.python;
    if (!python)
      throw unknownInterpreter(name, [
        BUILTIN,
        ...LANGUAGES.map((language) => language.name),
        ...added().map((one) => one.name),
        ...discovered().map((one) => one.name),
      ]);
    if (!options.sandbox) await probePython(python);
    return {
      zygote: { python: insidePath(python), preload: [] },
      cwd: insidePath(known?.cwd ?? project),
      env: { ...withPython(options.env, python), ...known?.env },
      startup: known?.startup ?? null,
    };
  }

  const slotOf = async (name: string) => slots.get(name)?.catch(() => undefined);

  return {
    open,
    attach,
    isBuiltin: (name) => name === BUILTIN,
    keepsVariables: (name) => languageNamed(name) === undefined,
    isOpen: (name) => slots.has(name),
    async list() {
      const state = await environment.state().catch(() => undefined);
      const python = state && zygoteSpec(state).python;
      const cwd = options.seen;
      const elsewhere = (await options.labInterpreters?.list()) ?? [];
      return [
        listPython({ name: BUILTIN, source: 'builtin', python: python ?? null, cwd }, await slotOf(BUILTIN)),
        ...(await Promise.all(LANGUAGES.map(async (one) => listLanguage(one, cwd, await slotOf(one.name))))).flat(),
        ...(await Promise.all(added().map(async (one) => listAdded(one, cwd, await slotOf(one.name))))),
        ...(await Promise.all(
          discovered().map(async ({ name, python, description }) =>
            listPython(
              { name, source: 'discovered', python: insidePath(python), cwd, description },
              await slotOf(name),
            ),
          ),
        )),
        ...(await Promise.all(
          elsewhere.map(async (one) =>
            listPython({ ...one, source: 'lab', python: null, cwd }, await slotOf(one.name)),
          ),
        )),
      ];
    },
    async add(given) {
      if (given.name === BUILTIN || languageNamed(given.name) || isLabInterpreter(given.name))
        throw new CuvetteError(
          'interpreter_exists',
          `${given.name} is the name of an interpreter that is always there; choose another.`,
        );
      const base = options.sandbox ? options.seen : project;
      const interpreter = {
        ...given,
        python: absolute(base, given.python),
        cwd: given.cwd && absolute(base, given.cwd),
      };
      if (!options.sandbox && interpreter.cwd && !existsSync(interpreter.cwd)) {
        throw new CuvetteError(
          'invalid_input',
          `The folder ${interpreter.cwd} does not exist; make it, or leave cwd out for the project's.`,
        );
      }
      if (!options.sandbox) await probePython(interpreter.python);
      const before = added().find((known) => known.name === interpreter.name);
      const isRunning = (await attach(interpreter.name)) !== undefined;
      if (
        isRunning &&
        before &&
        JSON.stringify({ ...before, saved: true }) !== JSON.stringify({ ...interpreter, saved: true })
      ) {
        throw new CuvetteError(
          'interpreter_exists',
          `An interpreter named ${interpreter.name} runs with other settings; stop it first: stop_interpreter.`,
        );
      }
      store.putInterpreter(project, session, interpreter);
      await open(interpreter.name);
      return listAdded(interpreter, options.seen, await slotOf(interpreter.name));
    },
    async stop(name, remove) {
      const known = added().find((candidate) => candidate.name === name);
      const live = await attach(name);
      const isDiscovered = discovered().some((candidate) => candidate.name === name);
      const isOwn = name === BUILTIN || languageNamed(name) !== undefined || isLabInterpreter(name);
      if (!isOwn && !known && !live && !isDiscovered)
        throw unknownInterpreter(
          name,
          added().map((one) => one.name),
        );
      stopped.add(name);
      await live?.stop();
      slots.delete(name);
      const isForgotten = known !== undefined && (remove || !known.saved);
      if (isForgotten) store.removeInterpreter(project, session, name);
      if (isLabInterpreter(name)) return `Interpreter ${name} is let go of here; its lab goes on.`;
      const did = live ? `Interpreter ${name} stopped` : `Interpreter ${name} was not running`;
      if (isForgotten) return `${did}; its configuration is removed.`;
      return name === BUILTIN
        ? `${did}; it starts afresh on the next execute.`
        : `${did}; it starts again on the next execute.`;
    },
    wasStopped: (name) => stopped.has(name),
    async stopAll() {
      for (const name of slots.keys()) stopped.add(name);
      await Promise.all((await this.running()).map((live) => live.stop()));
      await endKeepers(sockets, (name) => name.startsWith(`${session}.`)); // Those that an earlier server left, and nobody has asked for since.
    },
    async running() {
      const found = await Promise.all([...slots.values()].map((slot) => slot.catch(() => undefined)));
      return found.flatMap((slot) => (slot ? [slot.live] : []));
    },
  };
}

/** Three characters that stand for a text in the name of a socket, of which the system allows few. */
function markOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url').slice(0, 3);
}

/** Environment variables with that Python's commands first on PATH. */
function withPython(variables: Record<string, string>, python: string): Record<string, string> {
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
