/**
 * Holds the running interpreters of one session: connects to those that an earlier server left, starts others when they are needed, and
 * stops them. Which interpreters there are is `interpreter-catalog.ts`'s.
 */

import { createHash } from 'node:crypto';
import { mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { CuvetteError } from '../errors.ts';
import type { LiveInterpreter, ProgramRequest } from '../interpreters/interpreter.ts';
import type { KeeperPool } from '../interpreters/process/keeper-pool.ts';
import type { Language } from '../interpreters/process/language.ts';
import { checkRuntime, languageNamed } from '../interpreters/process/languages.ts';
import { createProgramInterpreter } from '../interpreters/process/program-interpreter.ts';
import { endKeepers } from '../interpreters/python/driver.ts';
import { zygoteSpec } from '../interpreters/python/environment.ts';
import { PROGRAMS, type ZygoteSpec, type Zygotes } from '../interpreters/python/zygotes.ts';
import { sessionMounts } from '../sandbox/session-folders.ts';
import {
  BUILTIN,
  type CatalogOptions,
  createInterpreterCatalog,
  describeAdded,
  type InterpreterListing,
  listPython,
  type PythonSpec,
  type RunningInterpreter,
  withPython,
} from './interpreter-catalog.ts';
import type { SavedInterpreter } from './session-store.ts';

export interface PoolOptions extends CatalogOptions {
  runtime: string;
  linger: number;
  zygotes: Zygotes;
  /** Whether the project's folder is to be mounted where code sees it. */
  mountsWorkspace: boolean;
  /** The session's own folder. */
  folder: string;
  programs: ProgramSettings;
  /** For a session of a single call: keepers of programs to borrow instead of starting its own. */
  keeperPool?: KeeperPool | undefined;
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
  /** True if it runs or is being started. */
  isOpen(name: string): boolean;
  list(): Promise<InterpreterListing[]>;
  add(interpreter: SavedInterpreter): Promise<InterpreterListing>;
  stop(name: string, remove: boolean): Promise<string>;
  /** True for an interpreter that `stop` has ended. */
  wasStopped(name: string): boolean;
  running(): Promise<LiveInterpreter[]>;
  /** Ends them all. */
  stopAll(): Promise<void>;
}

export function createInterpreterPool(
  options: PoolOptions,
  onOpen: (name: string, live: LiveInterpreter) => void,
): InterpreterPool {
  const { session, project, sandbox, zygotes, folder, seen, mountsWorkspace } = options;
  const catalog = createInterpreterCatalog(options);
  const { isLabInterpreter } = catalog;
  const slots = new Map<string, Promise<RunningInterpreter | undefined>>();
  const stopped = new Set<string>();
  /** By language: the Python that its programs find on PATH. */
  const pythons = new Map<string, string>();
  const replaced = new WeakSet<LiveInterpreter>();

  const sockets = join(sandbox?.runtime ?? options.runtime, 'k');
  // An interpreter that an earlier server has confined otherwise, or with other folders, has another socket, and is not used again.
  const confinementMark = markOf(sandbox?.identity ?? project);
  const socketOf = (name: string) => join(sockets, `${session}.${markOf(name)}${confinementMark}`, 'sock');

  function watch(
    name: string,
    starting: Promise<LiveInterpreter | undefined>,
  ): Promise<RunningInterpreter | undefined> {
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
    const slot = await (slots.get(name) ?? watch(name, connect(name)));
    return slot?.live;
  }

  /** The keeper that listens for this session already; for a language, wrapped as its interpreter. */
  async function connect(name: string): Promise<LiveInterpreter | undefined> {
    const language = languageNamed(name);
    const live = await zygotes.connect(socketOf(name));
    return live && language ? programInterpreter(language, live, pythons.get(name) ?? live.state.executable) : live;
  }

  function programInterpreter(language: Language, keeper: LiveInterpreter, python: string): LiveInterpreter {
    pythons.set(language.name, python);
    const env = { ...withPython(options.env, python), CUVETTE_SESSION: session };
    const folders = { workspace: project, seen, folder, mountsWorkspace };
    return createProgramInterpreter(language, keeper, { ...options.programs, ...folders, env, sandbox });
  }

  async function open(name: string): Promise<OpenedInterpreter> {
    const found = await attach(name);
    if (found && !(await isOutdated(name, found))) return { live: found, isFresh: false };
    if (found) await replace(name, found);
    await checkRuntime(name);
    const spec = isLabInterpreter(name) || languageNamed(name) ? undefined : await catalog.pythonSpec(name);
    stopped.delete(name);
    const slot = await watch(name, starting(name, spec));
    if (!slot)
      throw new CuvetteError(
        'interpreter_failed',
        `The interpreter ${name} ended as soon as it had started. Run: cuvette doctor.`,
      );
    return { live: slot.live, isFresh: !isLabInterpreter(name) };
  }

  /** True for a keeper of programs that was started before the environment was ready: `python3` in a program would not be the builtin one. */
  async function isOutdated(name: string, { state }: LiveInterpreter): Promise<boolean> {
    if (!languageNamed(name) || state.running !== null) return false;
    return pythons.get(name) !== (await programZygote()).python;
  }

  /** Ends an interpreter that holds nothing between calls, without telling anybody that it was lost. */
  async function replace(name: string, live: LiveInterpreter): Promise<void> {
    replaced.add(live);
    slots.delete(name);
    pythons.delete(name);
    await live.stop();
  }

  async function starting(name: string, spec: PythonSpec | undefined): Promise<LiveInterpreter | undefined> {
    const language = languageNamed(name);
    if (isLabInterpreter(name)) return options.labInterpreters?.open(name);
    if (!language || !options.keeperPool) return start(name, spec);
    const { keeper, python } = await options.keeperPool.borrow();
    return programInterpreter(language, keeper, python);
  }

  async function start(name: string, spec: PythonSpec | undefined): Promise<LiveInterpreter | undefined> {
    const socket = socketOf(name);
    rmSync(socket, { force: true });
    mkdirSync(sockets, { recursive: true, mode: 0o700 });
    await endOutdated(name);
    const confined = sandbox && {
      socket: sandbox.inside(socket),
      mounts: sessionMounts(sandbox, { folder, workspace: project, seen }, spec === undefined),
      place: false,
    };
    const common = { socket, linger: options.linger, place: mountsWorkspace, ...confined };
    if (!spec) {
      const programs = await programZygote();
      pythons.set(name, programs.python);
      await zygotes.spawn(programs, { ...common, cwd: project, env: {}, startup: null });
    } else {
      const env = { ...spec.env, CUVETTE_SESSION: session };
      const request = { ...common, cwd: spec.cwd, env, startup: spec.startup };
      // A confined session may have written a Python that is not Cuvette's own, so that is run only inside.
      if (sandbox && name !== BUILTIN)
        await zygotes.spawn(await programZygote(), { ...request, interpreter: spec.zygote.python });
      else await zygotes.spawn(spec.zygote, request);
    }
    return connect(name);
  }

  /** Ends the interpreters of that name that are confined otherwise or have other folders. */
  async function endOutdated(name: string): Promise<void> {
    const start = `${session}.${markOf(name)}`;
    await endKeepers(sockets, (one) => one.startsWith(start) && !one.endsWith(confinementMark));
  }

  async function programZygote(): Promise<ZygoteSpec> {
    return { python: zygoteSpec(await options.environment.state()).python, preload: PROGRAMS };
  }

  const slotOf = async (name: string) => slots.get(name)?.catch(() => undefined);

  return {
    open,
    attach,
    isBuiltin: (name) => name === BUILTIN,
    keepsVariables: (name) => languageNamed(name) === undefined,
    isOpen: (name) => slots.has(name),
    list: () => catalog.list(slotOf),
    async add(given) {
      const interpreter = await catalog.check(given);
      const before = catalog.added(interpreter.name);
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
      catalog.add(interpreter);
      await open(interpreter.name);
      return listPython(describeAdded(interpreter, seen), await slotOf(interpreter.name));
    },
    async stop(name, remove) {
      const known = catalog.added(name);
      const live = await attach(name);
      if (!live) catalog.checkKnown(name);
      stopped.add(name);
      await live?.stop();
      slots.delete(name);
      const isForgotten = known !== undefined && (remove || !known.saved);
      if (isForgotten) catalog.remove(name);
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
      await endKeepers(sockets, (name) => name.startsWith(`${session}.`)); // Those that an earlier server left and that were not needed since.
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
