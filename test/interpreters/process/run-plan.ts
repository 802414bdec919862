/** A session in small: makes a language's plans and runs them, each as its caller has to. */

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Language, ProgramPlan, ProgramStep, Source } from '../../../src/interpreters/process/language.ts';
import { temporaryFolder } from '../../temporary-folder.ts';

export interface Result {
  exitCode: number | null;
  signal: string | null;
  stdout: string;
  stderr: string;
  /** The kinds of the steps that the plan had. */
  steps: string[];
  plan: ProgramPlan;
}

export interface Options {
  args?: string[];
  strict?: boolean;
  stateful?: boolean;
  env?: Record<string, string>;
  /** Steps see the cache as confined ones do: they can read it, and not write to it. */
  isCacheReadOnly?: boolean;
}

export interface Session {
  workspace: string;
  cache: string;
  run(code: string, options?: Options): Promise<Result>;
  plan(code: string, options?: Options): Promise<{ plan: ProgramPlan; program: string }>;
}

export function openSession(language: Language, cache = temporaryFolder()): Session {
  const root = temporaryFolder();
  const workspace = join(root, 'workspace');
  const home = join(root, 'home');
  mkdirSync(workspace);
  mkdirSync(home);

  async function plan(code: string, options: Options = {}) {
    const program = mkdtempSync(join(root, 'program-'));
    const state = join(root, 'state');
    const source: Source = {
      code,
      args: options.args ?? [],
      program: { folder: program, seen: program },
      workspace: { folder: workspace, seen: workspace },
      cache,
      isCacheReadOnly: options.isCacheReadOnly ?? false,
      strict: options.strict ?? false,
      ...(options.stateful && { state: { file: state, seen: state } }),
    };
    return { plan: await language.plan(source), program };
  }

  async function run(code: string, options: Options = {}): Promise<Result> {
    const { plan: made, program } = await plan(code, options);
    const result: Result = {
      ...{ exitCode: 1, signal: null, stdout: '', stderr: made.refused ?? '' },
      ...{ steps: made.steps.map(({ kind }) => kind), plan: made },
    };
    for (const [index, step] of made.steps.entries()) {
      if (step.kind === 'run' && made.steps[index - 1]?.kind === 'build') await made.built?.();
      const argv = options.isCacheReadOnly ? [...bubblewrapOver(cache), ...step.argv] : step.argv;
      const ended = await runStep({ ...step, argv }, workspace, {
        PATH: process.env.PATH ?? '',
        HOME: home,
        ...options.env,
      });
      result.stdout += ended.stdout;
      result.stderr += ended.stderr;
      result.exitCode = ended.exitCode;
      result.signal = ended.signal;
      if (ended.exitCode !== 0) break;
    }
    for (const name of made.own) {
      if (!existsSync(join(workspace, name))) throw new Error(`${name} is not in the workspace`);
      rmSync(join(workspace, name));
    }
    rmSync(program, { recursive: true });
    return result;
  }

  return { workspace, cache, run, plan };
}

function bubblewrapOver(cache: string): string[] {
  return ['bwrap', '--dev-bind', '/', '/', '--ro-bind', cache, cache, '--'];
}

async function runStep({ argv, env }: ProgramStep, cwd: string, base: Record<string, string>) {
  const [command = '', ...args] = argv;
  const child = spawn(command, args, { cwd, env: { ...base, ...env }, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = new Promise<{ exitCode: number | null; signal: string | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (exitCode, signal) => resolve({ exitCode, signal }));
  });
  const [stdout, stderr, ending] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
  return { stdout, stderr, ...ending };
}

/** Whether a language's tests cannot run here; says so, for all to see. */
export async function isMissing(language: Language): Promise<boolean> {
  const info = await language.probe();
  if ('path' in info) return false;
  console.warn(`SKIPPED: the tests of ${language.title} need ${info.missing.join(' or ')}. ${language.install}`);
  return true;
}
