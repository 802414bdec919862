/**
 * A language beside Python as an interpreter: each execution is a plan of the language's, run by a keeper of programs.
 * Owns the files that a run needs, from before its plan to after its end.
 */

import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../errors.ts';
import type { InterpreterEvent, LiveInterpreter, Program, RunRequest, StopReason } from '../interpreter.ts';
import type { Language, Plan } from './language.ts';

export interface ProgramOptions {
  /** The session's workspace, and whether programs see it at /mnt/data. */
  workspace: string;
  place: boolean;
  /** The session's own folder, for what a run needs beside the workspace. */
  folder: string;
  /** What all sessions share: builds, precompiled headers. */
  cache: string;
  env: Record<string, string>;
  strict: boolean;
  limits: Program['limits'];
}

interface Run {
  folder: string;
  plan?: Plan;
  isStateful: boolean;
  stopped?: StopReason;
  isSent: boolean;
}

/** Programs of ours in a workspace, but not the channels of tools, which others look after. */
const OWN = /^\.cuvette-(?!tools-)/;
const WORKSPACE = '/mnt/data';
const PROGRAM = '/mnt/program';
/** What says on stderr why there is nothing to run. */
const SAY = ['sh', '-c', 'cat >&2; exit 1'];

export function createProgramInterpreter(
  language: Language,
  keeper: LiveInterpreter,
  options: ProgramOptions,
): LiveInterpreter {
  const runs = new Map<string, Run>();
  const { env, limits } = options;
  const place = { cwd: options.workspace, place: options.place, env, limits };
  const state = join(options.folder, `${language.name}-state`);

  async function execute(request: RunRequest): Promise<void> {
    const root = join(options.folder, 'programs');
    mkdirSync(root, { recursive: true, mode: 0o700 });
    const run: Run = { folder: mkdtempSync(join(root, 'p')), isStateful: request.isStateful ?? false, isSent: false };
    runs.set(request.id, run);
    const { steps, stdin } = await prepare(request, run);
    keeper.execute({
      ...request,
      code: '',
      program: { ...place, steps, stdin, folder: run.folder },
    });
    run.isSent = true;
    if (run.stopped) keeper.interrupt(request.id, run.stopped);
  }

  async function prepare(request: RunRequest, run: Run): Promise<Pick<Program, 'steps' | 'stdin'>> {
    try {
      if (run.isStateful && existsSync(state)) copyFileSync(state, join(run.folder, 'state'));
      const seen = options.place ? PROGRAM : run.folder;
      const plan = await language.plan({
        code: request.code,
        args: request.args ?? [],
        program: { folder: run.folder, seen },
        workspace: { folder: options.workspace, seen: options.place ? WORKSPACE : options.workspace },
        cache: options.cache,
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
    for (const name of run.plan?.own ?? []) rmSync(join(options.workspace, name), { force: true });
    const left = join(run.folder, 'state');
    if (run.isStateful && existsSync(left)) renameSync(left, state);
    rmSync(run.folder, { recursive: true, force: true });
  }

  /** What a server that was killed left of its runs; nothing of ours runs in this session now. */
  function removeLeftovers(): void {
    rmSync(join(options.folder, 'programs'), { recursive: true, force: true });
    for (const name of readdirSync(options.workspace))
      if (OWN.test(name)) rmSync(join(options.workspace, name), { recursive: true, force: true });
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
        const program = { ...place, steps: [{ argv: SAY }], stdin: `${messageOf(error)}\n`, folder: options.workspace };
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
    async reset() {
      rmSync(state, { force: true });
      await keeper.reset();
    },
  };
}
