/**
 * Wraps a keeper of programs as the interpreter of a language: each execution becomes a plan, which the keeper runs. Owns the files that a
 * run needs, from before its plan to after its end.
 */

import {
  closeSync,
  constants,
  copyFileSync,
  existsSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { basename, join } from 'node:path';
import { messageOf } from '../../errors.ts';
import { tryUnlinkSync } from '../../files/folder-handle.ts';
import { removeTree } from '../../files/remove-tree.ts';
import { SEEN } from '../../sandbox/layout.ts';
import type { Sandbox } from '../../sandbox/sandbox.ts';
import { sessionMounts } from '../../sandbox/session-folders.ts';
import {
  type InterpreterEvent,
  type InterpreterRequest,
  type LiveInterpreter,
  notLookedInto,
  type ProgramRequest,
  type StopReason,
} from '../interpreter.ts';
import type { Language, ProgramPlan } from './language.ts';

export interface ProgramOptions {
  /** The session's workspace, where programs see it, and whether it is to be mounted there. */
  workspace: string;
  seen: string;
  mountsWorkspace: boolean;
  /** The session's own folder, for what a run needs beside the workspace. */
  folder: string;
  /** What all sessions share: builds, precompiled headers. */
  cache: string;
  env: Record<string, string>;
  strict: boolean;
  limits: ProgramRequest['limits'];
  /** How programs are confined, if they are. */
  sandbox?: Sandbox | undefined;
}

interface Run {
  folder: string;
  plan?: ProgramPlan;
  isStateful: boolean;
  stopped?: StopReason;
  isSent: boolean;
}

/** Programs of ours in a workspace, but not the channels of tools and files on their way, which others look after. */
const OWN = /^\.cuvette-(?!tools-|placing-)/;
const { program: PROGRAM } = SEEN;
/** What says on stderr why there is nothing to run. */
const LARGEST_STATE = 64 << 20;
const SAY = ['sh', '-c', 'cat >&2; exit 1'];

export function createProgramInterpreter(
  language: Language,
  keeper: LiveInterpreter,
  options: ProgramOptions,
): LiveInterpreter {
  const runs = new Map<string, Run>();
  const { env, limits, sandbox } = options;
  const place = sandbox
    ? {
        cwd: options.seen,
        place: false,
        env,
        limits,
        mounts: sessionMounts(sandbox, options, true),
      }
    : { cwd: options.workspace, place: options.mountsWorkspace, env, limits };
  const isSeenApart = options.mountsWorkspace || sandbox !== undefined;
  const state = join(options.folder, `${language.name}-state`);
  const programs = join(options.folder, 'programs');

  async function execute(request: InterpreterRequest): Promise<void> {
    mkdirSync(programs, { recursive: true, mode: 0o700 });
    const run: Run = {
      folder: mkdtempSync(join(programs, 'p')),
      isStateful: request.isStateful ?? false,
      isSent: false,
    };
    runs.set(request.id, run);
    const { steps, stdin } = await prepare(request, run);
    sandbox?.give(run.folder);
    keeper.execute({
      ...request,
      code: '',
      program: { ...place, steps, stdin, folder: sandbox ? basename(run.folder) : run.folder },
    });
    run.isSent = true;
    if (run.stopped) keeper.interrupt(request.id, run.stopped);
  }

  async function prepare(request: InterpreterRequest, run: Run): Promise<Pick<ProgramRequest, 'steps' | 'stdin'>> {
    try {
      if (run.isStateful && existsSync(state)) {
        copyFileSync(state, join(run.folder, 'state'));
        sandbox?.give(join(run.folder, 'state'));
      }
      const seen = isSeenApart ? PROGRAM : run.folder;
      const plan = await language.plan({
        code: request.code,
        args: request.args ?? [],
        program: { folder: run.folder, seen },
        workspace: { folder: options.workspace, seen: options.seen },
        cache: options.cache,
        isCacheReadOnly: sandbox !== undefined,
        strict: options.strict,
        ...(run.isStateful && { state: { file: join(run.folder, 'state'), seen: join(seen, 'state') } }),
      });
      run.plan = plan;
      if (plan.refused === undefined) return { steps: plan.steps, stdin: request.stdin ?? null };
      return { steps: [{ argv: SAY }], stdin: plan.refused };
    } catch (error) {
      return { steps: [{ argv: SAY }], stdin: `${language.title} could not be prepared: ${messageOf(error)}\n` };
    }
  }

  /** Before anybody learns of the end: what stands in the workspace then is the user's alone. */
  function cleanUp(id: string): void {
    const run = runs.get(id);
    if (!run) return;
    runs.delete(id);
    for (const name of run.plan?.own ?? []) tryUnlinkSync(join(options.workspace, name));
    if (run.isStateful) keepState(run.folder);
    removeTree(run.folder).catch(() => {});
  }

  /** The program may have put anything in its place: what is kept is a file, and no link is followed to it. */
  function keepState(folder: string): void {
    const left = join(folder, 'state');
    try {
      const file = openSync(left, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const { size, nlink } = fstatSync(file);
        if (!fstatSync(file).isFile() || size > LARGEST_STATE || nlink > 1) return;
      } finally {
        closeSync(file);
      }
      renameSync(left, state);
    } catch {} // It left none.
  }

  /** What a server that was killed left of its runs. */
  function removeLeftovers(): void {
    // The folder itself stays: it is mounted in a session that lives.
    const live = [...runs.values()];
    const isLeft = (name: string) => !live.some(({ folder }) => basename(folder) === name);
    for (const name of namesIn(programs).filter(isLeft)) removeTree(join(programs, name)).catch(() => {});
    const isOld = (name: string) => OWN.test(name) && !live.some(({ plan }) => plan?.own.includes(name));
    for (const name of namesIn(options.workspace).filter(isOld)) tryUnlinkSync(join(options.workspace, name));
  }
  if (keeper.state.running === null) removeLeftovers();

  /** Before the program is run, which could put something else in its own place. */
  async function keepBuild(id: string): Promise<void> {
    try {
      await runs.get(id)?.plan?.built?.();
    } catch {} // The next run builds it again.
    keeper.proceed();
  }

  return {
    ...keeper,
    state: keeper.state,
    execute(request) {
      execute(request).catch((error: unknown) => {
        // Not even a folder could be made; the keeper is still able to say so.
        const program = { ...place, steps: [{ argv: SAY }], stdin: `${messageOf(error)}\n`, folder: '' };
        keeper.execute({ ...request, code: '', program });
      });
    },
    interrupt(id, why) {
      const run = runs.get(id);
      if (run && !run.isSent) run.stopped = why;
      else keeper.interrupt(id, why);
    },
    onEvent(listener: (event: InterpreterEvent) => void) {
      keeper.onEvent((event) => {
        if (event.kind === 'built') {
          void keepBuild(event.id);
          return;
        }
        if (event.kind === 'done') {
          if (runs.has(event.id)) cleanUp(event.id);
          else removeLeftovers();
        }
        listener(event);
      });
    },
    onLost(listener) {
      keeper.onLost(() => {
        for (const id of [...runs.keys()]) cleanUp(id);
        listener();
      });
    },
    variables: async () => [],
    ...notLookedInto(`${language.title} keeps no variables to look at.`),
    async reset() {
      rmSync(state, { force: true });
      await keeper.reset();
    },
  };
}

/** Code may have removed the folder, or closed it. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
